"""The configuration and results for TensorBoard's HParams plugin."""

from typing import Any

from tensorboard.plugins.hparams import api as hparams

from actorlearner.config.problems import show
from actorlearner.config.resolved import declared_values
from actorlearner.config.schema import Config
from actorlearner.records.summaries import Summaries

METRICS = ("eval/AverageReturn", "eval/AverageEpisodeLength")
"""The curves that the plugin shows as results."""


def write_hyperparameters(summaries: Summaries, config: Config) -> None:
    """Writes all keys and values; the plugin expects the curves METRICS in the same summaries."""
    values = {key: _plain(value) for key, value in declared_values(config).items()}
    with summaries.writer.as_default(step=0):
        hparams.hparams_config(
            hparams=[hparams.HParam(key) for key in values],
            metrics=[hparams.Metric(name) for name in METRICS],
        )
        hparams.hparams(values)


def _plain(value: Any) -> bool | int | float | str:
    """Returns a value of a type that the plugin supports; other values as JSON."""
    return value if isinstance(value, (bool, int, float, str)) else show(value)
