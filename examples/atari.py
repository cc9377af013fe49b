"""The games of the Atari 2600, with the frames that agents usually see.

It needs the extra `atari`: .venv/bin/pip install 'actorlearner[atari]'.
"""

from typing import Any

import gymnasium
from gymnasium.wrappers import AtariPreprocessing


def make(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Returns a game whose env steps are four frames each, the last one grey, 84x84x1 uint8.

    Args:
      name: the game, such as Pong.
      **kwargs: of `AtariPreprocessing`, such as terminal_on_life_loss.
    """
    # AtariPreprocessing skips frames itself. Named with its module, because importing it registers the games.
    game = gymnasium.make(f"ale_py:ALE/{name}-v5", frameskip=1, render_mode="rgb_array")
    return AtariPreprocessing(game, grayscale_newaxis=True, **kwargs)
