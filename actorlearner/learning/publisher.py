"""Publishes the policy variables to the variable container."""

import reverb
import tensorflow as tf

from actorlearner.agents.make import AgentParts
from actorlearner.variables.container import EvaluationRequest, PolicyVariables, VariableContainer


class Publisher:
    """Copies the variables and pushes them; no version is published twice."""

    def __init__(self, client: reverb.Client, parts: AgentParts) -> None:
        """Does not publish yet."""
        self._container = VariableContainer(client)
        self._variables = parts.policy_variables
        self._train_step = parts.train_step
        self._published = -1

    def publish(self) -> None:
        """Makes this train step's variables the newest; blocks until the server has them."""
        version = self._version()
        if version.train_step > self._published:
            self._container.push(version)
            self._published = version.train_step

    def publish_for_evaluation(self, env_steps: int) -> None:
        """Queues this train step's variables for evaluation; blocks until the server has them.

        Args:
          env_steps: env steps of all actors so far.
        """
        self._container.push_evaluation(EvaluationRequest(self._version(), env_steps))

    def _version(self) -> PolicyVariables:
        values = [tf.convert_to_tensor(variable).numpy() for variable in self._variables]
        return PolicyVariables(int(self._train_step.numpy()), values)
