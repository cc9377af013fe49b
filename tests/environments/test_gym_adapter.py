import functools

import gym
import numpy as np
import pytest

from actorlearner.agents.encoder import AgentSpecs
from actorlearner.agents.ppo_networks import ValueNetwork, make_body
from actorlearner.environments.gym_adapter import GymAdapter
from actorlearner.environments.specs import environment_specs
from actorlearner.errors import RunError

Box, Dict, Discrete, Tuple = gym.spaces.Box, gym.spaces.Dict, gym.spaces.Discrete, gym.spaces.Tuple


class Scripted(gym.Env):
    """Returns the scripted answers, and records the actions."""

    def __init__(self, answers=(), observation_space=None, action_space=None, first=None):
        self.observation_space = observation_space or Box(-1, 1, (2,), np.float32)
        self.action_space = action_space or Box(-1, 1, (1,), np.float32)
        self.first = np.zeros(2, np.float32) if first is None else first
        self.answers = list(answers)
        self.actions = []
        self.closed = False

    def reset(self):
        return self.first

    def step(self, action):
        self.actions.append(action)
        return self.answers.pop(0)

    def close(self):
        self.closed = True


OBSERVATION = np.array([0.5, -0.5], np.float32)


@pytest.mark.parametrize(
    ("flags", "discount", "last"),
    [
        ((False, {}), 1.0, False),
        ((True, {}), 0.0, True),
        ((True, {"TimeLimit.truncated": True}), 1.0, True),
        ((True, {"TimeLimit.truncated": False}), 0.0, True),  # terminated at the limit itself
        ((np.bool_(True), {}), 0.0, True),
        ((True, None), 0.0, True),
        ((False, False, {}), 1.0, False),
        ((True, False, {}), 0.0, True),
        ((False, True, {}), 1.0, True),
        ((True, True, {}), 0.0, True),
    ],
)
def test_discount_is_zero_only_where_the_episode_terminated(flags, discount, last):
    step = GymAdapter(Scripted([(OBSERVATION, 2, *flags)])).step(np.zeros(1))
    assert (step.discount, step.last, step.reward) == (discount, last, 2.0)
    assert [type(value) for value in step[1:5]] == [float, float, bool, bool]
    np.testing.assert_array_equal(step.observation, OBSERVATION)


def test_double_precision_becomes_single():
    box = Box(np.array([-0.1, -np.inf]), np.array([0.1, np.finfo(np.float64).max]), dtype=np.float64)
    environment = Scripted([(np.array([0.05, 3.0]), 0.0, False, {})], box, box, first=[0.0, 1.0])
    adapter = GymAdapter(environment)

    for spec in (adapter.observation_spec, adapter.action_spec):
        assert spec.dtype == np.float32
        assert spec.maximum[1] == np.inf
        # 0.1 in single precision is above 0.1: such an action would be outside of its space.
        assert np.float64(spec.maximum[0]) <= 0.1
        assert spec.maximum[0] == pytest.approx(0.1)
        assert np.float64(spec.minimum[0]) >= -0.1
    assert adapter.reset().dtype == np.float32
    assert adapter.step(adapter.action_spec.minimum).observation.dtype == np.float32
    assert environment.actions[0].dtype == np.float64


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float16])
def test_other_dtypes_are_kept(dtype):
    space = Box(0, 100, (2, 3), dtype)
    adapter = GymAdapter(Scripted(observation_space=space, first=[[1, 2, 3], [4, 5, 6]]))
    observation = adapter.reset()
    assert adapter.observation_spec.dtype == observation.dtype == dtype
    np.testing.assert_array_equal(observation, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int16, np.uint16, np.uint32, np.uint64])
def test_dtypes_that_networks_refuse_become_wider(dtype):
    """Action masks are often int8, and boards bool."""
    adapter = GymAdapter(Scripted(observation_space=Box(0, 1, (2,), dtype), first=np.array([0, 1], dtype)))
    observation = adapter.reset()
    np.testing.assert_array_equal(observation, [0, 1])
    assert adapter.observation_spec.dtype == observation.dtype
    spec = environment_specs(adapter).observation
    assert (spec.minimum, spec.maximum) == (0, 1)
    network = ValueNetwork(spec, make_body(AgentSpecs(spec, None, None), [2]))
    network.create_variables()
    assert network(observation[None])[0].shape == (1,)


def test_observations_outlive_the_environments_buffer():
    buffer = np.zeros(2, np.float32)
    adapter = GymAdapter(Scripted([(buffer, 0.0, False, {})] * 2, first=buffer))
    first = adapter.reset()
    buffer += 1
    second = adapter.step(np.zeros(1)).observation
    buffer += 1
    np.testing.assert_array_equal([first, second], [[0, 0], [1, 1]])


def test_an_observation_of_another_shape_is_an_error():
    adapter = GymAdapter(Scripted(first=np.zeros(3)))
    with pytest.raises(RunError, match=r"returned observation with shape \[3\], but .* says \[2\]"):
        adapter.reset()


def test_reset_may_return_infos():
    adapter = GymAdapter(Scripted(first=(OBSERVATION, {"lives": 3})))
    np.testing.assert_array_equal(adapter.reset(), OBSERVATION)


def test_a_tuple_observation_is_not_mistaken_for_observation_and_info():
    space = Tuple([Discrete(3), Dict(a=Box(-1, 1, (2,), np.float32))])
    observation = (1, {"a": OBSERVATION})
    for first in (observation, (observation, {"lives": 3})):
        answer = GymAdapter(Scripted(observation_space=space, first=first)).reset()
        assert answer[0] == 1
        np.testing.assert_array_equal(answer[1]["a"], OBSERVATION)


def test_nested_spaces():
    space = Dict(
        position=Box(-1, 1, (2,), np.float64), rest=Tuple([gym.spaces.MultiDiscrete([3, 4]), Discrete(5)])
    )
    observation = {"position": [0.1, 0.2], "rest": ([2, 3], 4)}
    environment = Scripted([(observation, 0.0, False, {})], space, space, first=observation)
    adapter = GymAdapter(environment)

    assert adapter.observation_spec["position"].dtype == np.float32
    assert adapter.observation_spec["rest"][0].maximum.tolist() == [2, 3]
    cast = adapter.reset()
    assert (cast["position"].dtype, cast["rest"][0].dtype) == (np.float32, np.int32)
    assert cast["rest"][1] == 4

    adapter.step(cast)
    (action,) = environment.actions
    assert action["position"].dtype == np.float64
    assert action["rest"][1] == 4
    assert type(action["rest"][1]) is int


@pytest.mark.parametrize(("start", "expected"), [(0, 2), (5, 7)])
def test_discrete_actions_are_plain_integers_of_the_space(start, expected):
    environment = Scripted([(OBSERVATION, 0.0, False, {})] * 2, action_space=Discrete(3, start=start))
    adapter = GymAdapter(environment)
    assert (adapter.action_spec.minimum, adapter.action_spec.maximum) == (0, 2)
    adapter.step(np.array(2))
    adapter.step(np.int64(2))
    assert environment.actions == [expected, expected]
    assert {type(action) for action in environment.actions} == {int}


def test_a_space_without_a_spec_is_an_error():
    class Unknown(gym.Space):
        pass

    with pytest.raises(ValueError, match="Unknown spaces are not supported"):
        GymAdapter(Scripted(observation_space=Unknown()))


class SeededByReset(Scripted):
    """The interface of later versions of gym: only `reset` takes a seed."""

    seed = property()  # hasattr is then false, as in environments that never had it

    def __init__(self):
        super().__init__()
        self.random = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        return self.random.uniform(size=2), {}


class SeededBySeed(Scripted):
    """The interface of old versions of gym: the method `seed`."""

    def seed(self, seed=None):
        self.random = np.random.default_rng(seed)
        return [seed]

    def reset(self):
        return self.random.uniform(size=2)


@pytest.mark.parametrize("environment_class", [SeededByReset, SeededBySeed])
@pytest.mark.parametrize("wrap", [lambda environment: environment, gym.wrappers.OrderEnforcing])
def test_seeding_works_through_reset_and_through_seed(environment_class, wrap):
    def first_observation(seed):
        adapter = GymAdapter(wrap(environment_class()))
        adapter.seed(seed)
        return adapter.reset().tolist()

    assert first_observation(1) == first_observation(1)
    assert first_observation(1) != first_observation(2)


def test_a_reset_without_a_signature_takes_no_seed():
    environment = Scripted()
    environment.seed = None
    environment.reset = functools.partial(max, [1.0, 2.0])  # As a function of C.
    assert not GymAdapter(environment).seed(1)


def test_close_closes_the_environment():
    environment = Scripted()
    GymAdapter(environment).close()
    assert environment.closed
