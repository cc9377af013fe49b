"""`python -m actorlearner` is the command `actorlearner`."""

import sys

from actorlearner.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
