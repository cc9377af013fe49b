"""TF-Agents' own distributed roles, put together from the classes in its wheel as their documentation shows.

The benchmarks that compare ours with stock TF-Agents use these roles. So do the tests in which stock jobs
join our runs.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import reverb
import tensorflow as tf
import tree
from tf_agents.agents import tf_agent
from tf_agents.environments import batched_py_environment, py_environment
from tf_agents.experimental.distributed import reverb_variable_container
from tf_agents.policies import py_tf_eager_policy, random_py_policy
from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils
from tf_agents.specs import tensor_spec
from tf_agents.train import actor, learner
from tf_agents.train.utils import train_utils
from tf_agents.trajectories import policy_step, trajectory

EXPERIENCE_TABLE = reverb_replay_buffer.DEFAULT_TABLE
VARIABLES_TABLE = reverb_variable_container.DEFAULT_TABLE


def tables(
    agent: tf_agent.TFAgent,
    train_step: tf.Variable,
    capacity: int,
    limiter: reverb.rate_limiters.RateLimiter | None = None,
) -> list[reverb.Table]:
    """Makes the experience table and the variable container of a replay server.

    Args:
      agent: whose experience and variables they hold.
      train_step: is held beside the variables.
      capacity: items in the experience table.
      limiter: of the experience table; None for the one of TF-Agents' example, which keeps no ratio.
    """
    experience = tensor_spec.add_outer_dim(tensor_spec.from_spec(agent.collect_data_spec))
    variables = tf.nest.map_structure(
        lambda variable: tf.TensorSpec(variable.shape, dtype=variable.dtype),
        _variables(agent.collect_policy, train_step),
    )
    return [
        _table(EXPERIENCE_TABLE, capacity, experience, limiter or reverb.rate_limiters.MinSize(1)),
        _table(VARIABLES_TABLE, 1, variables, reverb.rate_limiters.MinSize(1)),
    ]


def replay_buffer(agent: tf_agent.TFAgent, **server: Any) -> reverb_replay_buffer.ReverbReplayBuffer:
    """Makes the buffer that samples an agent's transitions from `server_address` or `local_server`."""
    return reverb_replay_buffer.ReverbReplayBuffer(
        agent.collect_data_spec, sequence_length=2, table_name=EXPERIENCE_TABLE, **server
    )


def ratio_limiter(samples_per_insert: float, min_size: int) -> reverb.rate_limiters.SampleToInsertRatio:
    """Makes the limiter that keeps a ratio, with the tolerance of a tenth that Acme's agents have."""
    return reverb.rate_limiters.SampleToInsertRatio(
        samples_per_insert, min_size, error_buffer=0.1 * samples_per_insert * min_size
    )


def _table(
    name: str, capacity: int, signature: Any, limiter: reverb.rate_limiters.RateLimiter
) -> reverb.Table:
    return reverb.Table(
        name,
        sampler=reverb.selectors.Uniform(),
        remover=reverb.selectors.Fifo(),
        rate_limiter=limiter,
        max_size=capacity,
        signature=signature,
    )


def _variables(policy: Any, train_step: tf.Variable) -> dict[str, Any]:
    return {
        reverb_variable_container.POLICY_KEY: policy.variables(),
        reverb_variable_container.TRAIN_STEP_KEY: train_step,
    }


def collect_randomly(
    environment: py_environment.PyEnvironment, train_step: tf.Variable, observer: Any, env_steps: int
) -> None:
    """Takes env steps with random actions."""
    policy = random_py_policy.RandomPyPolicy(environment.time_step_spec(), environment.action_spec())
    initial = actor.Actor(environment, policy, train_step, steps_per_run=env_steps, observers=[observer])
    initial.run()


class ObserverForEach:
    """Writes a batch of environments' trajectories with an observer for each: stock's take no batches."""

    def __init__(self, client: reverb.Client, environments: int) -> None:
        """Opens a writer for each environment."""
        self._observers = [_observer(client) for _ in range(environments)]

    def __call__(self, batch: trajectory.Trajectory) -> None:
        """Writes a trajectory of tensors [environments, ...]."""
        for index, observer in enumerate(self._observers):
            observer(tree.map_structure(lambda leaf, index=index: leaf[index], batch))

    def flush(self) -> None:
        """Blocks until the server has taken everything, for as long as its rate limiter blocks writers."""
        for observer in self._observers:
            observer.flush()


def _observer(client: reverb.Client) -> reverb_utils.ReverbAddTrajectoryObserver:
    return reverb_utils.ReverbAddTrajectoryObserver(
        client, EXPERIENCE_TABLE, sequence_length=2, stride_length=1
    )


def make_observer(client: reverb.Client, environment: py_environment.PyEnvironment) -> Any:
    """Makes the observer that writes the trajectories of an environment, or of a batch of them."""
    return ObserverForEach(client, environment.batch_size) if environment.batched else _observer(client)


def batched(load: Callable[[], py_environment.PyEnvironment], count: int) -> py_environment.PyEnvironment:
    """Loads an environment, or several as TF-Agents' batch of them, which steps them in turn."""
    if count == 1:
        return load()
    return batched_py_environment.BatchedPyEnvironment([load() for _ in range(count)], multithreading=False)


def eager(policy: Any, environments: int) -> py_tf_eager_policy.PyTFEagerPolicy:
    """Makes a TFPolicy act in Python for an environment, or for a batch of several."""
    if environments == 1:
        return py_tf_eager_policy.PyTFEagerPolicy(policy, use_tf_function=True)
    return _ForBatch(policy, use_tf_function=True, batch_time_steps=False)


class _ForBatch(py_tf_eager_policy.PyTFEagerPolicy):
    """Returns NumPy arrays for a batch; the stock class would return eager tensors, which are slow."""

    def _action(self, *arguments: Any, **options: Any) -> policy_step.PolicyStep:
        return tree.map_structure(np.asarray, super()._action(*arguments, **options))


class CollectJob:
    """A collect job: takes an env step in each environment and pulls the variables, or does so less often."""

    def __init__(
        self,
        environment: py_environment.PyEnvironment,
        policy: Any,
        address: str,
        summaries: Path,
        source: Any = None,
        pull_interval_s: float = 0.0,
    ) -> None:
        """Connects to the server at `address` and pulls the first variables.

        Args:
          environment: to act in; see `batched`.
          policy: to act with.
          address: HOST:PORT.
          summaries: where TensorBoard summaries go.
          source: whose variables are pulled: the TFPolicy under `policy`; None where `policy` is saved.
          pull_interval_s: least seconds between two pulls of the variables.
        """
        self.train_step = train_utils.create_train_step()
        self._variables = _variables(source or policy, self.train_step)
        self._container = reverb_variable_container.ReverbVariableContainer(address, [VARIABLES_TABLE])
        self._container.update(self._variables)
        self._pull_interval_s = pull_interval_s
        self._pulled = time.monotonic()
        self.environment = environment
        self.observer = make_observer(reverb.Client(address), environment)
        self._actor = actor.Actor(
            environment,
            policy,
            self.train_step,
            steps_per_run=environment.batch_size or 1,
            metrics=actor.collect_metrics(10),
            summary_dir=str(summaries),
            observers=[self.observer],
        )

    def step(self) -> None:
        """Takes an env step in each environment; pulls the variables if the interval is over."""
        self._actor.run()
        if time.monotonic() - self._pulled >= self._pull_interval_s:
            self._container.update(self._variables)
            self._pulled = time.monotonic()


class TrainJob:
    """A train job: takes a train step and pushes the variables, or does each at larger intervals."""

    def __init__(
        self,
        agent: tf_agent.TFAgent,
        train_step: tf.Variable,
        address: str,
        root_dir: Path,
        batch_size: int,
        train_steps: int = 1,
        push_interval: int = 1,
    ) -> None:
        """Connects to the server at `address` and pushes the first variables.

        Args:
          agent: to train.
          train_step: counts its train steps.
          address: HOST:PORT.
          root_dir: where checkpoints and SavedModels go.
          batch_size: transitions in a train step.
          train_steps: in one call of the learner's graph.
          push_interval: train steps between two pushes of the variables, a multiple of `train_steps`.
        """
        self.train_steps = train_steps
        self._push_interval = push_interval
        self._since_push = 0
        self._variables = _variables(agent.collect_policy, train_step)
        self._container = reverb_variable_container.ReverbVariableContainer(address, [VARIABLES_TABLE])
        self.push()
        replay = replay_buffer(agent, server_address=address)
        self._learner = learner.Learner(
            str(root_dir),
            train_step,
            agent,
            lambda: replay.as_dataset(sample_batch_size=batch_size, num_steps=2).prefetch(3),
        )

    def push(self) -> None:
        """Pushes the variables."""
        self._container.push(self._variables)

    def step(self) -> None:
        """Takes `train_steps` train steps; pushes the variables if the interval is over."""
        self._learner.run(iterations=self.train_steps)
        self._since_push += self.train_steps
        if self._since_push >= self._push_interval:
            self.push()
            self._since_push = 0


class EvalJob:
    """An eval job: pulls the variables and plays whole episodes."""

    def __init__(
        self, environment: py_environment.PyEnvironment, policy: Any, address: str, episodes: int
    ) -> None:
        """Connects to the server at `address`."""
        self.train_step = train_utils.create_train_step()
        self._variables = _variables(policy, self.train_step)
        self._container = reverb_variable_container.ReverbVariableContainer(address, [VARIABLES_TABLE])
        self._actor = actor.Actor(
            environment,
            policy,
            self.train_step,
            episodes_per_run=episodes,
            metrics=actor.eval_metrics(episodes),
        )

    def evaluate(self) -> float:
        """Plays with the newest variables; returns the average return."""
        self._container.update(self._variables)
        self._actor.run()
        return float(self._actor.metrics[0].result())


def saved_policy(run_directory: Path, name: str) -> Any:
    """Waits for a policy that a train job saved below its root directory; name: collect_policy, ...."""
    directory = run_directory / learner.POLICY_SAVED_MODEL_DIR / name
    return train_utils.wait_for_policy(str(directory), load_specs_from_pbtxt=True)
