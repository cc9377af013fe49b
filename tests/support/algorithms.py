"""Which shipped algorithms take which actions."""

NEEDS_CONTINUOUS_ACTIONS = ("sac", "td3", "ddpg", "crossq")
"""All others take discrete actions; PPO takes both."""
