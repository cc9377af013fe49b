"""The flag that names the file which a command writes."""

from pathlib import Path

from actorlearner.cli.command import Options
from actorlearner.records.run_directory import obstacle


def given_out(options: Options, problems: list[str], ending: str = "") -> Path | None:
    """Returns the file that was asked for by `--out`, if any; what is in its way goes to the problems.

    Args:
      options: of the command.
      problems: found so far.
      ending: of the file's name; empty if the flag's own reading has looked at it.
    """
    out = options.get("out")
    if out is None:
        return None
    path = Path(out)
    if ending and path.suffix != ending:
        wrong = f"its name does not end with {ending}"
    elif path.is_dir():
        wrong = "it is a directory"
    else:
        wrong = obstacle(str(path.parent))
    if wrong:
        allowed = f"a file NAME{ending}" if ending else "a file to be made or replaced"
        problems.append(f"--out: {str(out)!r} cannot be used ({wrong}); allowed: {allowed}")
    return path
