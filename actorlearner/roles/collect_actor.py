"""A collect actor: steps its environments with the newest policy and writes every transition."""

import logging
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from actorlearner.agents.make import make_agent
from actorlearner.callbacks.callback import Episode
from actorlearner.callbacks.caller import Callbacks
from actorlearner.collect_metrics import CollectMetrics
from actorlearner.config.schema import Config
from actorlearner.environments.batch import EnvironmentBatch, EpisodeStatistics
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.files.run_directory import RunDirectory
from actorlearner.health.pulse import beat
from actorlearner.lifecycle.start_up import StartUp
from actorlearner.lifecycle.stop import Stop
from actorlearner.machine.choices import collect_actors, envs_per_actor
from actorlearner.machine.devices import use_cpu
from actorlearner.policy_function import PolicyFunction, RandomFunction
from actorlearner.replay.barred import BarredTime
from actorlearner.replay.connection import connect
from actorlearner.replay.layout import make_layout
from actorlearner.replay.status import ReplayMonitor, ServerMonitor
from actorlearner.replay.transition import RANDOM_POLICY
from actorlearner.replay.watch import ServerWatch
from actorlearner.replay.writer import ReplayWriter
from actorlearner.reverb_calls import UNREACHABLE
from actorlearner.time_shares import TimeShares
from actorlearner.variables.container import PolicyOrder, assigner
from actorlearner.variables.puller import VariablePuller
from actorlearner.waiting import WaitReport, wait_until

_log = logging.getLogger(__name__)

_ROLE = "collect-actor"
_FLUSH_TIMEOUT_S = 0.5
_CLOSE_TIMEOUT_S = 2.0
_STATUS_TIMEOUT_S = 5
_BARRED_TIMEOUT_S = 1  # For a figure of a record: acting stands still meanwhile.
_FIRST_VARIABLES_DEADLINE_S = 600.0
_RANDOM = PolicyOrder(generation=-1, train_step=RANDOM_POLICY)


def run(
    config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...], actor_index: int
) -> None:
    """Collects until `stop`, or until the policy of the last train step arrives.

    Args:
      config: the experiment.
      directory: where metrics and summaries are written.
      stop: ends collecting.
      replay_address: HOST:PORT of each replay server; the first has the policy variables.
      actor_index: tells this actor from the others; it decides the seeds, and which server it writes to.

    Raises:
      ConfigurationError: the environment or the agent cannot be made.
      RunError: a replay server or the first variables did not come in time.
    """
    start_up = StartUp()
    use_cpu(threads=1)
    tf.random.set_seed(seed_for(config.seed, _ROLE, actor_index))
    callbacks = Callbacks(config, f"{_ROLE}-{actor_index}")
    count = envs_per_actor(config.collect)
    environments = [
        load_guarded(config.environment, config.seed, _ROLE, actor_index, i) for i in range(count)
    ]
    specs = environment_specs(environments[0])
    start_up.ended("environments")
    layout = make_layout(config, specs)
    place = actor_index % len(replay_address)
    servers = connect(replay_address, sorted({0, place}), layout, directory, config, stop)
    if servers is None:
        return
    callbacks.begin(directory)
    start_up.ended("replay server")
    interval_s = config.collect.variables_interval_s
    puller = VariablePuller(servers[0].address, interval_s, stop, directory.run_id)
    own = servers[-1]
    # The puller looks at the first server anyway.
    watch = ServerWatch(own, layout, stop) if place > 0 else None
    replay = ServerMonitor(own.client, layout)
    collector = Collector(
        EnvironmentBatch(environments),
        layout.writer(own.client, count),
        replay,
        puller,
        CollectMetrics(directory, actor_index),
        config.learn.train_steps,
        stop,
        watch,
        callbacks.tell,
    )
    start_up.ended("first observations")
    start_up.tell("ready")
    random_seed = seed_for(config.seed, f"{_ROLE} random actions", actor_index)
    _act_randomly(config, collector, replay, RandomFunction(specs, count, random_seed))
    _act_with_policy(config, collector, specs, puller, stop)
    collector.close()
    callbacks.close(stopped=stop.requested)


def _act_randomly(
    config: Config, collector: "Collector", replay: ReplayMonitor, policy: RandomFunction
) -> None:
    """Acts randomly until the actors of this server have together put `initial_random_steps` into it."""
    wanted = config.collect.initial_random_steps
    while not collector.ended and (missing := wanted - _env_steps_in_replay(replay)) > 0:
        # Half of this actor's share, and then another look: the other actors may be faster or slower.
        share = missing / collect_actors(config.collect) / envs_per_actor(config.collect)
        for _ in range(math.ceil(share / 2)):
            if collector.ended:
                return
            collector.step(policy, _RANDOM)


def _env_steps_in_replay(replay: ReplayMonitor) -> int:
    try:
        return replay.status(_STATUS_TIMEOUT_S).inserts
    except UNREACHABLE:
        return 0  # Unknown: acting goes on meanwhile, and the writer keeps what it cannot send.


def _act_with_policy(
    config: Config, collector: "Collector", specs: EnvironmentSpecs, puller: VariablePuller, stop: Stop
) -> None:
    """Acts with the collect policy, always with the newest variables that have arrived."""
    if collector.ended:
        return
    parts = make_agent(config, specs)
    policy = PolicyFunction(parts.agent.collect_policy, specs, envs_per_actor(config.collect))
    update = assigner(parts.policy_variables, parts.train_step)
    what = "the first policy variables from the learner"
    deadline = _FIRST_VARIABLES_DEADLINE_S
    # `ended` raises what would keep them from ever coming.
    if not wait_until(what, lambda: collector.ended or puller.train_step >= 0, stop, deadline_s=deadline):
        return
    order = _RANDOM
    while not collector.ended:
        version = puller.take()
        if version is not None:
            update(version)
            order = version.order
        collector.step(policy, order)


class Collector:
    """Takes env steps, writes the transitions and keeps the statistics."""

    def __init__(
        self,
        environments: EnvironmentBatch,
        writer: ReplayWriter,
        replay: ReplayMonitor,
        puller: VariablePuller,
        metrics: CollectMetrics,
        train_steps: int,
        stop: Stop,
        watch: ServerWatch | None = None,
        tell: Callable[[Episode], None] = lambda episode: None,
    ) -> None:
        """Begins at the environments' first observations.

        `watch` tells if the server is another run's; `tell` is called with each episode.
        """
        self._environments = environments
        self._writer = writer
        self._replay = replay
        self._puller = puller
        self._metrics = metrics
        self._train_steps = train_steps
        self._stop = stop
        self._watch = watch
        self._episodes = EpisodeStatistics(len(environments.first), ended=self._episode_ended)
        self._tell = tell
        self._env_steps = 0
        self._policy = _RANDOM
        self._time = TimeShares("environment", "policy", "writing", "variables")
        self._barred = BarredTime()

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to collect: a stop, or the policy of the last train step."""
        if self._watch is not None:
            self._watch.check()
        return self._stop.requested or self._puller.train_step >= self._train_steps

    def step(self, policy: Callable[..., object], order: PolicyOrder) -> None:
        """Takes one env step in each environment; blocks while the rate limiter holds inserts back.

        Args:
          policy: chooses the actions.
          order: of its variables.
        """
        self._time.spent("variables")  # All that is done between two env steps.
        action = policy(self._environments.observations, self._environments.first)
        self._time.spent("policy")
        steps = self._environments.step(action, order.train_step)
        self._time.spent("environment")
        self._writer.write(steps)
        self._time.spent("writing")
        self._env_steps += int(np.count_nonzero(steps.valid))
        self._policy = order
        self._episodes.add(steps)
        beat("env step", self._env_steps)
        self._time.spent()
        self._wait_for_replay()
        self._report()
        self._time.spent()

    def _episode_ended(self, environment: int, episode_return: float, length: int) -> None:
        self._tell(Episode(environment, episode_return, length, self._env_steps, self._policy.train_step))

    def _wait_for_replay(self) -> None:
        report = WaitReport()
        while not self._flush() and not self.ended:
            report.say(self._why_waiting)
            beat("waiting for replay to take transitions")
            self._report()

    def _flush(self) -> bool:
        flushed = self._writer.flush(_FLUSH_TIMEOUT_S)
        self._time.spent("writing")
        return flushed

    def _why_waiting(self) -> str:
        try:
            status = self._replay.status(_STATUS_TIMEOUT_S)
        except UNREACHABLE:
            return "the replay server, which does not answer; transitions are kept until it does"
        return (
            f"the rate limiter to let transitions in: the learner has sampled {status.samples:,} for "
            f"{status.inserts:,} inserted"
        )

    def _report(self, *, final: bool = False) -> None:
        age = self._puller.age_s if self._policy != _RANDOM else None
        self._metrics.report(
            self._env_steps,
            self._episodes,
            self._policy,
            age,
            self._environments.faults,
            self._fractions,
            final=final,
        )

    def _fractions(self) -> dict[str, float | None]:
        """Of the time since the last record, by the keys that they have in it."""
        spent = self._time.take()
        # While the rate limiter bars inserts, a wait for the server's confirmation is a wait for the limiter.
        barred = self._inserts_barred()
        limiter = None if barred is None else min(spent["writing"], barred)
        spent["writing"] -= limiter or 0.0
        return {
            **{f"{part}_fraction": fraction for part, fraction in spent.items()},
            "rate_limiter_wait_fraction": limiter,
        }

    def _inserts_barred(self) -> float | None:
        """The fraction of the time since the last record; None where that cannot be told."""
        try:
            fractions = self._barred.update(self._replay.status(_BARRED_TIMEOUT_S))
        except UNREACHABLE:
            return None
        return None if fractions is None else fractions.inserts

    def close(self) -> None:
        """Writes what is pending, within a bound, and closes everything."""
        if not self._writer.close(_CLOSE_TIMEOUT_S):
            _log.info("the replay server did not take the last transitions in time; they are left out")
        self._report(final=True)
        self._environments.close()
