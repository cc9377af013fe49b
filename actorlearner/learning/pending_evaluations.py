"""The file, beside a learner's checkpoint, of the policies whose evaluation was still pending."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from actorlearner.variables.container import EvaluationRequest, PolicyVariables

_TRAIN_STEPS, _ENV_STEPS = "train_steps", "env_steps"
_VARIABLE = "variable_{}"


def write_pending_evaluations(path: Path, requests: Sequence[EvaluationRequest]) -> None:
    """Writes requests as an .npz file; the first dimension of each array is the request.

    Args:
      path: the file; its name has to end with .npz.
      requests: policies of the same structure; may be none.

    Raises:
      OSError: the file cannot be written.
    """
    versions = [request.version for request in requests]
    columns = zip(*(version.values for version in versions), strict=True)
    # In memory first: on a full disk, an archive raises a second time when it is garbage-collected.
    file = io.BytesIO()
    np.savez(
        file,
        **{_TRAIN_STEPS: np.array([version.train_step for version in versions], np.int64)},
        **{_ENV_STEPS: np.array([request.env_steps for request in requests], np.int64)},
        **{_VARIABLE.format(i): np.stack(column) for i, column in enumerate(columns)},
    )
    path.write_bytes(file.getbuffer())


def read_pending_evaluations(path: Path, generation: int) -> list[EvaluationRequest]:
    """Reads the file of `write_pending_evaluations`.

    Args:
      path: the file.
      generation: the generation of the learner that wrote them, see PolicyVariables.

    Raises:
      OSError: the file cannot be read.
    """
    with np.load(path, allow_pickle=False) as arrays:
        train_steps, env_steps = arrays[_TRAIN_STEPS], arrays[_ENV_STEPS]
        names = [_VARIABLE.format(i) for i in range(len(arrays.files) - 2)]
        columns = [arrays[name] for name in names]
    return [
        EvaluationRequest(
            PolicyVariables(int(train_steps[k]), [column[k] for column in columns], generation),
            int(env_steps[k]),
        )
        for k in range(len(train_steps))
    ]
