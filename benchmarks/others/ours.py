"""Our side of a training: the command of local mode, and its metrics as the runners' records."""

import sys
from pathlib import Path
from typing import Any

from actorlearner.records.metrics import read_records, without_rolled_back
from actorlearner.records.run_directory import RunDirectory
from benchmarks.others.contenders import TASKS
from benchmarks.others.job import PPO_ENV_STEPS, PPO_EPOCHS, Job

SUITE = "benchmarks.others.runners.world:make"
"""Makes the environments that wait."""


def command(job: Job, precision: str, run_dir: Path) -> list[str]:
    """Returns the command that trains `job` in local mode."""
    config = TASKS[job.environment].config.replace("sac", job.algorithm)
    settings = [*_common(job), *(_sac(job) if job.algorithm == "sac" else _ppo(job))]
    return [
        *(sys.executable, "-m", "actorlearner", "local", "--config", config, "--run_dir", str(run_dir)),
        *("--set", *settings, f"learn.precision={precision}"),
    ]


def suite(environment: str) -> str:
    """Returns the `environment.suite` of an environment without a wait."""
    return "pybullet" if "Bullet" in environment else "gymnasium"


def records(run_dir: Path) -> list[dict[str, Any]]:
    """Returns the progress and the evaluations of a run; an evaluation's time is not training time."""
    directory = RunDirectory(run_dir)
    progress = [
        {"kind": "progress", "time": record["time"], "env_steps": record["env_steps"],
         "train_steps": record["train_step"], "evaluating_s": 0.0}
        for record in read_records(directory.metrics("learner"))
    ]  # fmt: skip
    evaluations = [
        {"kind": "evaluation", "time": record["time"], "env_steps": record["env_steps"],
         "returns": record["returns"]}
        for record in without_rolled_back(read_records(directory.metrics("eval")))
    ]  # fmt: skip
    return progress + evaluations


def _common(job: Job) -> list[str]:
    if job.wait_s:
        environment = [f"environment.suite={SUITE}", f"environment.kwargs={{wait_s: {job.wait_s}}}"]
        actors = [f"collect.actors={job.environments}", "collect.envs_per_actor=1"]
    else:
        environment = [f"environment.suite={suite(job.environment)}"]
        actors = ["collect.actors=1", f"collect.envs_per_actor={job.environments}"]
    return [
        *environment,
        *actors,
        f"environment.name={job.environment}",
        f"agent.gamma={job.gamma}",
        f"agent.actor_layers=[{job.units},{job.units}]",
        f"learn.batch_size={job.batch_size}",
        f"evaluate.episodes={job.episodes}",
        f"seed={job.seed}",
    ]


def _sac(job: Job) -> list[str]:
    rates = [f"agent.{name}_learning_rate={job.learning_rate}" for name in ("actor", "critic", "alpha")]
    per_env_step = job.updates_per_env_step
    interval = None if job.evaluate_interval is None else round(job.evaluate_interval * per_env_step)
    return [
        *rates,
        f"agent.critic_joint_layers=[{job.units},{job.units}]",
        "agent.observation_normalizer=false",
        f"agent.target_update_tau={job.tau}",
        f"replay.capacity={job.capacity}",
        f"replay.min_size={job.random_steps}",
        f"replay.updates_per_env_step={per_env_step}",
        f"collect.initial_random_steps={job.random_steps}",
        f"learn.train_steps={round((job.env_steps - job.random_steps) * per_env_step)}",
        f"evaluate.interval={'null' if interval is None else interval}",
    ]


def _ppo(job: Job) -> list[str]:
    per_env_step = PPO_EPOCHS / job.batch_size
    iterations = -(-job.env_steps // PPO_ENV_STEPS)
    return [
        f"agent.learning_rate={job.learning_rate}",
        "agent.learning_rate_decay=none",
        f"agent.value_layers=[{job.units},{job.units}]",
        f"agent.env_steps_per_iteration={PPO_ENV_STEPS}",
        f"agent.fragment_length={PPO_ENV_STEPS // job.environments}",
        f"agent.epochs={PPO_EPOCHS}",
        "agent.initial_std=1.0",
        "agent.observation_normalizer=false",
        "agent.reward_normalizer=false",
        f"learn.train_steps={round(iterations * PPO_ENV_STEPS * per_env_step)}",
        f"evaluate.interval={round((job.evaluate_interval or job.env_steps) * per_env_step)}",
    ]
