"""Placement: cells of a netlist are put on a grid, one after another, so that their wires are short.

The observation is a dict with a mask of the cells of the grid that are free, the agent is PPO on whole
episodes, the network reads the netlist as a graph, each actor has a netlist of its own, and the wirelength is
a metric. Start it from the root of the repository:
.venv/bin/actorlearner local --config examples/placement.yaml
"""

from typing import Any

import gymnasium
import numpy as np

_GRID = 5
_NODES = 12
_NETS_PER_NODE = 2


class Placement(gymnasium.Env):
    """Places the nodes of one netlist; an episode places each node once."""

    observation_space = gymnasium.spaces.Dict(
        {
            "adjacency": gymnasium.spaces.Box(0.0, 1.0, (_NODES, _NODES), np.float32),
            "positions": gymnasium.spaces.Box(-1.0, 1.0, (_NODES, 3), np.float32),
            "current": gymnasium.spaces.Discrete(_NODES),
            "free": gymnasium.spaces.Box(0.0, 1.0, (_GRID * _GRID,), np.float32),
        }
    )
    action_space = gymnasium.spaces.Discrete(_GRID * _GRID)

    def __init__(self, netlist: int = 0) -> None:
        """Draws a netlist; equal numbers give equal netlists."""
        random = np.random.default_rng(netlist)
        self._adjacency = np.zeros((_NODES, _NODES), np.float32)
        for node in range(1, _NODES):  # Links to earlier nodes keep the netlist connected.
            for other in random.integers(0, node, _NETS_PER_NODE):
                self._adjacency[node, other] = self._adjacency[other, node] = 1.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Clears the grid."""
        super().reset(seed=seed)
        self._places: list[int] = []
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        """Places the current node; the reward is minus the wirelength that this adds."""
        before = self._wirelength()
        self._places.append(int(action))
        wirelength = self._wirelength()
        done = len(self._places) == _NODES
        return self._observation(), before - wirelength, done, False, {"wirelength": wirelength}

    def _wirelength(self) -> float:
        """Returns the sum of the Manhattan distances of all connected nodes that are placed."""
        count = len(self._places)
        row, column = np.divmod(np.array(self._places, int), _GRID)
        distances = abs(row[:, None] - row) + abs(column[:, None] - column)
        return float(np.sum(distances * self._adjacency[:count, :count]) / 2) / _GRID

    def _observation(self) -> dict[str, Any]:
        positions = np.zeros((_NODES, 3), np.float32)
        free = np.ones(_GRID * _GRID, np.float32)
        for node, place in enumerate(self._places):
            positions[node] = (*(2 * np.array(divmod(place, _GRID)) / (_GRID - 1) - 1), 1.0)
            free[place] = 0.0
        current = min(len(self._places), _NODES - 1)
        return {"adjacency": self._adjacency, "positions": positions, "current": current, "free": free}


def graph_network(observation: Any) -> Any:
    """Returns the layer that turns observations into vectors: two rounds of messages along the nets."""
    import tensorflow as tf

    class GraphNetwork(tf.keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self._rounds = [tf.keras.layers.Dense(32, activation="relu") for _ in range(2)]
            self._grid = tf.keras.layers.Dense(64, activation="relu")

        def call(self, observation: Any) -> Any:
            current = tf.one_hot(tf.cast(observation["current"], tf.int32), _NODES)
            adjacency = observation["adjacency"]
            degree = tf.reduce_sum(adjacency, axis=2, keepdims=True)
            nodes = tf.concat([observation["positions"], current[:, :, None]], axis=2)
            for layer in self._rounds:
                messages = tf.matmul(adjacency, nodes) / (degree + 1.0)
                nodes = layer(tf.concat([nodes, messages], axis=2))
            # The node that is placed now, the positions of its neighbours, and the grid.
            own = tf.reduce_sum(nodes * current[:, :, None], axis=1)
            neighbours = tf.linalg.matvec(adjacency, current)
            places = tf.reshape(observation["positions"] * neighbours[:, :, None], [-1, 3 * _NODES])
            return tf.concat([own, places, self._grid(observation["free"])], axis=1)

    return GraphNetwork()
