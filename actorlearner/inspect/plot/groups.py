"""Groups of runs that are drawn in one color, and the environments that they are compared in."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from actorlearner.config.problems import show
from actorlearner.config.resolved import values_by_key
from actorlearner.inspect.plot.runs import RecordedRun

_FEW_KEYS = 3
_SEED = "seed"
_AGENT = "agent."


@dataclasses.dataclass(frozen=True)
class RunGroup:
    """Runs whose configurations differ in nothing but their seed.

    Attributes:
      difference: the configuration values that differ from the other groups of its environment, as in
        `replay.layout: packed`; empty for a single group.
      runs: at least one.
    """

    difference: str
    runs: tuple[RecordedRun, ...]

    @property
    def label(self) -> str:
        """Returns the difference and the number of seeds, as in `replay.layout: packed (3 seeds)`."""
        seeds = {run.config.seed for run in self.runs}
        if len(self.runs) == 1:
            which = f"seed {self.runs[0].config.seed}"
        elif len(seeds) == len(self.runs):
            which = f"{len(seeds)} seeds"
        else:
            which = f"{len(self.runs)} runs of {len(seeds)} seed{'s' * (len(seeds) > 1)}"
        return f"{self.difference} ({which})" if self.difference else which


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The groups of one environment; their returns are comparable.

    Attributes:
      title: the environment, and the algorithm if it is the same in all groups.
      groups: at least one, in the order in which their first runs were given.
    """

    title: str
    groups: tuple[RunGroup, ...]


def comparisons(runs: Sequence[RecordedRun]) -> list[Comparison]:
    """Groups runs by configuration, and the groups by environment, in the order of `runs`."""
    environments: dict[tuple[str, str], list[RecordedRun]] = {}
    for run in runs:
        environment = run.config.environment
        environments.setdefault((environment.suite, environment.name), []).append(run)
    return [_comparison(of_environment) for of_environment in environments.values()]


def _comparison(runs: Sequence[RecordedRun]) -> Comparison:
    groups: dict[str, list[RecordedRun]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_values(run), sort_keys=True), []).append(run)
    differences = _differences([_values(of_group[0]) for of_group in groups.values()])
    environment = runs[0].config.environment
    agents = {run.config.agent.name for run in runs}
    algorithm = f"{runs[0].config.agent.name} on " if len(agents) == 1 else ""
    return Comparison(
        title=f"{algorithm}{environment.name or environment.suite}",
        groups=tuple(
            RunGroup(difference, tuple(of_group))
            for difference, of_group in zip(differences, groups.values(), strict=True)
        ),
    )


def _values(run: RecordedRun) -> dict[str, Any]:
    """Returns all values but the seed, without empty mappings."""
    values = values_by_key(run.config)
    return {key: value for key, value in values.items() if key != _SEED and value != {}}


def _differences(groups: Sequence[dict[str, Any]]) -> list[str]:
    """Returns each group's values of the differing keys: a few, if these distinguish the groups."""
    every = dict.fromkeys(key for values in groups for key in values)
    differing = [key for key in every if len({_exact(values, key) for values in groups}) > 1]
    # Another algorithm always has other keys.
    shared = [key for key in differing if not key.startswith(_AGENT) or all(key in v for v in groups)]
    ordered = shared + [key for key in differing if key not in shared]
    count = next(
        count
        for count in range(min(_FEW_KEYS, len(shared)), len(ordered) + 1)
        if len({tuple(_exact(values, key) for key in ordered[:count]) for values in groups}) == len(groups)
    )
    left = len(shared) - count
    more = f" and {left} more key{'s' * (left > 1)}" if left > 0 else ""
    return [", ".join(f"{key}: {_shown(values, key)}" for key in ordered[:count]) + more for values in groups]


def _exact(values: dict[str, Any], key: str) -> str | None:
    """Returns a value as JSON, because `_shown` cuts long ones; None without the key."""
    return json.dumps(values[key], sort_keys=True) if key in values else None


def _shown(values: dict[str, Any], key: str) -> str:
    if key not in values:
        return "absent"
    value = values[key]
    if isinstance(value, str):
        return value
    return f"{value:,}" if type(value) is int else show(value)
