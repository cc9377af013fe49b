import numpy as np
import pytest
from tf_agents.environments import batched_py_environment, py_environment, suite_gym, wrappers
from tf_agents.specs import array_spec
from tf_agents.trajectories import time_step

from actorlearner.environments.py_environment_adapter import PyEnvironmentAdapter
from actorlearner.errors import ConfigurationError, RunError


class Countdown(py_environment.PyEnvironment):
    """Terminates after `length` env steps; like most, it resets itself at the step after the last."""

    def __init__(self, length=3, discount=0.5):
        super().__init__()
        self._length = length
        self._discount = discount
        self._left = None
        self.actions = []
        self.closed = False

    def observation_spec(self):
        return {"left": array_spec.ArraySpec((1,), np.float64, "left")}

    def action_spec(self):
        return array_spec.BoundedArraySpec((), np.int32, 0, 1)

    def _observation(self):
        return {"left": np.array([self._left], np.float64)}

    def _reset(self):
        self._left = self._length
        return time_step.restart(self._observation())

    def _step(self, action):
        if self._current_time_step.is_last():
            return self.reset()
        self.actions.append(action)
        self._left -= 1
        if self._left == 0:
            return time_step.termination(self._observation(), reward=1.0)
        return time_step.transition(self._observation(), reward=0.25, discount=self._discount)

    def close(self):
        self.closed = True


ACTION = np.int64(1)


def steps_to_the_end(adapter):
    adapter.reset()
    steps = [adapter.step(ACTION)]
    while not steps[-1].last:
        steps.append(adapter.step(ACTION))
    return steps


def test_discounts_and_rewards_are_the_environments():
    environment = Countdown()
    steps = steps_to_the_end(PyEnvironmentAdapter(environment))
    assert [(step.reward, step.discount, step.last) for step in steps] == [
        (0.25, 0.5, False),
        (0.25, 0.5, False),
        (1.0, 0.0, True),
    ]
    assert [type(value) for value in steps[0][1:5]] == [float, float, bool, bool]
    assert environment.actions[0].dtype == np.int32


def test_observations_are_copies_in_single_precision():
    adapter = PyEnvironmentAdapter(Countdown())
    assert adapter.observation_spec["left"].dtype == np.float32
    first = adapter.reset()["left"]
    assert (first.tolist(), first.dtype) == ([3.0], np.float32)
    assert adapter.step(ACTION).observation["left"].tolist() == [2.0]


def test_every_episode_begins_at_its_first_observation():
    adapter = PyEnvironmentAdapter(Countdown())
    assert [len(steps_to_the_end(adapter)) for _ in range(3)] == [3, 3, 3]


def test_tf_agents_own_time_limit_truncates():
    steps = steps_to_the_end(PyEnvironmentAdapter(wrappers.TimeLimit(Countdown(5, discount=1.0), 2)))
    assert [(step.discount, step.last) for step in steps] == [(1.0, False), (1.0, True)]


@pytest.mark.parametrize(("limit", "discount"), [(7, 1.0), (None, 0.0)])
def test_gyms_time_limit_truncates_in_tf_agents_suites(limit, discount):
    import gym

    wrap = [] if limit is None else [lambda environment: gym.wrappers.TimeLimit(environment, limit)]
    environment = suite_gym.wrap_env(gym.make("CartPole-v1").unwrapped, gym_env_wrappers=wrap)
    steps = steps_to_the_end(PyEnvironmentAdapter(environment))
    assert [step.discount for step in steps] == [1.0] * (len(steps) - 1) + [discount]


def test_a_step_that_starts_an_episode_is_an_error():
    adapter = PyEnvironmentAdapter(Countdown())
    steps_to_the_end(adapter)
    with pytest.raises(RunError, match="started a new episode instead of taking a step"):
        adapter.step(ACTION)


def test_batched_environments_are_refused():
    batched = batched_py_environment.BatchedPyEnvironment([Countdown()])
    with pytest.raises(ConfigurationError) as refusal:
        PyEnvironmentAdapter(batched)
    (line,) = refusal.value.problems
    assert line.startswith("environment.suite: BatchedPyEnvironment is batched (batch size 1);")


def test_vector_rewards_are_refused():
    class TwoRewards(Countdown):
        def reward_spec(self):
            return array_spec.ArraySpec((2,), np.float32)

    with pytest.raises(ConfigurationError, match="must be scalars"):
        PyEnvironmentAdapter(TwoRewards())


def test_seeding_is_optional():
    assert PyEnvironmentAdapter(Countdown()).seed(3) is False


def test_close_closes_the_environment():
    environment = Countdown()
    PyEnvironmentAdapter(environment).close()
    assert environment.closed
