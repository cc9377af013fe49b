"""How much a run prints on the terminal; logs/ always holds everything."""

import enum


class Verbosity(enum.Enum):
    """How much is printed.

    Attributes:
      QUIET: errors and incidents.
      NORMAL: the progress as well.
      VERBOSE: all log lines, also those of libraries; in local mode the progress as well.
    """

    QUIET = "quiet"
    NORMAL = "normal"
    VERBOSE = "verbose"
