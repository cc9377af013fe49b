"""Both layouts hold the same transitions, those that the episodes consist of, and train agents alike."""

import dataclasses
from typing import Any

import hypothesis
import numpy as np
import pytest
import reverb
import tensorflow as tf
import tree
from hypothesis import strategies as st
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step, trajectory

from actorlearner.agents.dqn import DqnConfig
from actorlearner.agents.experience import StoredTransition, as_transition
from actorlearner.agents.make import make_agent
from actorlearner.agents.td3 import Td3Config
from actorlearner.config.schema import AgentConfig, Config, ReplayConfig
from actorlearner.environments.environment import EnvSteps, Nest
from actorlearner.environments.specs import EnvironmentSpecs
from actorlearner.replay.experience_table import experience_table
from actorlearner.replay.layout import make_layout
from actorlearner.replay.trajectories import TrajectoryLayout
from tests.support.ports import unused_port
from tests.support.replay import LONG_S, Replay

GAMMA = 0.5
"""With small integer rewards all sums are exact, in any order."""

FLOATS = tf.TensorSpec([2], tf.float32)
OBSERVATIONS: dict[str, Any] = {
    "vector": FLOATS,
    "image and vector": {"image": tf.TensorSpec([2, 2, 1], tf.uint8), "vector": FLOATS},
    "numbers": (tf.TensorSpec([], tf.int32), tf.TensorSpec([3], tf.int64)),
}
ACTIONS: dict[str, Any] = {
    "continuous": tensor_spec.BoundedTensorSpec([2], tf.float32, -1.0, 1.0),
    "discrete": tensor_spec.BoundedTensorSpec([], tf.int64, 0, 100),
    "both": (tf.TensorSpec([1], tf.float32), tf.TensorSpec([], tf.int32)),
}


@dataclasses.dataclass(frozen=True)
class Episode:
    """An episode of one environment; the last of each environment may go on when the actor stops."""

    discounts: tuple[float, ...]
    ended: bool = True
    failed: bool = False
    """Whether the env step that follows fails, so that the episode is given up."""

    @property
    def length(self) -> int:
        return len(self.discounts)


@st.composite
def episodes(draw: st.DrawFn) -> list[list[Episode]]:
    """For each environment its episodes, with the same number of env steps in all."""
    env_steps = draw(st.integers(1, 12))
    return [draw(_episodes(env_steps)) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def _episodes(draw: st.DrawFn, env_steps: int) -> list[Episode]:
    made, left = [], env_steps
    while left:
        failed = draw(st.sampled_from([False, False, False, True]))
        length = draw(st.integers(0 if failed else 1, left - failed))
        left -= length + failed
        ended = not failed and (left > 0 or draw(st.booleans()))
        terminated = ended and draw(st.booleans())
        inner = draw(st.lists(st.sampled_from([1.0, 0.5]), min_size=length, max_size=length))
        if terminated:
            inner[-1] = 0.0
        made.append(Episode(tuple(inner), ended, failed))
    return made


def value(spec: Nest, number: int) -> Nest:
    """A nest of arrays that differs from that of every other number below 100."""
    return tree.map_structure(lambda leaf: np.full(leaf.shape, number, leaf.dtype.as_numpy_dtype), spec)


def env_steps(specs: EnvironmentSpecs, environments: list[list[Episode]]) -> list[EnvSteps]:
    """What an actor of these environments would write."""
    per_environment = [_of_one(specs, i, episodes) for i, episodes in enumerate(environments)]
    return [
        tree.map_structure(lambda *leaves: np.stack(leaves), *steps)
        for steps in zip(*per_environment, strict=True)
    ]


def _of_one(specs: EnvironmentSpecs, environment: int, episodes: list[Episode]) -> list[EnvSteps]:
    steps: list[EnvSteps] = []
    for index, episode in enumerate(episodes):
        for k, discount in enumerate(episode.discounts):
            number = 30 * environment + len(steps) + index
            steps.append(
                EnvSteps(
                    observation=value(specs.observation, number),
                    first=np.bool_(k == 0),
                    action=value(specs.action, number + 1),
                    reward=np.float32(len(steps) % 8),
                    discount=np.float32(discount),
                    next_observation=value(specs.observation, number + 1),
                    last=np.bool_(episode.ended and k == episode.length - 1),
                    policy_train_step=np.int64(number),
                    valid=np.bool_(True),
                )
            )
        if episode.failed:
            steps.append(
                _failed(specs, first=episode.length == 0, number=30 * environment + len(steps) + index)
            )
    return steps


def _failed(specs: EnvironmentSpecs, first: bool, number: int) -> EnvSteps:
    """An env step in which the environment failed; none of its numbers may come to replay."""
    observation = value(specs.observation, number)
    return EnvSteps(
        observation=observation,
        first=np.bool_(first),
        action=value(specs.action, number + 1),
        reward=np.float32(np.nan),
        discount=np.float32(1.0),
        next_observation=observation,
        last=np.bool_(True),
        policy_train_step=np.int64(number),
        valid=np.bool_(False),
    )


def expected_transitions(
    specs: EnvironmentSpecs, environments: list[list[Episode]], n: int
) -> list[StoredTransition]:
    """Straight from the definition in StoredTransition, episode by episode."""
    expected = []
    for i, made in enumerate(environments):
        steps, begin = _of_one(specs, i, made), 0
        for episode in made:
            for k in range(begin, begin + episode.length):
                window = steps[k : min(k + n, begin + episode.length)]
                reached = np.cumprod([1.0] + [GAMMA * step.discount for step in window])
                expected.append(
                    StoredTransition(
                        observation=window[0].observation,
                        action=window[0].action,
                        reward=sum(r * step.reward for r, step in zip(reached[:-1], window, strict=True)),
                        discount=reached[-1] / GAMMA,
                        next_observation=window[-1].next_observation,
                        policy_train_step=window[0].policy_train_step,
                    )
                )
            begin += episode.length + episode.failed
    return expected


def as_sorted(transitions: list[StoredTransition], policies: bool) -> list[tuple[Any, ...]]:
    """The numbers that transitions consist of, each with its dtype, in one order for all layouts."""
    if not policies:
        transitions = [transition._replace(policy_train_step=()) for transition in transitions]
    return sorted(
        tuple((leaf.dtype.name, *np.ravel(leaf).tolist()) for leaf in map(np.asarray, tree.flatten(parts)))
        for parts in (
            part._replace(reward=np.float32(part.reward), discount=np.float32(part.discount))
            for part in transitions
        )
    )


def through_replay(layout: str, specs: EnvironmentSpecs, steps: list[EnvSteps], n: int) -> StoredTransition:
    """Writes the env steps to a replay server and reads all transitions back."""
    config = Config(
        agent=AgentConfig(name="sac", gamma=GAMMA, n_step=n), replay=ReplayConfig(min_size=1, layout=layout)
    )
    made = make_layout(config, specs)
    port = unused_port()
    server = reverb.Server([experience_table(config, made)], port)
    try:
        replay = Replay(reverb.Client(f"localhost:{port}"), f"localhost:{port}", made)
        writer = made.writer(replay.client, len(steps[0].reward))
        for step in steps:
            writer.write(step)
        assert writer.close(LONG_S)
        return replay.transitions()
    finally:
        server.stop()


def raw_trajectories(transitions: StoredTransition) -> trajectory.Trajectory:
    """Two time steps for each transition, as TF-Agents' own replay holds them: [batch, 2, ...]."""
    count = len(transitions.reward)

    def both(first: Any, second: Any) -> Any:
        return tree.map_structure(lambda *leaves: tf.stack(leaves, axis=1), first, second)

    middle = np.full(count, time_step.StepType.MID)
    ended = np.where(transitions.discount == 0.0, time_step.StepType.LAST, middle)
    return trajectory.Trajectory(
        step_type=both(middle, ended),
        observation=both(transitions.observation, transitions.next_observation),
        action=both(transitions.action, transitions.action),
        policy_info=(),
        next_step_type=both(ended, middle),
        reward=both(transitions.reward, np.zeros_like(transitions.reward)),
        discount=both(transitions.discount, np.ones_like(transitions.discount)),
    )


def random_steps(specs: EnvironmentSpecs, count: int) -> list[EnvSteps]:
    """Episodes of four env steps each, every other of which terminates."""
    random = np.random.default_rng(3)

    def draw(spec: Any) -> np.ndarray:
        if spec.dtype.is_integer:
            return random.integers(spec.minimum, spec.maximum, (1, *spec.shape), endpoint=True)
        return random.uniform(-1, 1, (1, *spec.shape)).astype(np.float32)

    observations = [tree.map_structure(draw, specs.observation) for _ in range(count + 1)]
    return [
        EnvSteps(
            observation=observations[k],
            first=np.array([k % 4 == 0]),
            action=tree.map_structure(draw, specs.action),
            reward=np.array([k], np.float32),
            discount=np.array([0.0 if k % 8 == 7 else 1.0], np.float32),
            next_observation=observations[k + 1],
            last=np.array([k % 4 == 3]),
            policy_train_step=np.array([k]),
            valid=np.array([True]),
        )
        for k in range(count)
    ]


def ordered(transitions: StoredTransition) -> StoredTransition:
    order = np.argsort(transitions.reward)
    return tree.map_structure(lambda leaf: leaf[order], transitions)


def loss_of(agent: AgentConfig, specs: EnvironmentSpecs, experience: Any) -> float:
    """The loss of the first train step, always of the same agent with the same random numbers."""
    tf.keras.utils.set_random_seed(7)
    parts = make_agent(Config(agent=agent), specs)
    tf.random.set_seed(7)
    tf.config.run_functions_eagerly(True)  # In a graph, random numbers depend on the other operations.
    try:
        return float(parts.agent.train(experience).loss)
    finally:
        tf.config.run_functions_eagerly(False)


def separately(transitions: StoredTransition) -> list[StoredTransition]:
    return [
        tree.map_structure(lambda leaf, i=i: leaf[i], transitions) for i in range(len(transitions.reward))
    ]


@pytest.mark.timeout(600)
@pytest.mark.examples
@hypothesis.settings(max_examples=30, deadline=None, database=None)
@hypothesis.given(
    environments=episodes(),
    observation=st.sampled_from(sorted(OBSERVATIONS)),
    action=st.sampled_from(sorted(ACTIONS)),
    n=st.integers(1, 5),
)
def test_both_layouts_hold_exactly_the_transitions_of_the_episodes(
    environments: list[list[Episode]], observation: str, action: str, n: int
) -> None:
    spec = OBSERVATIONS[observation]
    specs = EnvironmentSpecs(spec, ACTIONS[action], time_step.time_step_spec(spec))
    steps = env_steps(specs, environments)
    expected = expected_transitions(specs, environments, n)
    hypothesis.assume(expected)
    packed = separately(through_replay("packed", specs, steps, n))
    assert as_sorted(packed, policies=True) == as_sorted(expected, policies=True)
    stepwise = separately(through_replay("trajectory", specs, steps, n))
    assert as_sorted(stepwise, policies=False) == as_sorted(expected, policies=False)


@pytest.mark.parametrize(
    ("agent", "action"),
    [(DqnConfig(), "discrete"), (Td3Config(), "continuous")],
    ids=lambda value: getattr(value, "name", value),
)
def test_both_layouts_and_tf_agents_own_give_the_same_loss(agent: AgentConfig, action: str) -> None:
    specs = EnvironmentSpecs(FLOATS, ACTIONS[action], time_step.time_step_spec(FLOATS))
    steps = random_steps(specs, 32)
    packed, stepwise = (
        ordered(through_replay(layout, specs, steps, n=1)) for layout in ("packed", "trajectory")
    )
    expected = loss_of(agent, specs, raw_trajectories(packed))
    for stored in (packed, stepwise):
        transition = as_transition(tree.map_structure(tf.constant, stored))
        assert loss_of(agent, specs, transition) == expected


@pytest.mark.parametrize("n", [2, 4])
def test_n_step_transitions_inside_an_episode_equal_tf_agents(n: int) -> None:
    """TF-Agents has n-step transitions of its own, which do not know of the ends of episodes."""
    specs = EnvironmentSpecs(FLOATS, ACTIONS["continuous"], time_step.time_step_spec(FLOATS))
    random = np.random.default_rng(5)
    shape = (6, n + 1)
    window = trajectory.Trajectory(
        step_type=tf.fill(shape, time_step.StepType.MID),
        observation=tf.constant(random.normal(size=(*shape, 2)), tf.float32),
        action=tf.constant(random.normal(size=(*shape, 2)), tf.float32),
        policy_info=(),
        next_step_type=tf.fill(shape, time_step.StepType.MID),
        reward=tf.constant(random.normal(size=shape), tf.float32),
        discount=tf.constant(random.uniform(size=shape), tf.float32),
    )
    ours = TrajectoryLayout(specs, n, 0.9).decode(window)
    theirs = trajectory.to_n_step_transition(window, gamma=0.9)
    np.testing.assert_allclose(ours.reward, theirs.next_time_step.reward, rtol=1e-5)
    np.testing.assert_allclose(ours.discount, theirs.next_time_step.discount, rtol=1e-5)
    np.testing.assert_array_equal(ours.observation, theirs.time_step.observation)
    np.testing.assert_array_equal(ours.next_observation, theirs.next_time_step.observation)
    np.testing.assert_array_equal(ours.action, theirs.action_step.action)
