"""The learner: trains the agent on replay under a strategy and publishes its policy's variables."""

import logging
import time
from collections.abc import Sequence

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.config.schema import Config
from actorlearner.connection import ReplayServer, connect
from actorlearner.devices import make_strategy, share_cpus
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import load_specs
from actorlearner.health.pulse import LONG_PATIENCE_S, beat
from actorlearner.learning.checkpoint import LearnerCheckpoint
from actorlearner.learning.first_policies import FirstPolicies
from actorlearner.learning.learner_metrics import LearnerMetrics
from actorlearner.learning.measured_learner import MeasuredLearner
from actorlearner.learning.policy_export import PolicyExport
from actorlearner.learning.publisher import Publisher
from actorlearner.learning.training_loop import TrainingLoop
from actorlearner.learning.training_thread import train_on_a_thread
from actorlearner.process import keep_until_exit
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import ReplayLayout, make_layout
from actorlearner.replay.status import ReplayMonitor, ServerMonitor
from actorlearner.replay.watch import ReplayWatch
from actorlearner.reverb_calls import UNREACHABLE, within
from actorlearner.run_directory import RunDirectory
from actorlearner.start_up import StartUp
from actorlearner.stop import Stop
from actorlearner.summaries import Summaries
from actorlearner.variables.container import VariableContainer
from actorlearner.waiting import wait_until

_log = logging.getLogger(__name__)

_STATUS_TIMEOUT_S = 5
_PUBLISH_TIMEOUT_S = 3.0
_PULL_TIMEOUT_S = 30.0
_HAND_OUT_AFTER_S = 5.0
"""How long replay is given to fill before the first policies are handed out ahead of training."""


def run(config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...]) -> None:
    """Trains until `learn.train_steps`, or `stop`; either way a checkpoint is written at the end.

    Args:
      config: the experiment.
      directory: where checkpoints, policies, metrics and summaries are written.
      stop: ends training after the current call of the training graph.
      replay_address: HOST:PORT of each replay server; the first has the policy variables.

    Raises:
      ConfigurationError: the environment, the agent or the strategy cannot be made.
      RunError: a replay server did not come in time.
    """
    start_up = StartUp()
    share_cpus(config.learn.intra_op_threads)
    strategy = make_strategy(config.learn.strategy, config.learn.batch_size)
    tf.random.set_seed(seed_for(config.seed, "learner", 0))
    specs = load_specs(config.environment)
    with strategy.scope():
        parts = make_agent(config, specs)
    checkpoint = LearnerCheckpoint(directory.learner_checkpoints, parts)
    checkpoint.restore()
    start_up.ended("environment and agent")
    layout = make_layout(config, specs)
    servers = connect(replay_address, range(len(replay_address)), layout, directory, config, stop)
    if servers is None:
        return
    client = servers[0].client
    start_up.ended("replay server")
    checkpoint.begin_generation(_published_generation(client))
    publisher = Publisher(client, parts, checkpoint.generation, directory.run_id)
    # Before the training graph is traced, so that actors and evaluation need not wait for that.
    publisher.publish()
    if checkpoint.generation > 0:
        publisher.take_over(checkpoint.unevaluated())
    first = FirstPolicies(publisher, PolicyExport(directory.policies, parts), int(parts.train_step.numpy()))
    summaries = Summaries(directory.summaries("learner"))
    beat("making the training graph", patience_s=LONG_PATIENCE_S)
    learner = _make_learner(config, summaries, strategy, parts, replay_address, layout)
    keep_until_exit(learner)
    checkpoint.restore_again()  # Making the learner made the target networks copies of the trained ones.
    start_up.ended("training graph")
    replay = _monitor(servers, layout, stop)
    start_up.tell("ready")
    if _wait_for_replay(config, replay, stop, first):
        beat("taking the first train steps", patience_s=LONG_PATIENCE_S)
        start_up.ended("filling replay")
        metrics = LearnerMetrics(directory, summaries)
        loop = TrainingLoop(config, metrics, learner, replay, publisher, checkpoint, first, stop, start_up)
        train_on_a_thread(loop, learner, first, stop)
    if checkpoint.save(publisher.unevaluated()):
        _log.info("checkpoint of train step %d written", int(parts.train_step.numpy()))
    if not publisher.flush(_PUBLISH_TIMEOUT_S):
        _log.warning("the last policy was not published: the replay server does not answer")


def _monitor(servers: Sequence[ReplayServer], layout: ReplayLayout, stop: Stop) -> ReplayMonitor:
    """Asks the only server when its figures are wanted; one of several must not hold up training."""
    if len(servers) == 1:
        return ServerMonitor(servers[0].client, layout)
    return ReplayWatch(servers, layout, stop)


def _published_generation(client: reverb.Client) -> int:
    """The generation of the learner that published last; -1 if none has."""
    container = VariableContainer(client)
    if not container.version(_STATUS_TIMEOUT_S):
        return -1
    newest = within(_PULL_TIMEOUT_S, container.pull)
    _log.warning("this learner takes over from one that had published train step %d", newest.train_step)
    return newest.generation


def _make_learner(
    config: Config,
    summaries: Summaries,
    strategy: tf.distribute.Strategy,
    parts: AgentParts,
    replay_address: tuple[str, ...],
    layout: ReplayLayout,
) -> MeasuredLearner:
    batch_size = config.learn.batch_size
    per_replica = batch_size // strategy.num_replicas_in_sync
    return MeasuredLearner(
        summaries,
        parts,
        lambda: experience_dataset(replay_address, layout, batch_size, per_replica),
        layout.decode,
        summary_interval=config.learn.summary_interval,
        strategy=strategy,
    )


def _wait_for_replay(config: Config, replay: ReplayMonitor, stop: Stop, first: FirstPolicies) -> bool:
    """Waits for `replay.min_size` in every server, however long; returns False at a stop.

    Only where replay does not fill the first policies cannot wait for it: the jobs that are to fill it may
    wait for them.
    """
    hand_out_at = time.monotonic() + _HAND_OUT_AFTER_S

    def filled() -> bool:
        try:
            if replay.least_size(_STATUS_TIMEOUT_S) >= config.replay.min_size:
                return True
        except UNREACHABLE:
            return False
        if time.monotonic() >= hand_out_at:
            first.evaluate()
            first.save()
        return False

    return wait_until(
        f"{config.replay.min_size} transitions in each replay server", filled, stop, deadline_s=None
    )
