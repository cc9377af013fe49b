"""The eval actor: plays the greedy policy of exactly the train steps that are to be evaluated."""

import dataclasses
import logging
from collections.abc import Callable, Sequence

import numpy as np
import reverb
import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.acting.best_facts import Returns
from actorlearner.acting.best_policy import BestPolicy
from actorlearner.acting.episodes import Episode, play_episodes
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.saved_policy import load_policy
from actorlearner.acting.training_videos import TrainingVideos
from actorlearner.agents.make import make_agent
from actorlearner.callbacks.callback import Evaluation
from actorlearner.callbacks.caller import Callbacks
from actorlearner.config.schema import Config
from actorlearner.environments.guarded import load_guarded
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.errors import ConfigurationError
from actorlearner.process.devices import use_cpu
from actorlearner.process.heartbeat import beat
from actorlearner.process.memory import resident_bytes
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.waiting import WaitReport, wait_until
from actorlearner.records.digits import decimals
from actorlearner.records.hyperparameters import write_hyperparameters
from actorlearner.records.metrics import MetricsWriter, read_records
from actorlearner.records.notify import warn
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries
from actorlearner.replay.connection import connect
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import UNREACHABLE, within
from actorlearner.replay.starts import count_start
from actorlearner.variables.container import EvaluationRequest, VariableContainer, assigner

_log = logging.getLogger(__name__)

_ROLE = "eval-actor"
_POLL_S = 0.2
_STATUS_TIMEOUT_S = 5
_PULL_TIMEOUT_S = 30.0


def run(config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...]) -> None:
    """Evaluates until the policy of the last train step has been, or `stop`, and keeps the best policy.

    A version stays in the queue until its evaluation is recorded, so that an eval actor that is started again
    leaves no gap; one that was recorded before is not evaluated again.

    Args:
      config: the experiment.
      directory: where metrics and summaries are written.
      stop: ends it; an evaluation that is not complete is not recorded.
      replay_address: HOST:PORT of each replay server; the first has the queue, and the others are not asked.

    Raises:
      ConfigurationError: the environment or the agent cannot be made.
      RunError: the replay server did not come in time.
    """
    start_up = StartupTimer()
    use_cpu(threads=1)
    tf.keras.utils.set_random_seed(seed_for(config.seed, _ROLE, 0))
    environment = load_guarded(config.environment, config.seed, _ROLE, 0, 0)
    specs = environment_specs(environment)
    callbacks = Callbacks(config, _ROLE)
    parts = make_agent(config, specs)
    policy = PolicyFunction(greedy_policy.GreedyPolicy(parts.agent.policy), specs, batch_size=1)
    update = assigner(parts.policy_variables, parts.train_step)
    start_up.ended("environment and agent")
    servers = connect(replay_address, [0], make_layout(config, specs), directory, config, stop)
    if servers is None:
        return
    if life := count_start(servers[0].client, _ROLE, stop):
        environment.close()
        environment = load_guarded(config.environment, config.seed, _ROLE, 0, 0, life)
    container = VariableContainer(reverb.Client(servers[0].address), directory.run_id)
    callbacks.begin(directory)
    record = EvaluationRecorder(directory, config)
    best = BestPolicy(directory, parts, config, update)
    videos = TrainingVideos(directory, config, policy, update, _ROLE)
    start_up.ended("replay server")
    start_up.report("ready")
    while record.train_step < config.learn.train_steps:
        request = _next_request(container, videos, stop)
        if request is None:
            break
        if request.version.train_step > record.train_step:
            update(request.version)
            episodes = play_episodes(environment, policy, config.evaluate.episodes, stop)
            if episodes is None:
                break
            best.consider(request.version, Returns(*map(list, zip(*episodes, strict=True))))
            record.write(request, episodes)
            if not _wait_for_room("the evaluation", record.flush, stop):
                break
            callbacks.notify(
                Evaluation(
                    request.version.train_step, request.env_steps, *map(list, zip(*episodes, strict=True))
                )
            )
            best.replace()
            videos.begin(request.version)
        _finish(container, request, stop)
    environment.close()
    if record.train_step >= config.learn.train_steps:
        while videos.pending and not stop.requested:
            videos.work(_POLL_S)
        _play_best(best, config, directory, specs, stop)
    videos.discard()
    callbacks.close(stopped=stop.requested)


def _wait_for_room(what: str, write: Callable[[], bool], stop: Stop) -> bool:
    """Tries to write `what` until the disk has room for it; returns False at a stop."""
    return wait_until(f"room on the disk for {what}", write, stop, deadline_s=None, interval_s=1.0)


def _play_best(
    best: BestPolicy, config: Config, directory: RunDirectory, specs: EnvironmentSpecs, stop: Stop
) -> None:
    """Plays the saved best policy on seeds that it was not chosen for, unless that is recorded.

    The best of many averages is too good by chance: it was chosen for that.
    """
    best.prepare()
    best.replace()
    facts = best.facts
    if facts is None or facts.fresh is not None or stop.requested:
        return
    try:
        policy = load_policy(PolicySource(directory.best_policy, False, config, directory), specs)
    except ConfigurationError as error:
        warn(f"the best policy is not evaluated once more: {error}")
        return
    environment = load_guarded(config.environment, config.seed, f"{_ROLE}, best policy", 0, 0)
    episodes = play_episodes(environment, policy.function, config.evaluate.episodes, stop)
    environment.close()
    if episodes is None:
        return
    fresh = Returns(*map(list, zip(*episodes, strict=True)))
    judged = dataclasses.replace(facts, fresh=fresh)
    if _wait_for_room("what the best policy did", lambda: best.record_fresh(judged), stop):
        _log.info("best policy: %s", judged.describe())


def _next_request(
    container: VariableContainer, videos: TrainingVideos, stop: Stop
) -> EvaluationRequest | None:
    """Waits for the next version to evaluate, and makes videos meanwhile; returns None at a stop."""
    report = WaitReport()
    while not stop.wait(0.0 if videos.pending else _POLL_S):
        videos.work(_POLL_S)
        beat("waiting for the next policy to evaluate")
        try:
            if container.evaluations_waiting(_STATUS_TIMEOUT_S):
                return within(_PULL_TIMEOUT_S, container.next_evaluation)
        except UNREACHABLE:
            report.log("the replay server, which does not answer")
            continue
        report.log("the next policy to evaluate")
    return None


def _finish(container: VariableContainer, request: EvaluationRequest, stop: Stop) -> None:
    """Removes a request from the queue, once the replay server answers."""

    def removed() -> bool:
        try:
            within(_PULL_TIMEOUT_S, lambda: container.is_evaluated(request))
        except UNREACHABLE:
            return False
        return True

    wait_until("the replay server to remove a request", removed, stop, deadline_s=None)


class EvaluationRecorder:
    """Writes evaluations to the metrics file and to TensorBoard.

    Attributes:
      train_step: the last that was recorded, also by an eval actor before this one; -1 before the first.
    """

    def __init__(self, directory: RunDirectory, config: Config) -> None:
        """Goes on after what is recorded of this configuration's run."""
        recorded = read_records(directory.metrics("eval"))
        self.train_step = int(recorded[-1]["train_step"]) if recorded else -1
        self._metrics = MetricsWriter(directory.metrics("eval"))
        self._summaries = Summaries(directory.summaries("eval"))
        write_hyperparameters(self._summaries, config)

    def write(self, request: EvaluationRequest, episodes: Sequence[Episode]) -> None:
        """Records the evaluation of exactly the version that `request` holds."""
        train_step = request.version.train_step
        returns, lengths = ([*column] for column in zip(*episodes, strict=True))
        average_return, average_length = float(np.mean(returns)), float(np.mean(lengths))
        curves = {"eval/AverageReturn": average_return, "eval/AverageEpisodeLength": average_length}
        self._summaries.scalars(curves, train_step)
        self._summaries.flush()
        # Last: what is recorded is not evaluated again, and its points would be missing for ever.
        self._metrics.write(
            {
                "train_step": train_step,
                "env_steps": request.env_steps,
                "returns": returns,
                "lengths": lengths,
                "average_return": average_return,
                "average_episode_length": average_length,
                "memory_bytes": resident_bytes(),
            }
        )
        self.train_step = train_step
        _log.info(
            "train step %d: AverageReturn %.*f, AverageEpisodeLength %.1f over %d episodes",
            train_step,
            decimals(average_return),
            average_return,
            average_length,
            len(returns),
        )

    def flush(self) -> bool:
        """Writes what a full disk has kept out; returns whether everything is written."""
        written = [self._metrics.flush(), self._summaries.flush()]
        return all(written)
