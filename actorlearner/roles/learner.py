"""The learner: trains the agent on replay under a strategy and publishes its policy's variables."""

import time
from collections.abc import Mapping, Sequence

import tensorflow as tf

from actorlearner.agents.make import AgentParts, make_agent
from actorlearner.agents.precision import use_bfloat16
from actorlearner.config.schema import Config
from actorlearner.environments.seeds import seed_for
from actorlearner.environments.specs import EnvironmentSpecs, load_specs
from actorlearner.learning.chief_outputs import ChiefOutputs
from actorlearner.learning.group import LearnerGroup, join_group
from actorlearner.learning.iteration_graph import IterationGraph, check_replicas
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.priorities import PriorityWriter
from actorlearner.learning.training_graph import TrainingGraph
from actorlearner.learning.training_loop import train, train_on_thread
from actorlearner.process.heartbeat import LONG_PATIENCE_S, beat
from actorlearner.process.role_names import LEARNER
from actorlearner.process.role_process import keep_until_exit
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from actorlearner.process.tensorflow_setup import use_all_cores
from actorlearner.process.waiting import wait_until
from actorlearner.records.run_directory import RunDirectory
from actorlearner.replay.connection import ReplayServer, connect
from actorlearner.replay.dataset import experience_dataset
from actorlearner.replay.layout import make_layout
from actorlearner.replay.reverb_calls import UNREACHABLE
from actorlearner.replay.status import ReplayStatusSource
from actorlearner.replay.watched_servers import WatchedServers

_STATUS_TIMEOUT_S = 5
_OUTPUT_AFTER_S = 5.0
"""Seconds to wait for `replay.min_size` before the initial policies are saved, ahead of training."""


def run(config: Config, directory: RunDirectory, stop: Stop, *, replay_address: tuple[str, ...]) -> None:
    """Trains until `learn.train_steps` or `stop`, and writes a checkpoint at the end.

    In a group (see `actorlearner.learning.cluster`) each learner first waits for the others, and all end
    after the same call of the training graph; only the chief writes and publishes.

    Args:
      config: the experiment.
      directory: the run directory, for checkpoints, policies, metrics and summaries.
      stop: ends training after the current call of the training graph.
      replay_address: HOST:PORT of each replay server; the first has the policy variables.

    Raises:
      ConfigurationError: the environment, the agent or the strategy cannot be made.
      RunError: a replay server or another learner did not connect in time, or was lost; training has
        diverged; the checkpoint belongs to another agent; or another learner has taken over the run.
    """
    start_up = StartupTimer()
    use_all_cores(config.learn.intra_op_threads)
    group = join_group(config, stop)
    if group is None:
        return
    with group:
        specs = load_specs(config.environment)
        parts = make_seeded_agent(config, specs, group)
        outputs = ChiefOutputs(directory, parts, config, stop) if group.index == 0 else Outputs()
        start_up.ended("environment and agent")
        layout = make_layout(config, specs)
        # Before the first output: a refused start leaves nothing behind.
        check_replicas(layout.experience, config.learn.batch_size, group.strategy.num_replicas_in_sync)
        servers = connect(replay_address, range(len(replay_address)), layout, directory, config, stop)
        if servers is None:
            return
        start_up.ended("replay server")
        replay: ReplayStatusSource = servers[0]
        if len(servers) > 1:
            replay = WatchedServers(servers, stop)

        def begin_run() -> None:
            """Restores the newest checkpoint on the chief, copies it to the group, publishes the policy."""
            outputs.restore(specs, group.strategy)
            group.broadcast(parts.agent, parts.train_step)
            outputs.take_over(servers[0].client, replay)

        if group.size == 1:  # Before the graph is traced, so that actors and evaluation do not wait for it.
            begin_run()
        graph = _make_training_graph(config, outputs.writer, group, parts, servers)
        if group.size > 1:  # After tracing, which makes the optimisers' slots: `broadcast` needs them.
            begin_run()
        outputs.check_restored()
        start_up.ended("training graph")
        start_up.report("ready")
        # Restarted after the last train step, it only publishes the last policies again.
        finished = int(parts.train_step.numpy()) >= config.learn.train_steps
        # Experience that is consumed once has no minimum size.
        consumed_once = layout.experience.iteration is not None
        if finished or consumed_once or _wait_for_replay(config, replay, stop, outputs):
            start_up.ended("filling replay")
            beat("taking the first train steps", patience_s=LONG_PATIENCE_S)
            outputs.begin_training(graph)
            train_on_thread(
                lambda: train(config, group, graph, outputs, start_up), graph, stop, group, outputs.check
            )
        outputs.end(stopped=stop.requested)


def make_seeded_agent(config: Config, specs: EnvironmentSpecs, group: LearnerGroup) -> AgentParts:
    """Makes the agent under the group's strategy; equal seeds give equal initial variables.

    Python's random numbers are seeded as well: Keras draws the seeds of some initialisers from them.
    """
    tf.keras.utils.set_random_seed(seed_for(config.seed, LEARNER, group.index))
    with group.strategy.scope():
        parts = make_agent(config, specs)
    if config.learn.precision == "bfloat16":
        use_bfloat16(parts.agent)
    return parts


def seed_training(seed: int, index: int, restored: int) -> None:
    """Sets the seed for tracing the training graph of a learner that has restored this train step.

    Otherwise the resumed run would repeat the random numbers of its first train steps.
    """
    tf.random.set_seed(seed_for(seed, LEARNER, index, restart=restored))


def _make_training_graph(
    config: Config,
    writer: tf.summary.SummaryWriter,
    group: LearnerGroup,
    parts: AgentParts,
    servers: Sequence[ReplayServer],
) -> TrainingGraph:
    """Traces the training graph, which takes seconds."""
    # Tracing fixes the random numbers, so a resumed learner traces with another seed. A group restores only
    # after tracing: when resumed, it repeats its random numbers.
    if restored := int(parts.train_step.numpy()):
        seed_training(config.seed, group.index, restored)
    beat("making the training graph", patience_s=LONG_PATIENCE_S)
    layout, batch_size = servers[0].layout, config.learn.batch_size
    graph_class: type[TrainingGraph] = TrainingGraph
    per_learner, per_replica = batch_size // group.size, batch_size // group.strategy.num_replicas_in_sync
    if layout.experience.iteration is not None:
        # It gathers single sequences, and makes its own minibatches.
        graph_class, per_learner, per_replica = IterationGraph, 1, 1
    addresses = [server.address for server in servers]
    writers = []
    if layout.experience.priorities is not None:
        writers = [PriorityWriter(server.client, layout.table) for server in servers]
    graph = graph_class(
        parts,
        lambda: experience_dataset(addresses, layout, per_learner, per_replica),
        layout,
        config.learn,
        group=group,
        writer=writer,
        write_priorities=writers,
    )
    keep_until_exit(graph)
    return graph


def _wait_for_replay(config: Config, replay: ReplayStatusSource, stop: Stop, outputs: Outputs) -> bool:
    """Waits for `replay.min_size` in every server, without a deadline; returns False at a stop.

    If replay does not fill for a while, the evaluation of the initial policy is queued and the policies are
    saved as SavedModels: the jobs that fill replay may wait for these files.
    """
    output_at = time.monotonic() + _OUTPUT_AFTER_S
    sizes: dict[str, int] = {}

    def filled() -> bool:
        outputs.check()
        try:
            sizes.update(replay.sizes(_STATUS_TIMEOUT_S))
        except UNREACHABLE:
            return False
        if min(sizes.values()) >= config.replay.min_size:
            return True
        if time.monotonic() >= output_at:
            outputs.output_initial_policies()
        return False

    return wait_until(lambda: _missing(config.replay.min_size, sizes), filled, stop, deadline_s=None)


def _missing(min_size: int, sizes: Mapping[str, int]) -> str:
    """Describes what the learner waits for; names the servers that have too few transitions."""
    wanted = f"{min_size} transitions in each replay server"
    short = [f"{address} holds {size}" for address, size in sizes.items() if size < min_size]
    if len(sizes) == 1 or not short:
        return wanted
    return f"{wanted}: {', '.join(short)} (collect actor I writes to server I modulo {len(sizes)})"
