"""The variable container: the newest policy variables, held by the replay server.

The container has three tables. The first holds one item: the newest `policy_variables` with their
`train_step`. The second is a queue of the versions to evaluate, so that the eval actor gets exactly the
requested train steps, however long an evaluation takes. The third gets one item when the learner has
published its last policies: whether the server has saved them.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import reverb
import tensorflow as tf

from actorlearner.replay.identity import check_same_run
from actorlearner.replay.reverb_calls import sample_one, within

VARIABLES_TABLE = "variables"
EVALUATION_TABLE = "evaluation"
END_TABLE = "end"

_CALL_TIMEOUT_S = 30.0

_GENERATION = 2**40
"""The factor of the generation in an item's priority: more than the train steps of any run."""

MAX_GENERATIONS = 2**53 // _GENERATION
"""The most generations of learners in a run; see `_priority`."""

EVALUATIONS_KEPT = 64
"""The most versions in the queue. A full queue drops the oldest, for example if no eval actor runs."""


class PolicyOrder(NamedTuple):
    """The sort key of a run's versions: greater for a newer version.

    A version is newer if a later learner published it, or the same learner at a later train step.
    """

    generation: int
    train_step: int


@dataclasses.dataclass(frozen=True)
class PolicyVariables:
    """One version of the policy.

    Attributes:
      train_step: the train step after which the policy had these weights.
      values: one array for each of the policy's variables, in their order.
      generation: the number of the learner that published it, from 0; each restart of the learner adds one.
    """

    train_step: int
    values: list[npt.NDArray[Any]]
    generation: int = 0

    @property
    def order(self) -> PolicyOrder:
        """Greater for a newer version."""
        return PolicyOrder(self.generation, self.train_step)


@dataclasses.dataclass(frozen=True)
class EvaluationRequest:
    """A version to evaluate.

    Attributes:
      version: the variables.
      env_steps: env steps of all actors when the version was published.
      key: Reverb's key of its item in the queue; 0 before it is queued.
    """

    version: PolicyVariables
    env_steps: int
    key: int = 0


class RunEnd(NamedTuple):
    """The end of a run, which its learner announces and the replay server confirms.

    Attributes:
      order: the order of the last train step's version.
      saved: whether the replay server has that version, and the evaluations that were queued before it, in
        a checkpoint.
    """

    order: PolicyOrder
    saved: bool = False


class ContainerStatus(NamedTuple):
    """The contents of a container at one moment.

    Attributes:
      versions: number of versions published so far; 0 if there is none to pull. It decreases if the replay
        server restarts.
      evaluations_waiting: number of versions that wait for their evaluation.
    """

    versions: int
    evaluations_waiting: int


def variable_tables(variables: Sequence[tf.Variable]) -> list[reverb.Table]:
    """Returns the container's tables, for policy variables with these shapes."""
    signature = {
        "policy_variables": [tf.TensorSpec(v.shape, v.dtype) for v in variables],
        "train_step": tf.TensorSpec([], tf.int64),
    }
    # Not Table.queue: a full queue must not block the learner.
    evaluation = reverb.Table(
        name=EVALUATION_TABLE,
        sampler=reverb.selectors.Fifo(),
        remover=reverb.selectors.Fifo(),
        max_size=EVALUATIONS_KEPT,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature | {"env_steps": tf.TensorSpec([], tf.int64)},
    )
    newest = _newest_only(VARIABLES_TABLE, signature)
    return [newest, evaluation, _newest_only(END_TABLE, {"saved": tf.TensorSpec([], tf.bool)})]


def _newest_only(name: str, signature: dict[str, Any]) -> reverb.Table:
    """Returns a table that keeps only the item with the greatest order.

    Reverb removes the item with the lowest priority, even if it was just inserted. So a learner that was
    replaced, but still runs, cannot overwrite a newer version. Of two equal items Reverb removes the older.
    """
    return reverb.Table(
        name=name,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.MinHeap(),
        max_size=1,
        rate_limiter=reverb.rate_limiters.MinSize(1),
        signature=signature,
    )


class VariableContainer:
    """A client of the container.

    Its calls block until the server has answered, up to _CALL_TIMEOUT_S. Then they raise
    reverb_calls.UNREACHABLE, although the server may still execute the call.
    """

    def __init__(self, client: reverb.Client, run_id: str | None = None) -> None:
        """Does not connect yet; `run_id` is the expected run, None accepts any."""
        self._client = client
        self._run_id = run_id

    def push(self, version: PolicyVariables) -> None:
        """Publishes a version; the server stores it, or drops it for a newer one."""
        self._insert(VARIABLES_TABLE, _nest(version), version.order)

    def push_evaluation(self, request: EvaluationRequest) -> None:
        """Queues a version for evaluation."""
        nest = _nest(request.version) | {"env_steps": np.int64(request.env_steps)}
        self._insert(EVALUATION_TABLE, nest, request.version.order)

    def push_end(self, end: RunEnd) -> None:
        """Announces or confirms the end of the run."""
        self._insert(END_TABLE, {"saved": np.bool_(end.saved)}, end.order)

    def status(self, timeout_s: int) -> ContainerStatus:
        """Returns the status; blocks for up to `timeout_s`.

        Raises:
          RunError: a server of another run has replaced this run's.
        """
        tables = self._tables(timeout_s)
        newest = tables[VARIABLES_TABLE]
        return ContainerStatus(
            versions=int(newest.rate_limiter_info.insert_stats.completed) if newest.current_size else 0,
            evaluations_waiting=int(tables[EVALUATION_TABLE].current_size),
        )

    def pull(self) -> PolicyVariables:
        """Returns the newest version; call it only if there is one."""
        return _version(self._sample(VARIABLES_TABLE))

    def newest(self, timeout_s: int) -> PolicyVariables | None:
        """Returns the newest version, None if there is none; raises as `status`."""
        return self.pull() if self.status(timeout_s).versions else None

    def end(self, timeout_s: int) -> RunEnd | None:
        """Returns the end of the run, None before a learner has announced it; raises as `status`."""
        if not self._tables(timeout_s)[END_TABLE].current_size:
            return None
        sample = self._sample(END_TABLE)
        return RunEnd(_order(sample), bool(sample.data["saved"][0]))

    def next_evaluation(self) -> EvaluationRequest:
        """Returns the oldest request, which stays in the queue; call it only if there is one."""
        sample = self._sample(EVALUATION_TABLE)
        key = int(np.ravel(sample.info.key)[0])
        return EvaluationRequest(_version(sample), int(sample.data["env_steps"][0]), key)

    def remove_evaluation(self, request: EvaluationRequest) -> None:
        """Removes a request from the queue."""
        mutate = self._client.mutate_priorities
        within(_CALL_TIMEOUT_S, lambda: mutate(EVALUATION_TABLE, deletes=[request.key]))

    def clear(self) -> None:
        """Removes the newest version, the queued versions and the announced end of the run."""
        for table in (END_TABLE, VARIABLES_TABLE, EVALUATION_TABLE):
            self._reset(table)

    def clear_evaluations(self) -> None:
        """Empties the queue."""
        self._reset(EVALUATION_TABLE)

    def _tables(self, timeout_s: int) -> Any:
        tables = self._client.server_info(timeout=timeout_s)
        check_same_run(tables, self._run_id)
        return tables

    def _insert(self, table: str, nest: dict[str, Any], order: PolicyOrder) -> None:
        within(_CALL_TIMEOUT_S, lambda: self._client.insert(nest, {table: _priority(order)}))

    def _reset(self, table: str) -> None:
        within(_CALL_TIMEOUT_S, lambda: self._client.reset(table))

    def _sample(self, table: str) -> Any:
        return sample_one(self._client, table, _CALL_TIMEOUT_S)


def _nest(version: PolicyVariables) -> dict[str, Any]:
    return {"policy_variables": version.values, "train_step": np.int64(version.train_step)}


def _priority(order: PolicyOrder) -> float:
    """Returns an order as one number, exactly: a double holds integers of 53 bits."""
    return float(order.generation * _GENERATION + order.train_step)


def _order(sample: Any) -> PolicyOrder:
    """Returns the order that an item's priority encodes."""
    return PolicyOrder(*divmod(int(np.ravel(sample.info.priority)[0]), _GENERATION))


def _version(sample: Any) -> PolicyVariables:
    # Every leaf has a leading dimension of size one, for the item's single step.
    return PolicyVariables(
        train_step=int(sample.data["train_step"][0]),
        values=[values[0] for values in sample.data["policy_variables"]],
        generation=_order(sample).generation,
    )


def assigner(variables: Sequence[tf.Variable], train_step: tf.Variable) -> Callable[[PolicyVariables], None]:
    """Returns a function that assigns a version to `variables` and `train_step` in one graph call."""
    specs = [tf.TensorSpec(v.shape, v.dtype) for v in variables]

    @tf.function(input_signature=[specs, tf.TensorSpec([], tf.int64)], autograph=False)
    def assign(values: list[tf.Tensor], step: tf.Tensor) -> None:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        train_step.assign(step)

    concrete = assign.get_concrete_function()

    def update(version: PolicyVariables) -> None:
        # A NumPy integer, because TensorFlow caches a tensor for each Python integer that it has ever seen.
        concrete([tf.constant(value) for value in version.values], tf.constant(np.int64(version.train_step)))

    return update
