"""The contenders and the tasks; a task gives the shipped configuration's settings to every library."""

import dataclasses

from benchmarks.others.job import Job

OURS = "actorlearner"


@dataclasses.dataclass(frozen=True)
class Contender:
    """A library with an algorithm.

    Attributes:
      library: one of `libraries.LIBRARIES`, or OURS.
      algorithm: sac or ppo.
      environments: that act at once while it learns.
      precision: `learn.precision` of ours.
    """

    library: str
    algorithm: str = "sac"
    environments: int = 1
    precision: str = "float32"


LEARN = {
    "ours-sac": Contender(OURS, environments=8),
    "ours-sac-bfloat16": Contender(OURS, environments=8, precision="bfloat16"),
    "sb3-sac": Contender("sb3"),
    "sb3-sac-8": Contender("sb3", environments=8),
    "sbx-sac": Contender("sbx"),
    "sbx-sac-8": Contender("sbx", environments=8),
    "rllib-sac": Contender("rllib"),
    "ours-ppo": Contender(OURS, "ppo", environments=8),
    "sb3-ppo": Contender("sb3", "ppo", environments=8),
}
"""By name. Eight environments are the default of local mode, one is the default of the others' SAC."""

SLOW = {"ours-sac": Contender(OURS), "sb3-sac": Contender("sb3")}

SLOW_SIZES = (1, 4, 16)
SLOW_WAIT_S = 0.02


@dataclasses.dataclass(frozen=True)
class Task:
    """An environment, with the settings of its shipped configuration.

    Attributes:
      config: the name of that configuration, for SAC.
      env_steps: of one training.
      evaluate_interval: env steps between two evaluations.
      random_steps: env steps with random actions before training.
      learning_rate: of SAC.
      gamma: discount.
      tau: share of the new weights in the target networks.
      target: a return that shows learning; the table has the minutes to it.
    """

    config: str
    env_steps: int
    evaluate_interval: int
    random_steps: int
    learning_rate: float
    gamma: float
    tau: float
    target: float


TASKS = {
    "HalfCheetahBulletEnv-v0": Task("sac_halfcheetah", 100_000, 10_000, 10_000, 7.3e-4, 0.98, 0.02, 1_000.0),
    "Pendulum-v1": Task("sac_pendulum", 20_000, 1_000, 1_000, 1e-3, 0.99, 0.005, -200.0),
}

_PPO_LEARNING_RATE, _PPO_BATCH = 3e-4, 64
"""The defaults of Stable-Baselines3."""


def learn_job(contender: Contender, environment: str, env_steps: int | None, seed: int, episodes: int) -> Job:
    """Returns the training of a round; shorter ones than the task's have fewer random steps."""
    task = TASKS[environment]
    length = env_steps or task.env_steps
    ppo = contender.algorithm == "ppo"
    return Job(
        algorithm=contender.algorithm,
        environment=environment,
        environments=contender.environments,
        env_steps=length,
        random_steps=min(task.random_steps, length // 4),
        evaluate_interval=min(task.evaluate_interval, length),
        episodes=episodes,
        seed=seed,
        learning_rate=_PPO_LEARNING_RATE if ppo else task.learning_rate,
        gamma=task.gamma,
        tau=task.tau,
        batch_size=_PPO_BATCH if ppo else 256,
    )


def slow_job(
    contender: Contender, size: int, env_steps: int | None, updates_per_env_step: float, seed: int
) -> Job:
    """Returns the training with `size` environments that wait; `env_steps` are those of all together."""
    length = env_steps or round(2_000 * size**0.5)
    return dataclasses.replace(
        learn_job(contender, "Pendulum-v1", length, seed, episodes=1),
        environments=size,
        wait_s=SLOW_WAIT_S,
        evaluate_interval=None,
        updates_per_env_step=updates_per_env_step,
    )
