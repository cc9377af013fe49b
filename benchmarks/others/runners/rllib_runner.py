"""Trains with RLlib: python -m benchmarks.others.runners.rllib_runner JOB."""

import sys
import tempfile
from typing import Any

import numpy as np
import ray
import torch
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.tune.registry import register_env

from benchmarks.others.job import Job, from_json
from benchmarks.others.runners.world import Array, Reporter, make

_NAME = "task"
_ENV_STEPS_PER_CALL = 100
"""Least env steps in one call of `train`; RLlib's default."""


def train(job: Job) -> None:
    """Trains SAC to the end, with sampling and learning in this process."""
    register_env(_NAME, lambda _: make(job.environment, job.wait_s))
    algorithm = _configuration(job).build_algo()
    module = algorithm.get_module()
    bounds: Any = make(job.environment).action_space

    def act(observation: Array) -> Array:
        with torch.no_grad():
            inputs = {"obs": torch.from_numpy(np.asarray(observation, np.float32)[None])}
            outputs = module.forward_inference(inputs)["action_dist_inputs"]
            distribution = module.get_inference_action_dist_cls().from_logits(outputs).to_deterministic()
            action = distribution.sample()[0].numpy()
        scaled: Array = bounds.low + (action + 1) / 2 * (bounds.high - bounds.low)  # From -1..1.
        return np.clip(scaled, bounds.low, bounds.high)

    reporter = Reporter(job, act)
    env_steps, train_steps = 0, 0
    while env_steps < job.env_steps:
        result = algorithm.train()
        env_steps = int(result["env_runners"]["num_env_steps_sampled_lifetime"])
        learners = result.get("learners", {}).get("default_policy", {})
        train_steps = int(learners.get("num_module_steps_trained_lifetime", 0) / job.batch_size)
        reporter.step(env_steps, train_steps)
    reporter.print(env_steps, train_steps)
    algorithm.stop()


def _configuration(job: Job) -> Any:
    sac: Any = SACConfig
    model: Any = DefaultModelConfig
    return (
        sac()
        .environment(_NAME)
        .env_runners(
            num_env_runners=0,
            num_envs_per_env_runner=job.environments,
            rollout_fragment_length=job.env_steps_per_training,
        )
        .learners(num_learners=0)
        .training(
            actor_lr=job.learning_rate,
            critic_lr=job.learning_rate,
            alpha_lr=job.learning_rate,
            gamma=job.gamma,
            tau=job.tau,
            train_batch_size_per_learner=job.batch_size,
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": job.capacity},
            num_steps_sampled_before_learning_starts=job.random_steps,
        )
        .rl_module(
            model_config=model(
                fcnet_hiddens=[job.units, job.units],
                fcnet_activation="relu",
                head_fcnet_hiddens=[],
                head_fcnet_activation=None,
            )
        )
        .reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=_ENV_STEPS_PER_CALL)
        .debugging(seed=job.seed)
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        # A folder of its own keeps it apart from other clusters on this machine.
        ray.init(address="local", include_dashboard=False, _temp_dir=directory)
        train(from_json(sys.argv[1]))
        ray.shutdown()
