"""Networks start afresh at the train steps of `agent.reset_at`."""

import dataclasses
from pathlib import Path

import numpy as np
import tensorflow as tf

from actorlearner.config.schema import Config, LearnConfig
from actorlearner.learning.group import Group, variables_of
from actorlearner.learning.learner import Learner
from actorlearner.learning.outputs import Outputs
from actorlearner.learning.resets import Resets
from actorlearner.learning.training_loop import train
from actorlearner.process.startup_timer import StartupTimer
from actorlearner.process.stop import Stop
from tests.support.training import DQN, fixed_dataset, make_learner, make_parts

BATCH, TRAIN_STEPS = 6, 20
RESETTING = dataclasses.replace(DQN, reset_at=[7], observation_normalizer=True)


class Calls(Outputs):
    """Remembers the train steps after which a call has ended."""

    def __init__(self) -> None:
        self.ends: list[int] = []

    def after_call(self, train_step: int, loss: object) -> None:
        self.ends.append(train_step)


def make_training(directory: Path) -> tuple[Resets, Learner, Group]:
    parts = make_parts(RESETTING)
    group = Group(tf.distribute.get_strategy(), Stop())
    resets = Resets(parts, group)
    return (
        resets,
        make_learner(directory, parts, lambda: fixed_dataset(BATCH, TRAIN_STEPS), group=group),
        group,
    )


def test_everything_but_the_normalizer_and_the_train_step_starts_afresh(tmp_path: Path) -> None:
    resets, learner, _ = make_training(tmp_path)
    parts = resets._parts
    assert parts.normalizer is not None
    kept = {id(variable) for variable in (parts.train_step, *parts.normalizer.variables)}
    variables = sorted(variables_of(parts.agent), key=lambda variable: id(variable) in kept)
    afresh = len(variables) - len(kept)

    def values() -> list[np.ndarray]:
        return [variable.numpy() for variable in variables]

    initial = values()
    learner.train(7)
    trained = values()
    changed = sum(not np.array_equal(a, b) for a, b in zip(trained, initial, strict=True))
    assert changed == len(variables) - 4  # All but Adam's settings.
    resets.apply(6)
    assert all(map(np.array_equal, values(), trained))
    resets.apply(7)
    assert all(map(np.array_equal, values(), initial[:afresh] + trained[afresh:]))


def test_a_call_ends_where_a_reset_is_due_and_the_reset_comes_after_its_outputs(tmp_path: Path) -> None:
    resets, learner, group = make_training(tmp_path)
    outputs, before, after = Calls(), [], []
    apply = resets.apply

    def watched(step: int) -> None:
        before.append(variables_of(resets._parts.agent)[0].numpy())
        apply(step)
        after.append(variables_of(resets._parts.agent)[0].numpy())

    resets.apply = watched  # type: ignore[method-assign]
    config = Config(
        agent=RESETTING, learn=LearnConfig(train_steps=TRAIN_STEPS, batch_size=BATCH, train_steps_per_call=10)
    )
    train(config, group, learner, outputs, resets, StartupTimer())
    assert outputs.ends == [7, 17, 20]
    changed = [not np.array_equal(b, a) for b, a in zip(before, after, strict=True)]
    assert changed == [False, True, False]
