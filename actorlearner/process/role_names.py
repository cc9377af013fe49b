"""The names of the roles: of their commands and, with an index where there are several, their processes."""

REPLAY_SERVER = "replay-server"
COLLECT_ACTOR = "collect-actor"
EVAL_ACTOR = "eval-actor"
LEARNER = "learner"
ROLES = (REPLAY_SERVER, COLLECT_ACTOR, EVAL_ACTOR, LEARNER)
