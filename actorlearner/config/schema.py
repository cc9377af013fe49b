"""Every configuration key with its type, default, documentation and range.

The keys of an algorithm are declared in its file in actorlearner/agents/.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from actorlearner.config.setting import setting


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig:
    """The environment."""

    suite: str = setting(
        "pybullet",
        "Where the environment comes from: pybullet, gym, gymnasium, dm_control, or module:callable.",
    )
    name: str = setting(
        "MinitaurBulletEnv-v0",
        "The environment's registered name. For module:callable it is passed as the first argument, unless "
        "it is empty or left out.",
    )
    kwargs: dict[str, Any] = setting({}, "Keyword arguments for the environment's constructor.")
    max_episode_steps: int | None = setting(
        None,
        "Env steps of the simulator, before action_repeat, after which an episode is truncated (its last "
        "discount stays 1). Null: the environment's own limit.",
        at_least=1,
    )
    action_repeat: int = setting(
        1, "Env steps of the simulator with the same action; together they count as one.", at_least=1
    )
    frame_stack: int = setting(
        1,
        "Observations, images or vectors, that are joined into one: the newest and those before it.",
        at_least=1,
    )
    info_metrics: list[str] = setting(
        [],
        "Numbers in the environment's info that become metrics of its episodes: KEY for the value at the "
        "last env step, sum:KEY or mean:KEY over the env steps. With action_repeat, an env step has the info "
        "of its last repetition.",
    )
    max_faults: int = setting(
        10,
        "Faults of an environment in a row (an error, NaN or infinity) that a role survives: it is created "
        "again after each. One more ends the role with an error. A completed episode resets the count, and "
        "so do 1,000 env steps of a collect actor.",
        at_least=0,
        at_most=100,
    )


@dataclasses.dataclass(frozen=True)
class AgentConfig:
    """The algorithm. Each has a subclass with further keys; replay needs only these."""

    name: str = setting(
        "", "The algorithm: sac, ppo, dqn or another of docs/agents.md, or module:Builder of your own."
    )
    gamma: float = setting(0.99, "Discount of the next env step's value.", at_least=0, at_most=1)
    n_step: int = setting(
        1,
        "Env steps whose rewards one transition sums before it bootstraps from the next state's value; "
        "fewer at the end of an episode.",
        at_least=1,
    )
    observation_normalizer: bool = setting(
        False,
        "Shifts and scales each number of an observation to mean 0 and deviation 1, as measured by the "
        "learner and published with the policy, and clips it to -10..10. Images and discrete parts stay.",
    )
    networks: str | None = setting(
        None,
        "module:callable that takes the specs of an observation and returns a Keras layer from batches of "
        "observations to vectors [batch, units], in place of the encoder. Null: the encoder.",
    )
    action_mask: str | None = setting(
        None,
        "Name of the part of a dict observation that says which of the discrete actions are allowed: one "
        "number for each, 0 if it is not. Null: all are.",
    )
    learning_rate_decay: str = setting(
        "none",
        "How all learning rates go to 0 within learning_rate_decay_steps: none, linear or cosine.",
        choices=("none", "linear", "cosine"),
    )
    learning_rate_decay_steps: int | None = setting(
        None, "Train steps after which decaying learning rates are 0. Null: learn.train_steps.", at_least=1
    )
    global_norm: float | None = setting(
        None,
        "Maximum norm of all gradients of an optimiser together, applied to their sum over the replicas. "
        "Null: no clipping.",
        above=0,
    )
    start_from: str | None = setting(
        None,
        "Where the learner of a new run reads its first weights: a run directory (its newest checkpoint), a "
        "learner's checkpoint, or a saved policy (only the policy's weights). Null: random weights.",
    )


AgentClasses = Mapping[str, type[AgentConfig]]
"""The class of the agent section for each algorithm of this package."""

FindAgentClass = Callable[[Any], type[AgentConfig]]
"""Returns the class of the agent section for a value of `agent.name`, of any type.

Raises a ConfigurationError if it names no algorithm.
"""


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """The experience table of a replay server. With several servers, the keys apply to each."""

    layout: str = setting(
        "packed",
        "How transitions are stored: packed (several in an item, one row each), or trajectory (TF-Agents' "
        "layout: slower, but unmodified TF-Agents jobs can join).",
        choices=("packed", "trajectory"),
    )
    capacity: int = setting(
        1_000_000,
        "Transitions that each replay server keeps; the oldest are removed first.",
        at_least=1,
    )
    min_size: int = setting(
        1_000, "Transitions that each replay server must hold before the learner may sample.", at_least=1
    )
    updates_per_env_step: float | None = setting(
        None,
        "Train steps for each env step; the rate limiter blocks collecting or training to keep this ratio. "
        "Each of several replay servers keeps it for its own actors. Null: no limit after min_size.",
        at_least=1e-6,
        at_most=1e6,
    )
    error_buffer: float | None = setting(
        None,
        "Env steps by which collecting or training may be ahead of updates_per_env_step, in each replay "
        "server. Null: one item of each actor, but at least two items and 64 env steps.",
        above=0,
        at_most=1e12,
    )
    transitions_per_item: int | None = setting(
        None,
        "Transitions that actors send together, with the packed layout. Lower it for slow simulators: with "
        "1, each env step is seen at once. Null: 32, fewer if they are large. With agent.priority_exponent, "
        "each is sent alone.",
        at_least=1,
        at_most=32,
    )
    checkpoint_interval_s: float | None = setting(
        300.0,
        "Seconds between two checkpoints of the replay server, which blocks all its clients while it writes "
        "one. It also writes one after the last train step, and one when it stops. Null: only these two.",
        above=0,
    )


@dataclasses.dataclass(frozen=True)
class CollectConfig:
    """The collect actors."""

    actors: int | None = setting(
        None,
        "Number of collect actors, at least one for each replay server. Set it also where you start them "
        "yourself: on-policy agents divide an iteration by it. Null: one for every two cores, eight at most.",
        at_least=1,
        at_most=1_000,
    )
    envs_per_actor: int | None = setting(
        None,
        "Environments of one actor, which acts in all of them with one policy call. Null: eight in all, "
        "divided among collect.actors and rounded up.",
        at_least=1,
        at_most=10_000,
    )
    initial_random_steps: int = setting(
        1_000,
        "Env steps with uniformly random actions before the policy acts, summed over all actors of a replay "
        "server.",
        at_least=0,
    )
    actor_kwargs: dict[str, Any] = setting(
        {},
        "Keyword arguments of the environment that differ between actors: a list of values for each "
        "argument. Actor i takes value i, modulo the length of the list; it replaces the argument of the "
        "same name in environment.kwargs.",
    )
    initial_policy: str | None = setting(
        None,
        "module:callable that chooses the actions of the first initial_random_steps env steps: it takes the "
        "observation of one environment, and returns its action. Null: random actions.",
    )
    threads: int = setting(
        1,
        "Threads of TensorFlow in each actor, for its policy and simulators that use TensorFlow.",
        at_least=1,
        at_most=1_024,
    )
    gpus: bool = setting(False, "Lets actors use the GPUs, for simulators that need them.")
    environment_processes: bool = setting(
        False,
        "Runs each environment of an actor in a process of its own: for slow simulators, which then step in "
        "parallel, and for simulators that crash, because a crash then costs only one episode.",
    )
    reward_clipping: float | None = setting(
        None,
        "Limits the rewards that agents learn from to -reward_clipping..reward_clipping. Returns in metrics "
        "and evaluations are not clipped. Null: no limit.",
        above=0,
    )
    variables_interval_s: float = setting(
        0.2, "Seconds between two polls for newer policy variables.", above=0, at_most=3_600
    )


@dataclasses.dataclass(frozen=True)
class LearnConfig:
    """The learner."""

    train_steps: int = setting(100_000, "Train steps after which the run has finished.", at_least=1)
    batch_size: int = setting(
        256,
        "Transitions in one train step, over all replicas together; with dqn and an LSTM, sequences.",
        at_least=1,
    )
    train_steps_per_call: int = setting(
        10,
        "Maximum train steps in one call of the training graph; a call also ends where a publication, a "
        "checkpoint or an evaluation is due.",
        at_least=1,
    )
    publish_interval: int = setting(
        20, "Train steps between two publications of the policy variables.", at_least=1
    )
    checkpoint_interval: int = setting(
        10_000,
        "Train steps between two checkpoints, each with its SavedModels. One is also written if ten minutes "
        "have passed since the last one, and when the learner stops.",
        at_least=1,
    )
    summary_interval: int = setting(
        1_000,
        "Train steps between two of the agent's own TensorBoard summaries. The curves of the metrics do not "
        "depend on it.",
        at_least=1,
    )
    intra_op_threads: int = setting(
        1,
        "Threads for one operation of the learner on CPUs. Small networks are faster with one thread, "
        "because their operations run in parallel on all cores.",
        at_least=1,
        at_most=1_024,
    )
    precision: str = setting(
        "float32",
        "Precision of matrix products: float32, or bfloat16 with weights, losses and optimisers in float32, "
        "which is faster on CPUs with AMX or AVX512-BF16; on a GPU, measure it. Policies act in float32.",
        choices=("float32", "bfloat16"),
    )
    xla: bool = setting(
        False,
        "Compiles the train step with XLA: faster on a GPU, slower on a CPU. Only with learn.strategy "
        "default, and without the agent's own TensorBoard summaries.",
    )
    profile: str | None = setting(
        None,
        "START,STOP: train steps between which the TensorFlow profiler records the learner, for "
        "TensorBoard's profile plugin. Null: no profile.",
    )
    strategy: str = setting(
        "default",
        "tf.distribute strategy: default (one device), mirrored (all GPUs), mirrored:N (N logical CPU "
        "devices), tpu, or multi_worker_mirrored (a group of learners, each on its own host with all its "
        "GPUs, or its CPU; the environment variable TF_CONFIG lists all workers and this one's index).",
    )


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """The eval actor."""

    kwargs: dict[str, Any] = setting(
        {},
        "Keyword arguments of the environment of evaluations, rollouts and videos, in addition to "
        "environment.kwargs.",
    )
    interval: int | None = setting(
        10_000,
        "Train steps between two evaluations; step 0 and the last are always evaluated. Null: evaluation is "
        "off, and the run keeps no best policy.",
        at_least=1,
    )
    episodes: int = setting(20, "Episodes of the greedy policy in one evaluation.", at_least=1)
    environments: int = setting(
        1,
        "Environments of the eval actor, which acts in all of them with one policy call; at most one per "
        "episode is made.",
        at_least=1,
        at_most=10_000,
    )
    max_steps: int | None = setting(
        None,
        "Env steps after which an episode of an evaluation, a rollout or a video is cut off; its return so "
        "far counts. Null: no limit.",
        at_least=1,
    )
    video_interval: int | None = setting(
        None,
        "Train steps between two videos of one episode, recorded after an evaluation. Null: no videos.",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True)
class Config:
    """One experiment: everything that determines what is learned and how."""

    environment: EnvironmentConfig = dataclasses.field(default_factory=EnvironmentConfig)
    agent: AgentConfig = dataclasses.field(default_factory=AgentConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    collect: CollectConfig = dataclasses.field(default_factory=CollectConfig)
    learn: LearnConfig = dataclasses.field(default_factory=LearnConfig)
    evaluate: EvaluateConfig = dataclasses.field(default_factory=EvaluateConfig)
    seed: int = setting(
        0,
        "Seed of networks, policies and environments, combined with the role, its index and, after a "
        "restart, the steps that the role had recorded or restored.",
        at_least=0,
    )
    callbacks: list[str] = setting(
        [],
        "module:Class of each of your own callbacks, called at episodes, evaluations, publications and "
        "checkpoints; see actorlearner.callbacks. They may differ between the roles of a run, and are not "
        "part of the fingerprint. In local mode, they reach other machines only with --network host.",
    )

    @property
    def evaluated_environment(self) -> EnvironmentConfig:
        """The environment section of evaluations, rollouts and videos: with `evaluate.kwargs`."""
        kwargs = {**self.environment.kwargs, **self.evaluate.kwargs}
        return dataclasses.replace(self.environment, kwargs=kwargs)
