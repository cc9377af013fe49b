"""Lists the shipped algorithms by the kind of actions that they take."""

NEEDS_CONTINUOUS_ACTIONS = ("sac", "td3", "ddpg", "tqc")
"""All others take discrete actions; PPO takes both."""
