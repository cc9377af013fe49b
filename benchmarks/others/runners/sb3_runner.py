"""Trains with Stable-Baselines3: python -m benchmarks.others.runners.sb3_runner JOB."""

import sys
from typing import Any

from stable_baselines3 import PPO, SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from benchmarks.others import job as jobs
from benchmarks.others.job import Job
from benchmarks.others.runners.world import Array, Reporter, make


def train(job: Job, sac: Any = SAC) -> None:
    """Trains to the end; `sac` is the class of Stable-Baselines3, or one with its interface."""
    environments = make_vec_env(
        make,
        n_envs=job.environments,
        seed=job.seed,
        env_kwargs={"name": job.environment, "wait_s": job.wait_s},
        vec_env_cls=SubprocVecEnv if job.wait_s else DummyVecEnv,
    )
    _model(job, environments, sac).learn(job.env_steps, callback=_Reports(job))
    environments.close()


def _model(job: Job, environments: Any, sac: Any) -> Any:
    settings = {
        "learning_rate": job.learning_rate,
        "batch_size": job.batch_size,
        "gamma": job.gamma,
        "policy_kwargs": {"net_arch": [job.units, job.units]},
        "seed": job.seed,
        "device": "cpu",
    }
    if job.algorithm == "ppo":
        n_steps = jobs.PPO_ENV_STEPS // job.environments
        return PPO("MlpPolicy", environments, n_steps=n_steps, n_epochs=jobs.PPO_EPOCHS, **settings)
    return sac(
        "MlpPolicy",
        environments,
        buffer_size=job.capacity,
        learning_starts=job.random_steps,
        tau=job.tau,
        train_freq=job.env_steps_per_training,
        gradient_steps=job.updates_per_training,
        **settings,
    )


class _Reports(BaseCallback):
    """Reports after each step of all environments."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._reporter = Reporter(job, self._act)
        # PPO counts epochs.
        self._per_update = jobs.PPO_ENV_STEPS // job.batch_size if job.algorithm == "ppo" else 1

    def _on_step(self) -> bool:
        self._reporter.step(self.num_timesteps, self._train_steps)
        return True

    def _on_training_end(self) -> None:
        self._reporter.print(self.num_timesteps, self._train_steps)

    @property
    def _train_steps(self) -> int:
        return int(self.model._n_updates * self._per_update)

    def _act(self, observation: Array) -> Array:
        action: Array = self.model.predict(observation, deterministic=True)[0]
        return action


if __name__ == "__main__":
    train(jobs.from_json(sys.argv[1]))
