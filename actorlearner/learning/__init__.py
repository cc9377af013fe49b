"""The learner's parts: training under a strategy, publishing, checkpoints and saved policies."""
