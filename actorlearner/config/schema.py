"""Every configuration key with its type, default, documentation and range, but the agents' own.

The keys of an algorithm stand in its file in actorlearner/agents/.
"""

import dataclasses
from typing import Any

from actorlearner.config.setting import setting


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """Which environment is acted in."""

    suite: str = setting(
        "pybullet",
        "Where the environment comes from: pybullet, gym, or module:callable for your own.",
    )
    name: str = setting(
        "MinitaurBulletEnv-v0",
        "The environment's registered name. For module:callable it is passed as the first argument, "
        "unless it is empty or left out.",
    )
    kwargs: dict[str, Any] = setting({}, "Keyword arguments for the environment's constructor.")
    max_episode_steps: int | None = setting(
        None,
        "Env steps after which an episode is truncated (its last discount stays 1). Null: the "
        "environment's own limit.",
        at_least=1,
    )
    max_faults: int = setting(
        10,
        "How often in a row an environment may raise or answer with NaN or infinity and is made anew; once "
        "more ends the run. An episode that ends well, or 1,000 env steps, begin a new row.",
        at_least=0,
        at_most=100,
    )


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """The algorithm; each has a subclass with its own keys. These are what replay needs to know of any."""

    name: str = setting("", "The algorithm: a name in the registry of agents.")
    gamma: float = setting(0.99, "Discount of the next env step's value.", at_least=0, at_most=1)
    n_step: int = setting(
        1,
        "Env steps of rewards in one transition before the value of the state that follows; fewer where "
        "the episode ends sooner.",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """The experience table of a replay server; several servers have one each, all with these keys."""

    layout: str = setting(
        "packed",
        "How transitions are stored: packed (several to an item, one row each), or trajectory (TF-Agents' "
        "own, slower, so that its unmodified jobs can join).",
        choices=("packed", "trajectory"),
    )
    capacity: int = setting(
        1_000_000,
        "Transitions that each replay server keeps; beyond that the oldest are removed.",
        at_least=1,
    )
    min_size: int = setting(
        1_000, "Transitions in each replay server before the learner may sample the first.", at_least=1
    )
    updates_per_env_step: float | None = setting(
        None,
        "Train steps for each env step; collecting and training wait for each other to keep it. Of several "
        "replay servers each keeps it for the actors that write to it. Null: nobody waits, beyond min_size.",
        at_least=1e-6,
        at_most=1e6,
    )
    error_buffer: float | None = setting(
        None,
        "How far collecting and training may each run ahead of updates_per_env_step, in env steps. "
        "Each replay server has its own. Null: a few items of each actor.",
        above=0,
        at_most=1e12,
    )
    checkpoint_interval_s: float | None = setting(
        300.0,
        "Seconds between two checkpoints of the replay server; one is also written when it is stopped. All "
        "its clients wait while it writes. Null: only then.",
        above=0,
    )


@dataclasses.dataclass(frozen=True)
class CollectConfig:
    """The collect actors."""

    actors: int | None = setting(
        None,
        "Collect actor processes that local mode starts. Null: one for every two cores, eight at most. With "
        "several replay servers, at least as many as those.",
        at_least=1,
        at_most=1_000,
    )
    envs_per_actor: int | None = setting(
        None,
        "Environments that one actor steps in turn, with one policy call for all. Null: eight, shared "
        "equally among the actors.",
        at_least=1,
        at_most=10_000,
    )
    initial_random_steps: int = setting(
        1_000,
        "Env steps with uniformly random actions before the policy acts, counted over all actors that write "
        "to the same replay server.",
        at_least=0,
    )
    variables_interval_s: float = setting(
        0.2, "Seconds between two looks for newer policy variables.", above=0, at_most=3_600
    )


@dataclasses.dataclass(frozen=True)
class LearnConfig:
    """The learner."""

    train_steps: int = setting(100_000, "Train steps after which the run has finished.", at_least=1)
    batch_size: int = setting(256, "Transitions in one train step, over all replicas together.", at_least=1)
    train_steps_per_call: int = setting(10, "Train steps in one call of the training graph.", at_least=1)
    publish_interval: int = setting(
        20, "Train steps between two publications of the policy variables.", at_least=1
    )
    checkpoint_interval: int = setting(
        10_000, "Train steps between two checkpoints with their SavedModels.", at_least=1
    )
    summary_interval: int = setting(1_000, "Train steps between two TensorBoard summaries.", at_least=1)
    intra_op_threads: int = setting(
        1,
        "Threads that share one operation of the learner on CPUs. Small networks are faster with one: "
        "their operations run side by side instead, on as many threads as there are cores.",
        at_least=1,
        at_most=1_024,
    )
    profile: str | None = setting(
        None,
        "START,STOP: the train steps between which a TensorFlow profile of the learner is taken, which "
        "TensorBoard's profile plugin shows. Null: none.",
    )
    strategy: str = setting(
        "default",
        "tf.distribute strategy: default (one device), mirrored (all GPUs), mirrored:N (N logical CPU "
        "devices), multi_worker_mirrored (several learner processes on as many hosts, each with all GPUs, "
        "or the CPU without any; the environment variable TF_CONFIG of each says where all are and which it "
        "is) or tpu.",
    )


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """The eval actor."""

    interval: int = setting(
        10_000, "Train steps between two evaluations; step 0 and the last always are.", at_least=1
    )
    episodes: int = setting(20, "Episodes of the greedy policy in one evaluation.", at_least=1)
    video_interval: int | None = setting(
        None,
        "Train steps between two videos of one episode each, made after an evaluation. Null: none.",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True)
class Config:
    """One experiment: everything that decides what is learned and how."""

    environment: EnvironmentConfig = dataclasses.field(default_factory=EnvironmentConfig)
    agent: AgentConfig = dataclasses.field(default_factory=AgentConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    collect: CollectConfig = dataclasses.field(default_factory=CollectConfig)
    learn: LearnConfig = dataclasses.field(default_factory=LearnConfig)
    evaluate: EvaluateConfig = dataclasses.field(default_factory=EvaluateConfig)
    seed: int = setting(
        0,
        "Seeds networks, policies and environments, each together with its role, its index, and how often "
        "that role was started in the run.",
        at_least=0,
    )
    callbacks: list[str] = setting(
        [],
        "module:Class of your own callbacks, called at episodes, evaluations, publications and checkpoints; "
        "see actorlearner.callbacks. They do not decide what is learned: roles of one run may have others. "
        "In local mode, they reach other machines with --network host alone.",
    )
