import numpy as np
import pytest

from actorlearner.environments.environment import Step
from actorlearner.environments.load import TimeLimit


class Terminating:
    """Terminates after `length` env steps."""

    observation_spec = "observations"
    action_spec = "actions"

    def __init__(self, length):
        self.length = length
        self.closed = False

    def reset(self):
        self.steps = 0
        return np.zeros(1)

    def step(self, action):
        self.steps += 1
        ended = self.steps == self.length
        return Step(np.full(1, self.steps), float(action), 0.0 if ended else 1.0, ended)

    def close(self):
        self.closed = True


@pytest.mark.parametrize(
    ("length", "limit", "steps", "discount"),
    [(9, 3, 3, 1.0), (2, 3, 2, 0.0), (3, 3, 3, 0.0), (9, 1, 1, 1.0)],
)
def test_episodes_are_truncated_at_the_limit(length, limit, steps, discount):
    environment = TimeLimit(Terminating(length), limit)
    for _ in range(2):  # the limit counts from each reset
        environment.reset()
        episode = [environment.step(0.5) for _ in range(steps)]
        assert [step.last for step in episode] == [False] * (steps - 1) + [True]
        assert [step.discount for step in episode] == [1.0] * (steps - 1) + [discount]
        assert episode[-1].observation == steps
        assert episode[-1].reward == 0.5


def test_specs_and_close_are_forwarded_to_the_environment():
    inner = Terminating(3)
    environment = TimeLimit(inner, 2)
    assert (environment.observation_spec, environment.action_spec) == ("observations", "actions")
    environment.close()
    assert inner.closed
