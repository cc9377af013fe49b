"""One input that must be refused, and how it is given to the command."""

import dataclasses
from pathlib import Path

GOOD = "environment: {suite: gym, name: Pendulum-v1}\nagent: {name: sac}\n"

LOCAL = ("local", "--config", "{config}")


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line with a configuration file, of which something is wrong.

    Attributes:
      kind: which of the generators made it.
      name: what is wrong, in a few words; unique within the kind.
      expected: for each thing that is wrong, how a line of standard error goes on after "error: ".
      config: what the file {config} holds; None if there is none.
      arguments: the command line; {config} and {inputs} stand for the file and for the folder of what cases
        share.
      in_process: whether it may also be given to `main` in the process of the tests, where there is no role.
    """

    kind: str
    name: str
    expected: tuple[str, ...]
    config: bytes | None = GOOD.encode()
    arguments: tuple[str, ...] = LOCAL
    in_process: bool = True

    def filled_in(self, text: str, place: Path, inputs: Path) -> str:
        """An argument or an expected line with the paths of this machine."""
        return text.replace("{config}", str(place / "exp.yaml")).replace("{inputs}", str(inputs))

    def command_line(self, place: Path, inputs: Path) -> list[str]:
        """Writes the configuration file into `place`; returns the arguments."""
        if self.config is not None:
            (place / "exp.yaml").write_bytes(self.config)
        return [self.filled_in(argument, place, inputs) for argument in self.arguments]


def from_text(kind: str, name: str, expected: str, text: str) -> Case:
    """A case whose file holds `text`."""
    return Case(kind, name, (expected,), text.encode("utf-8", "surrogatepass"))


def from_flags(kind: str, name: str, expected: str, *overrides: str) -> Case:
    """A case whose file is good but for these overrides."""
    return Case(kind, name, (expected,), arguments=(*LOCAL, "--set", *overrides))
