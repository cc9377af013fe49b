"""Runs on Weights & Biases: install the extra `actorlearner[wandb]`, and name the class in the configuration.

    callbacks: [actorlearner.callbacks.weights_and_biases:WeightsAndBiases]

Local mode needs `--network host` for it: else its roles are in a network that nothing leads out of.

Each role is a run of its own there, in a group of the name of the run id; all have env steps or train steps
as the axis of their curves. A resumed run goes on where it was. WANDB_PROJECT, WANDB_MODE=offline and all
other variables of wandb's work as ever.
"""

import os
from typing import Any

import wandb

from actorlearner.callbacks.callback import Callback, Checkpoint, Context, Episode, Evaluation, Publication
from actorlearner.config.resolved import declared_values

_TRAIN_STEP = "train_step"
_ENV_STEPS = "env_steps"


class WeightsAndBiases(Callback):
    """Logs episodes, evaluations, and how training advances."""

    def __init__(self, context: Context) -> None:
        """Begins or resumes the role's run there.

        Raises:
          wandb.errors.Error: it cannot be begun, as without an API key.
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
        """Logs its return and length against the env steps of this actor."""
        self._run.log(
            {
                _ENV_STEPS: episode.env_steps,
                "collect/return": episode.episode_return,
                "collect/length": episode.length,
                "collect/policy_train_step": episode.train_step,
            }
        )

    def on_evaluation(self, evaluation: Evaluation) -> None:
        """Logs the average return, and keeps the best as the run's result."""
        self._run.log(
            {
                _TRAIN_STEP: evaluation.train_step,
                "eval/average_return": evaluation.average_return,
                "eval/env_steps": evaluation.env_steps,
            }
        )
        best = self._run.summary.get("eval/best_return", float("-inf"))
        self._run.summary["eval/best_return"] = max(best, evaluation.average_return)

    def on_publish(self, publication: Publication) -> None:
        """Logs how far the policy of the actors is."""
        self._run.log({_TRAIN_STEP: publication.train_step, "learner/published": publication.train_step})

    def on_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Notes the newest checkpoint."""
        self._run.summary["learner/checkpoint"] = str(checkpoint.path)

    def close(self) -> None:
        """Uploads what is left."""
        self._run.finish()
