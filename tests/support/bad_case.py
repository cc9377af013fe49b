"""One input that must be refused: a command line and a configuration file."""

import dataclasses
from pathlib import Path

GOOD = "environment: {suite: gym, name: Pendulum-v1}\nagent: {name: sac}\n"

LOCAL = ("local", "--config", "{config}")


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line with a configuration file, one of which is wrong.

    Attributes:
      kind: which of the generators made it.
      name: what is wrong, in a few words; unique within the kind.
      expected: for each mistake, the beginning of a line of standard error after "error: ".
      config: the contents of the file {config}; None for no file.
      arguments: the command line; {config} and {inputs} stand for the file and for the folder of shared
        inputs.
      in_process: whether `main` may also run it in the process of the tests, which starts no role.
    """

    kind: str
    name: str
    expected: tuple[str, ...]
    config: bytes | None = GOOD.encode()
    arguments: tuple[str, ...] = LOCAL
    in_process: bool = True

    def filled_in(self, text: str, place: Path, inputs: Path) -> str:
        """Returns an argument or an expected line with the real paths."""
        return text.replace("{config}", str(place / "exp.yaml")).replace("{inputs}", str(inputs))

    def command_line(self, place: Path, inputs: Path) -> list[str]:
        """Writes the configuration file into `place`; returns the arguments."""
        if self.config is not None:
            (place / "exp.yaml").write_bytes(self.config)
        return [self.filled_in(argument, place, inputs) for argument in self.arguments]


def from_text(kind: str, name: str, expected: str, text: str) -> Case:
    """Returns a case whose file contains `text`."""
    return Case(kind, name, (expected,), text.encode("utf-8", "surrogatepass"))


def from_flags(kind: str, name: str, expected: str, *overrides: str) -> Case:
    """Returns a case with a good file and bad overrides."""
    return Case(kind, name, (expected,), arguments=(*LOCAL, "--set", *overrides))
