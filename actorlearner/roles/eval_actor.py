"""The eval actor: evaluates the greedy policy at exactly the requested train steps."""

import dataclasses
import logging
from collections.abc import Callable, Sequence

import reverb
import tensorflow as tf
from tf_agents.policies import greedy_policy

from actorlearner.acting.best_policy import BestPolicy
from actorlearner.acting.best_record import EpisodeStatistics
from actorlearner.acting.episodes import PlayedEpisode, play_episodes
from actorlearner.acting.evaluation_recorder import EvaluationRecorder, last_train_step
from actorlearner.acting.policy_function import PolicyFunction
from actorlearner.acting.policy_source import PolicySource
from actorlearner.acting.saved_policy import load_source
from actorlearner.acting.training_videos import TrainingVideos
from actorlearner.agents.make import make_agent
from actorlearner.callbacks.callback import Evaluation
from actorlearner.callbacks.caller import Callbacks
from actorlearner.config.schema import Config
from actorlearner.environments.guarded import GuardedEnvironment, load_guarded
from actorlearner.environments.info import info_of_episodes
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import EnvironmentSpecs, environment_specs
from actorlearner.errors import ConfigurationError
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.role_names import EVAL_ACTOR
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import limit_tensorflow
from actorlearner.process.waiting import WaitReport, wait_for_room, wait_until
from actorlearner.records.notify import warn
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.connection import connect
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.variables.container import EvaluationRequest, PolicyVariables, VariableContainer, assigner

_log = logging.getLogger(__name__)

_POLL_S = 0.2
_STATUS_TIMEOUT_S = 5


def run(config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...]) -> None:
    """Evaluates until `stop` or the policy of the last train step, and keeps the best policy.

    A request stays in the queue until its evaluation is recorded, so a restarted eval actor skips none. It
    does not repeat recorded evaluations either, except for train steps that a restarted learner takes again.
    Returns at once if evaluation is off.

    Args:
      config: the experiment.
      directory: the run directory, for metrics, summaries, the best policy and videos.
      stop: ends the role; an incomplete evaluation is not recorded.
      replay_address: HOST:PORT of each replay server; only the first, which has the queue, is used.

    Raises:
      ConfigurationError: the environment or the agent cannot be made.
      RunError: the replay server did not appear in time, a server of another run has replaced it, or an
        environment failed too often in a row.
    """
    if config.evaluate.interval is None:
        _log.info("evaluation is off (evaluate.interval: null)")
        return
    start_up = StartupTimer()
    limit_tensorflow(threads=1)
    tf.keras.utils.set_random_seed(seed_for(config.seed, EVAL_ACTOR, 0))
    # A restarted eval actor gets other seeds; otherwise it would play the same episodes again.
    environments = _load_environments(config, restart=last_train_step(directory) + 1)
    specs = environment_specs(environments[0])
    callbacks = Callbacks(config, EVAL_ACTOR)
    parts = make_agent(config, specs)
    greedy = greedy_policy.GreedyPolicy(parts.agent.policy)
    policy = PolicyFunction(greedy, specs, len(environments))
    # Videos need their own policy function: it keeps a policy state, and evaluations interrupt a video.
    filmed = policy if config.evaluate.video_interval is None else PolicyFunction(greedy, specs, 1)
    update = assigner(parts.policy_variables, parts.train_step)
    start_up.ended("environment and agent")

    servers = connect(replay_address, [0], make_layout(config, specs), directory, config, stop)
    if servers is None:
        return
    container = VariableContainer(reverb.Client(servers[0].address), directory.run_id)
    callbacks.begin(directory)
    recorder = EvaluationRecorder(directory, config)
    best = BestPolicy(directory, parts, config, update)
    videos = TrainingVideos(directory, config, filmed, update)
    start_up.ended("replay server")
    start_up.report("ready")

    evaluator = _Evaluator(config, environments, policy, update, recorder, best, videos, callbacks)
    evaluator.serve(container, stop)
    _close(environments)
    while videos.pending and not stop.requested:
        videos.work(_POLL_S)
    if not stop.requested:
        _play_best(best, config, directory, specs, stop)
    videos.discard()
    callbacks.close(stopped=stop.requested)


@dataclasses.dataclass(frozen=True)
class _Evaluator:
    """Evaluates the requested versions, one after the other."""

    config: Config
    environments: Sequence[GuardedEnvironment]
    policy: PolicyFunction
    update: Callable[[PolicyVariables], None]
    recorder: EvaluationRecorder
    best: BestPolicy
    videos: TrainingVideos
    callbacks: Callbacks

    def serve(self, container: VariableContainer, stop: Stop) -> None:
        """Blocks until the policy of the last train step is evaluated, or a stop."""
        generation: int | None = None
        while self.recorder.train_step < self.config.learn.train_steps:
            request = _next_request(container, self.videos, stop)
            if request is None:
                return
            version = request.version
            learner_restarted = generation is not None and version.generation > generation
            generation = max(version.generation, generation or 0)
            is_new = version.train_step > self.recorder.train_step or learner_restarted
            if is_new and not self._evaluate(request, stop):
                return
            _remove_request(container, request, stop)

    def _evaluate(self, request: EvaluationRequest, stop: Stop) -> bool:
        """Plays and records an evaluation; returns False if a stop came first."""
        self.update(request.version)
        episodes = play_episodes(
            self.config, self.environments, self.policy, self.config.evaluate.episodes, stop
        )
        if episodes is None:
            return False
        evaluation = _evaluation(request, episodes, self.config.environment.info_metrics)
        self.best.consider(request.version, _statistics(episodes))
        self.recorder.write(evaluation, sum(episode.cut_off for episode in episodes))
        if not wait_for_room("the evaluation", self.recorder.flush, stop):
            return False
        self.callbacks.notify(evaluation)
        self.best.replace()
        self.videos.begin(request.version)
        return True


def _load_environments(config: Config, restart: int = 0, purpose: str = "") -> list[GuardedEnvironment]:
    """Loads the environments of evaluations, at most one for each episode."""
    count = min(config.evaluate.environments, config.evaluate.episodes)
    environment = config.evaluated_environment
    return [load_guarded(environment, config.seed, EVAL_ACTOR, 0, j, restart, purpose) for j in range(count)]


def _close(environments: Sequence[GuardedEnvironment]) -> None:
    for environment in environments:
        environment.close()


def _statistics(episodes: Sequence[PlayedEpisode]) -> EpisodeStatistics:
    return EpisodeStatistics([each.episode_return for each in episodes], [each.length for each in episodes])


def _evaluation(
    request: EvaluationRequest, episodes: Sequence[PlayedEpisode], info_metrics: Sequence[str]
) -> Evaluation:
    return Evaluation(
        request.version.train_step,
        request.env_steps,
        returns=[episode.episode_return for episode in episodes],
        lengths=[episode.length for episode in episodes],
        info=info_of_episodes(info_metrics, [episode.info for episode in episodes]),
    )


def _play_best(
    best: BestPolicy, config: Config, directory: RunDirectory, specs: EnvironmentSpecs, stop: Stop
) -> None:
    """Evaluates the saved best policy on fresh seeds, unless this evaluation is recorded already.

    The average return by which the policy was chosen is biased upwards: it is the best of many.
    """
    best.prepare()
    best.replace()
    record = best.record
    if record is None or record.fresh is not None or stop.requested:
        return
    beat("loading the best policy", patience_s=LONG_PATIENCE_S)
    source = PolicySource(directory.best_policy, is_checkpoint=False, config=config, run=directory)
    try:
        policy = load_source(source, specs)
    except ConfigurationError as error:
        warn(f"the best policy is not evaluated on fresh seeds: {error}")
        return
    environments = _load_environments(config, purpose="best policy")
    function = policy.function_for(len(environments))
    episodes = play_episodes(config, environments, function, config.evaluate.episodes, stop)
    _close(environments)
    if episodes is None:
        return
    judged = dataclasses.replace(record, fresh=_statistics(episodes))
    if wait_for_room("the evaluation of the best policy", lambda: best.record_fresh(judged), stop):
        _log.info("best policy: %s", judged.describe())


def _next_request(
    container: VariableContainer, videos: TrainingVideos, stop: Stop
) -> EvaluationRequest | None:
    """Blocks until the next request and works on videos meanwhile; returns None at a stop."""
    report = WaitReport()
    while not stop.wait(0.0 if videos.pending else _POLL_S):
        videos.work(_POLL_S)
        beat("waiting for the next policy to evaluate")
        try:
            if container.status(_STATUS_TIMEOUT_S).evaluations_waiting:
                return container.next_evaluation()
        except UNREACHABLE:
            report.log("the replay server, which does not answer")
            continue
        report.log("the next policy to evaluate")
    return None


def _remove_request(container: VariableContainer, request: EvaluationRequest, stop: Stop) -> None:
    """Removes a request from the queue; blocks until the replay server answers, or a stop."""

    def removed() -> bool:
        try:
            container.status(_STATUS_TIMEOUT_S)  # Fails sooner than the next call.
            container.remove_evaluation(request)
        except UNREACHABLE:
            return False
        return True

    wait_until("the replay server to remove a request", removed, stop, deadline_s=None)
