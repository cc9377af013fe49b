"""All commands by name, in the order of `--help`."""

from actorlearner.cli.completion import COMPLETION
from actorlearner.cli.config import CONFIG_COMMAND
from actorlearner.cli.configs import CONFIGS
from actorlearner.cli.doctor import DOCTOR
from actorlearner.cli.health import HEALTH
from actorlearner.cli.plot import PLOT
from actorlearner.cli.report import REPORT
from actorlearner.cli.rollout import ROLLOUT
from actorlearner.cli.status import STATUS
from actorlearner.cli.training import COLLECT_ACTOR, EVAL_ACTOR, LEARNER, LOCAL, REPLAY_SERVER
from actorlearner.cli.video import VIDEO

COMMANDS = {
    "local": LOCAL,
    "replay-server": REPLAY_SERVER,
    "collect-actor": COLLECT_ACTOR,
    "eval-actor": EVAL_ACTOR,
    "learner": LEARNER,
    "rollout": ROLLOUT,
    "video": VIDEO,
    "doctor": DOCTOR,
    "health": HEALTH,
    "configs": CONFIGS,
    "config": CONFIG_COMMAND,
    "completion": COMPLETION,
    "plot": PLOT,
    "report": REPORT,
    "status": STATUS,
}
