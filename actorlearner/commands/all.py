"""All commands by name, in the order of `--help`."""

from actorlearner.commands.chaos import CHAOS
from actorlearner.commands.completion import COMPLETION
from actorlearner.commands.config import CONFIG_COMMAND
from actorlearner.commands.configs import CONFIGS
from actorlearner.commands.doctor import DOCTOR
from actorlearner.commands.health import HEALTH
from actorlearner.commands.plot import PLOT
from actorlearner.commands.report import REPORT
from actorlearner.commands.rollout import ROLLOUT
from actorlearner.commands.status import STATUS
from actorlearner.commands.training import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, LOCAL, REPLAY_SERVER
from actorlearner.commands.video import VIDEO

COMMANDS = {
    "local": LOCAL,
    "replay-server": REPLAY_SERVER,
    "collect-actor": COLLECT_ACTOR,
    "eval-actor": EVAL_ACTOR,
    "learner": LEARNER,
    "rollout": ROLLOUT,
    "video": VIDEO,
    "doctor": DOCTOR,
    "chaos": CHAOS,
    "health": HEALTH,
    "configs": CONFIGS,
    "config": CONFIG_COMMAND,
    "completion": COMPLETION,
    "plot": PLOT,
    "report": REPORT,
    "status": STATUS,
}
