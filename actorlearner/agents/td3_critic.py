"""The target critics of TD3.

Import this only where TensorFlow may be imported.
"""

from typing import Any

from tf_agents.agents.ddpg.critic_network import CriticNetwork
from tf_agents.utils import common


class BoundedCriticNetwork(CriticNetwork):
    """A critic that clips actions to their bounds.

    TF-Agents adds noise to the actions of targets and does not clip the sum; TD3's authors do. Replay has no
    actions beyond the bounds, so nothing would correct the critics there.
    """

    def call(
        self, inputs: Any, step_type: Any = (), network_state: Any = (), training: bool = False
    ) -> tuple[Any, Any]:
        """Returns the values, [batch], of observations and actions, and the network state."""
        observation, action = inputs
        bounded = common.clip_to_spec(action, self.input_tensor_spec[1])
        return super().call((observation, bounded), step_type, network_state, training)
