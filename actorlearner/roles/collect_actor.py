"""The collect actor: acts with the newest policy and writes every transition to replay."""

import dataclasses
import functools
import math

import numpy as np
import tensorflow as tf
import tree

from actorlearner.acting.collect_metrics import RANDOM_ORDER, CollectMetrics, recorded_env_steps
from actorlearner.acting.collector import ActingPolicy, Collector
from actorlearner.acting.pace import Pace
from actorlearner.acting.policy_function import PolicyFunction, RandomPolicy, ScriptedPolicy
from actorlearner.agents.experience import Experience
from actorlearner.agents.make import make_agent
from actorlearner.agents.registry import find_builder
from actorlearner.callbacks.caller import Callbacks
from actorlearner.config.problems import problem
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.load import episode_limit
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.errors import ConfigurationError
from actorlearner.process.cores import collect_actors, envs_per_actor
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.role_names import COLLECT_ACTOR
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import limit_children, limit_tensorflow
from actorlearner.process.waiting import wait_until
from actorlearner.records.notify import warn
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.connection import ReplayServer, connect
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.watched_servers import WatchedServer
from actorlearner.variables.container import PolicyOrder, assigner
from actorlearner.variables.puller import VariablePuller

_STATUS_TIMEOUT_S = 5
_NEXT_POLICY_S = 0.01
_FIRST_VARIABLES_DEADLINE_S = 600.0

_FORGIVEN_AFTER = 1_000
"""Env steps without a fault after which an environment's faults do not count: an episode may never end."""


def run(
    config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...], actor_index: int
) -> None:
    """Collects until `stop`, or until the policy of the last train step arrives.

    Args:
      config: the experiment.
      directory: where metrics and summaries are written.
      stop: ends collecting.
      replay_address: HOST:PORT of each replay server; the first has the policy variables.
      actor_index: this actor's index; determines its seeds and the server it writes to.

    Raises:
      ConfigurationError: the environment or the agent cannot be made.
      RunError: a replay server or the first policy variables did not appear in time, a server of another run
        has replaced this run's, or an environment failed too often in a row.
    """
    start_up = StartupTimer()
    limit_tensorflow(config.collect.threads, gpus=config.collect.gpus)
    # A restarted actor gets other seeds; otherwise it would play the same episodes again.
    restart = recorded_env_steps(directory, actor_index)
    seed = functools.partial(seed_for, config.seed, index=actor_index, restart=restart)
    tf.keras.utils.set_random_seed(seed(COLLECT_ACTOR))
    callbacks = Callbacks(config, f"{COLLECT_ACTOR}-{actor_index}")
    environments = _load_environments(config, actor_index, restart)
    specs = environment_specs(environments[0])
    start_up.ended("environments")

    layout = make_layout(config, specs)
    experience = layout.experience
    places = sorted({0, actor_index % len(replay_address)})
    servers = connect(replay_address, places, layout, directory, config, stop)
    if servers is None:
        return
    first, own = servers[0], servers[-1]  # The first server has the policy variables; it may be its own.
    callbacks.begin(directory)
    start_up.ended("replay server")

    puller = VariablePuller(first.address, config.collect.variables_interval_s, stop, directory.run_id)
    watched = None if own is first else WatchedServer(own, stop)  # The puller polls the first one.
    cut_after = _cut_after(config, experience, seed(f"{COLLECT_ACTOR} first episodes"))
    batch = EnvironmentBatch(environments, cut_after)
    metrics = CollectMetrics(directory, actor_index, batch, own, puller, config.environment.info_metrics)
    collector = Collector(config, batch, own, puller, metrics, stop, watched, callbacks.notify)
    start_up.ended("first observations")
    start_up.report("ready")

    if experience.iteration is None:
        initial = _initial_policy(config, specs, experience, seed(f"{COLLECT_ACTOR} random actions"))
        _act_initially(config, collector, own, initial)
    if not collector.ended:
        policy = _NewestPolicy(config, specs, actor_index, puller)
        pace = _make_pace(config, experience, actor_index)
        _act(collector, policy, pace, experience.length or 1, stop)
    collector.close()
    callbacks.close(stopped=stop.requested)


def _load_environments(config: Config, actor_index: int, restart: int) -> list[GuardedEnvironment]:
    if config.collect.environment_processes:
        limit_children(config.collect.threads, config.collect.gpus)
    chosen = {name: values[actor_index % len(values)] for name, values in config.collect.actor_kwargs.items()}
    environment = dataclasses.replace(config.environment, kwargs={**config.environment.kwargs, **chosen})
    return [
        load_guarded(
            environment,
            config.seed,
            COLLECT_ACTOR,
            actor_index,
            i,
            restart,
            own_process=config.collect.environment_processes,
            forgiven_after=_FORGIVEN_AFTER,
        )
        for i in range(envs_per_actor(config.collect))
    ]


def _cut_after(config: Config, experience: Experience, seed: int) -> list[int] | None:
    """Returns the env steps after which each environment's current episode is cut off, once.

    They differ, so that the environments do not stay in step: otherwise, an iteration would see only one part
    of an episode. None without iterations, or without a time limit.
    """
    limit = None if experience.iteration is None else episode_limit(config.environment)
    if limit is None:
        return None
    count = envs_per_actor(config.collect)
    offset = np.random.RandomState(seed).uniform()
    return [max(1, round(limit * (i + offset) / count)) for i in range(count)]


def _initial_policy(
    config: Config, specs: EnvironmentSpecs, experience: Experience, seed: int
) -> RandomPolicy | ScriptedPolicy:
    """Returns the policy of the first env steps: `collect.initial_policy`, or random actions.

    Raises:
      ConfigurationError: sequences need an info of each action, which only the collect policy gives.
    """
    info_spec, state_spec = find_builder(config.agent.name).policy_specs(config.agent, specs)
    first_steps = config.collect.initial_random_steps
    if experience.length is not None and tree.flatten(info_spec) and first_steps > 0:
        allowed = f"0, because agent.name {config.agent.name} learns from its policy's info of each action"
        raise ConfigurationError(
            [problem("collect.initial_random_steps", f"{first_steps} cannot work", allowed)]
        )
    count = envs_per_actor(config.collect)
    if config.collect.initial_policy is not None:
        return ScriptedPolicy(config.collect.initial_policy, specs, count, state_spec)
    return RandomPolicy(specs, count, seed, state_spec, config.agent.action_mask)


def _act_initially(
    config: Config, collector: Collector, replay: ReplayServer, policy: RandomPolicy | ScriptedPolicy
) -> None:
    """Acts with `policy` until the actors of this server have inserted `collect.initial_random_steps`."""
    wanted = config.collect.initial_random_steps
    while not collector.ended and (missing := _missing_env_steps(wanted, replay)) > 0:
        # Takes half of this actor's share, then checks again: the other actors may be faster or slower.
        share = missing / collect_actors(config.collect) / envs_per_actor(config.collect)
        _step(collector, policy, RANDOM_ORDER, math.ceil(share / 2))


def _missing_env_steps(wanted: int, replay: ReplayServer) -> int:
    """Returns the env steps that replay still lacks; 1 at most if its server does not answer."""
    try:
        return wanted - replay.status(_STATUS_TIMEOUT_S).inserts
    except UNREACHABLE:  # The writer keeps what it cannot send, and the next check follows soon.
        return min(1, wanted)


class _NewestPolicy:
    """The collect policy with the newest variables that have arrived.

    Attributes:
      function: the policy.
      order: generation and train step of its variables.
    """

    def __init__(
        self, config: Config, specs: EnvironmentSpecs, actor_index: int, puller: VariablePuller
    ) -> None:
        beat("making the policy", patience_s=LONG_PATIENCE_S)
        parts = make_agent(config, specs, actor=(actor_index, collect_actors(config.collect)))
        self.function = PolicyFunction(parts.agent.collect_policy, specs, envs_per_actor(config.collect))
        self.order = RANDOM_ORDER
        self._update = assigner(parts.policy_variables, parts.train_step)
        self._puller = puller

    @property
    def arrived(self) -> bool:
        """True once the learner has published a policy."""
        return self._puller.train_step >= 0

    def refresh(self) -> bool:
        """Assigns newer variables if they have arrived; returns whether they have."""
        version = self._puller.take()
        if version is not None:
            self._update(version)
            self.order = version.order
        return version is not None


def _act(collector: Collector, policy: _NewestPolicy, pace: Pace | None, fragment: int, stop: Stop) -> None:
    """Acts from the first variables until the end.

    With a `pace`, it takes `fragment` env steps in each environment whenever `pace` allows it.
    """
    wait_until(
        "the first policy variables from the learner",
        lambda: collector.ended or policy.arrived,
        stop,
        deadline_s=_FIRST_VARIABLES_DEADLINE_S,
    )
    while not collector.ended:
        if policy.refresh() and pace is not None:
            pace.policy_arrived(policy.order.train_step)
        if pace is None:
            collector.step(policy.function, policy.order)
        elif pace.may_collect():
            _step(collector, policy.function, policy.order, fragment)
            pace.collected()
        else:
            collector.wait_for_policy(_NEXT_POLICY_S)


def _step(collector: Collector, policy: ActingPolicy, order: PolicyOrder, env_steps: int) -> None:
    """Takes env steps in each environment, fewer at the end of collecting."""
    for _ in range(env_steps):
        if collector.ended:
            return
        collector.step(policy, order)


def _make_pace(config: Config, experience: Experience, actor_index: int) -> Pace | None:
    """Returns the pace of an on-policy agent; the first actor warns if env steps will be dropped."""
    iteration = experience.iteration
    if iteration is None:
        return None
    actors, environments = collect_actors(config.collect), envs_per_actor(config.collect)
    train_steps = iteration.train_steps(config.learn.batch_size)
    pace = Pace(iteration, experience.stride * environments, actors, train_steps)
    if actor_index == 0 and pace.surplus > 0:  # If both keys are set, `replay_problems` refuses them.
        warn(
            f"{actors} actors x {environments} environments collect {pace.surplus:,} env steps more than an "
            "iteration takes, and these are dropped: set collect.actors and collect.envs_per_actor"
        )
    return pace
