"""Environments of gymnasium: by their registered names, and returned by the user's own callables."""

from typing import Any, ClassVar

import gym
import gymnasium
import numpy as np
import pytest
import tree
from tf_agents.environments import gym_wrapper

from actorlearner.config.schema import EnvironmentConfig
from actorlearner.environments.gym_adapter import GymAdapter
from actorlearner.environments.load import load_environment
from actorlearner.environments.rendering import RenderError
from actorlearner.environments.spaces import space_spec
from actorlearner.errors import ConfigurationError


def make_own(name: str) -> gymnasium.Env:
    """Makes an environment as users write it."""
    return gymnasium.make(name)


def play(environment: Any, env_steps: int) -> list[Any]:
    action = np.zeros(environment.action_spec.shape, environment.action_spec.dtype)
    return [environment.reset(), *(environment.step(action) for _ in range(env_steps))]


def config(name: str, **keys: Any) -> EnvironmentConfig:
    return EnvironmentConfig(suite="gymnasium", name=name, **keys)


def test_a_time_limit_truncates() -> None:
    *_, before, last = play(load_environment(config("Pendulum-v1", max_episode_steps=7), seed=1), 7)
    assert (before.last, last.last, last.discount) == (False, True, 1.0)
    assert last.observation.dtype == np.float32


def test_an_own_limit_is_kept_without_a_configured_one() -> None:
    steps = play(load_environment(config("Pendulum-v1"), seed=1), 200)[1:]
    assert [step.last for step in steps] == [False] * 199 + [True]


def test_a_termination_has_discount_zero() -> None:
    environment = load_environment(config("CartPole-v1"), seed=1)
    steps = iter(play(environment, 12)[1:])
    last = next(step for step in steps if step.last)
    assert last.discount == 0.0


def test_equal_seeds_give_equal_episodes() -> None:
    first, second, other = (play(load_environment(config("Pendulum-v1"), seed), 3) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first[0], second[0])
    assert np.any(first[0] != other[0])


def test_mujoco_trains_in_single_precision() -> None:
    environment = load_environment(config("HalfCheetah-v5", kwargs={"ctrl_cost_weight": 0.2}), seed=1)
    (_, step) = play(environment, 1)
    assert environment.observation_spec.shape == (17,)
    assert step.observation.dtype == np.float32
    assert environment.frame_rate == pytest.approx(20.0)
    environment.close()


def test_a_game_of_atari_by_the_module_that_registers_it() -> None:
    environment = load_environment(config("ale_py:ALE/Pong-v5", kwargs={"frameskip": 4}), seed=1)
    (_, step) = play(environment, 1)
    assert (step.observation.shape, step.observation.dtype) == ((210, 160, 3), np.uint8)
    environment.close()


def test_pictures() -> None:
    environment = load_environment(config("CartPole-v1"), seed=1)
    environment.reset()
    assert environment.render().shape[2] == 3
    environment.close()


def test_rendering_without_render_mode_raises_render_error() -> None:
    environment = load_environment(
        EnvironmentConfig(suite=f"{__name__}:make_own", name="Pendulum-v1"), seed=1
    )
    environment.reset()
    with pytest.raises(RenderError, match="it was made without render_mode='rgb_array'"):
        environment.render()


class Silent(gymnasium.Env[np.ndarray, np.ndarray]):
    """Its metadata lists a render mode that its constructor does not accept."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    observation_space = gymnasium.spaces.Box(np.array([0.1, -1.0]), np.array([0.1, 1.0]), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def reset(self, **_: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return np.array([0.1, 0.5]), {}


def test_an_environment_without_rendering_and_with_a_fixed_value() -> None:
    gymnasium.register("Silent-v0", Silent)
    try:
        environment = load_environment(config("Silent-v0", kwargs={"k": 3}), seed=1)
    finally:
        del gymnasium.registry["Silent-v0"]
    spec = environment.observation_spec
    assert np.all(spec.minimum <= spec.maximum)
    np.testing.assert_allclose(environment.reset(), [0.1, 0.5])


def test_an_own_callable() -> None:
    own = EnvironmentConfig(suite=f"{__name__}:make_own", name="Pendulum-v1", max_episode_steps=5)
    *_, last = play(load_environment(own, seed=1), 5)
    assert (last.last, last.discount) == (True, 1.0)


SPACES = gymnasium.spaces


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (SPACES.Box(-1.0, 2.0, (3,), np.float64), gym.spaces.Box(-1.0, 2.0, (3,), np.float64)),
        (SPACES.Box(0, 255, (8, 8, 3), np.uint8), gym.spaces.Box(0, 255, (8, 8, 3), np.uint8)),
        (SPACES.Discrete(4, start=2), gym.spaces.Discrete(4, start=2)),
        (SPACES.MultiDiscrete([2, 5]), gym.spaces.MultiDiscrete([2, 5])),
        (SPACES.MultiBinary(3), gym.spaces.MultiBinary(3)),
        (
            SPACES.Dict({"a": SPACES.Discrete(2), "b": SPACES.Tuple([SPACES.MultiBinary(1)])}),
            gym.spaces.Dict(
                {"a": gym.spaces.Discrete(2), "b": gym.spaces.Tuple([gym.spaces.MultiBinary(1)])}
            ),
        ),
    ],
)
def test_spaces_are_read_as_those_of_gym(space: Any, expected: gym.Space) -> None:
    """Spaces of gymnasium and of gym give the specs that TF-Agents derives from gym's."""
    reference = gym_wrapper.spec_from_gym_space(expected, name="it")
    for own in (space_spec(space, "it"), space_spec(expected, "it")):
        tree.map_structure(assert_same_spec, own, reference, check_types=False)


def assert_same_spec(own: Any, reference: Any) -> None:
    assert (own.shape, own.dtype, own.name) == (reference.shape, reference.dtype, reference.name)
    np.testing.assert_array_equal(own.minimum, reference.minimum)
    np.testing.assert_array_equal(own.maximum, reference.maximum)
    assert own.minimum.shape == reference.minimum.shape


def test_a_space_without_a_spec_is_refused() -> None:
    with pytest.raises(ValueError, match="Text spaces are not supported"):
        space_spec(SPACES.Text(5), "it")
    with pytest.raises(ValueError, match="MultiDiscrete spaces that do not start at 0"):
        space_spec(SPACES.MultiDiscrete([2, 5], start=[0, 1]), "it")


def test_a_space_of_a_derived_class_is_that_of_its_base() -> None:
    class Torques(SPACES.Box):
        pass

    assert space_spec(Torques(-1.0, 1.0, (2,)), "it") == space_spec(SPACES.Box(-1.0, 1.0, (2,)), "it")


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refusal:
        load_environment(config("Pendulum-v11"), seed=1)
    (line,) = refusal.value.problems
    assert line.startswith('environment.name: unknown environment "Pendulum-v11" in suite gymnasium')
    assert "did you mean Pendulum-v1" in line


class Counting(gymnasium.Env[Any, Any]):
    """Discrete observations that do not start at 0, and the old method for seeds."""

    observation_space = SPACES.Dict(
        {"at": SPACES.Discrete(5, start=-2), "of": SPACES.Tuple([SPACES.Discrete(3, start=7)])}
    )
    action_space = SPACES.Discrete(2)

    def seed(self, seed: int) -> None:
        self.at = -2

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return {"at": self.at, "of": (9,)}, {}


def test_discrete_observations_count_from_0_and_seed_is_found_behind_wrappers() -> None:
    adapter = GymAdapter(gymnasium.wrappers.TimeLimit(Counting(), 5))  # type: ignore[arg-type]
    assert adapter.seed(3)
    assert adapter.reset() == {"at": 0, "of": (2,)}
    assert adapter.observation_spec["at"].maximum == 4
