"""Writes evaluations to the metrics file and to TensorBoard."""

import logging

import numpy as np

from actorlearner.callbacks.callback import Evaluation
from actorlearner.config.schema import Config
from actorlearner.process.ram import resident_bytes
from actorlearner.records.formatting import decimals
from actorlearner.records.metrics import MetricsWriter, read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.records.summaries import Summaries, write_hyperparameters

_log = logging.getLogger(__name__)


def last_train_step(directory: RunDirectory) -> int:
    """Returns the train step of the last recorded evaluation; -1 if there is none."""
    recorded = read_records(directory.metrics("eval"))
    return int(recorded[-1]["train_step"]) if recorded else -1


class EvaluationRecorder:
    """Writes evaluations to the metrics file and to TensorBoard.

    Attributes:
      train_step: the train step of the last recorded evaluation, by this or a previous eval actor; -1 if
        there is none.
    """

    def __init__(self, directory: RunDirectory, config: Config) -> None:
        """Continues after the last record in the run directory."""
        self.train_step = last_train_step(directory)
        self._counts_cut_off = config.evaluate.max_steps is not None
        self._metrics = MetricsWriter(directory.metrics("eval"))
        self._summaries = Summaries(directory.summaries("eval"))
        write_hyperparameters(self._summaries, config)

    def write(self, evaluation: Evaluation, cut_off: int) -> None:
        """Records an evaluation, `cut_off` of whose episodes were cut off after `evaluate.max_steps`."""
        average_return, info = float(np.mean(evaluation.returns)), evaluation.average_info
        average_length = float(np.mean(evaluation.lengths))
        curves = {"eval/AverageReturn": average_return, "eval/AverageEpisodeLength": average_length}
        curves_of_info = {f"eval/info/{name}": value for name, value in info.items()}
        self._summaries.scalars(curves | curves_of_info, evaluation.train_step)
        self._summaries.flush()
        # The record comes last: a recorded version is not evaluated again, so its points must be written.
        self._metrics.write(
            {
                "train_step": evaluation.train_step,
                "env_steps": evaluation.env_steps,
                "returns": evaluation.returns,
                "lengths": evaluation.lengths,
                "average_return": average_return,
                "average_episode_length": average_length,
                **({"info": evaluation.info, "average_info": info} if info else {}),
                **({"cut_off": cut_off} if self._counts_cut_off else {}),
                "memory_bytes": resident_bytes(),
            }
        )
        self.train_step = evaluation.train_step
        _log.info(
            "train step %d: AverageReturn %.*f, AverageEpisodeLength %.1f over %d episodes%s",
            evaluation.train_step,
            decimals(average_return),
            average_return,
            average_length,
            len(evaluation.returns),
            f", {cut_off} cut off" if cut_off else "",
        )

    def flush(self) -> bool:
        """Writes the records that a full disk has delayed; returns whether everything is written."""
        written = [self._metrics.flush(), self._summaries.flush()]
        return all(written)
