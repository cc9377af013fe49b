"""How much a run says on the terminal; in logs/ there is always everything."""

import enum


class Verbosity(enum.Enum):
    """How much is said.

    Attributes:
      QUIET: what goes wrong.
      NORMAL: how the run goes, too.
      VERBOSE: instead, all that goes to the logs, also of libraries; in local mode beside how the run goes.
    """

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"
