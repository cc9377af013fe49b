"""Logs runs to Weights & Biases. Install the extra `actorlearner[wandb]` and configure the class below.

    callbacks: [actorlearner.callbacks.weights_and_biases:WeightsAndBiases]

Local mode needs `--network host` for it: by default its roles run in a network without a way out.

Each role is a W&B run of its own, in a group named after the run id, with env steps or train steps as the
axis of its curves. A resumed run continues its W&B runs. WANDB_PROJECT, WANDB_MODE and wandb's other
environment variables work as usual.
"""

import os
from typing import Any

import wandb

from actorlearner.callbacks.callback import Callback, Checkpoint, Context, Episode, Evaluation, Publication
from actorlearner.config.resolved import declared_values

_TRAIN_STEP = "train_step"
_ENV_STEPS = "env_steps"


class WeightsAndBiases(Callback):
    """Logs episodes, evaluations, publications and checkpoints."""

    def __init__(self, context: Context) -> None:
        """Starts or resumes the role's W&B run.

        Raises:
          wandb.errors.Error: the run cannot be started, for example without an API key.
        """
        super().__init__(context)
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "actorlearner"),
            group=context.run_id,
            job_type=context.role.rstrip("0123456789-"),
            name=f"{context.run_id} {context.role}",
            id=f"{context.run_id}-{context.role}",
            resume="allow",
            dir=str(context.run_dir),
            config=declared_values(context.config),
        )
        self._run.define_metric("collect/*", step_metric=_ENV_STEPS)
        for curves in ("eval/*", "learner/*"):
            self._run.define_metric(curves, step_metric=_TRAIN_STEP)

    def on_episode(self, episode: Episode) -> None:
        """Logs the episode's return and length against the env steps of this actor."""
        self._run.log(
            {
                _ENV_STEPS: episode.env_steps,
                "collect/return": episode.episode_return,
                "collect/length": episode.length,
                "collect/policy_train_step": episode.train_step,
                **{f"collect/info/{name}": value for name, value in episode.info.items()},
            }
        )

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Logs the average return and keeps the best one in the run's summary."""
        self._run.log(
            {
                _TRAIN_STEP: evaluation.train_step,
                "eval/average_return": evaluation.average_return,
                "eval/env_steps": evaluation.env_steps,
                **{f"eval/info/{name}": value for name, value in evaluation.average_info.items()},
            }
        )
        best = self._run.summary.get("eval/best_return", float("-inf"))
        self._run.summary["eval/best_return"] = max(best, evaluation.average_return)

    def on_publish(self, publication: Publication) -> None:
        """Logs the train step of the published policy."""
        self._run.log({_TRAIN_STEP: publication.train_step, "learner/published": publication.train_step})

    def on_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keeps the newest checkpoint's path in the run's summary."""
        self._run.summary["learner/checkpoint"] = str(checkpoint.path)

    def close(self) -> None:
        """Uploads the remaining data."""
        self._run.finish()
