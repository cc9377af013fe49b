"""The verdict on a run under chaos: a table, and the reasons for a bad verdict."""

import collections
from collections.abc import Iterator

from actorlearner.records.formatting import duration
from benchmarks.chaos.downtime import total_s
from benchmarks.chaos.findings import Findings
from benchmarks.chaos.schedule import Kind


def reasons(findings: Findings) -> list[str]:
    """Returns the reasons for a bad verdict, a line each; none for a good one."""
    account = findings.account
    counts = (
        (account.lost, "transitions were lost for no known reason"),
        (account.duplicated, "transitions are in replay more than once"),
        (account.unknown, "transitions in replay were produced by no actor"),
        (account.torn, "transitions in replay join what does not belong together"),
        (findings.not_done, "harms were still to come when the run ended"),
        (len(findings.left), f"processes were left: {', '.join(map(str, findings.left))}"),
    )
    found = list(findings.problems)
    if findings.train_step < findings.train_steps:
        found.append(f"training ended at train step {findings.train_step:,} of {findings.train_steps:,}")
    if findings.evaluated < findings.train_steps:
        found.append(f"the last evaluation was of train step {findings.evaluated:,}")
    found += [f"{count:,} {what}" for count, what in counts if count]
    found += [f"a policy went backwards: {line}" for line in findings.policies_back]
    return found


def table(findings: Findings) -> Iterator[str]:
    """Yields the lines of the table, of 80 columns at most."""
    yield from _harms(findings)
    account = findings.account
    yield ""
    steps = f"{findings.train_step:,} of {findings.train_steps:,}"
    yield f"train steps    {steps} in {duration(findings.elapsed_s)}"
    lost = account.lost_with_actor + account.lost_at_end + account.lost_with_server + account.lost
    yield f"transitions    {account.produced:,} produced, {account.stored:,} in replay, {lost:,} lost:"
    for count, why in (
        (account.lost_with_actor, "not yet confirmed when their actor was killed"),
        (account.lost_with_server, "newer than the checkpoint of a replay server that was killed"),
        (account.lost_at_end, "blocked by the rate limiter when their actor ended"),
        (account.lost, "for no known reason"),
    ):
        yield f"{count:>14,} {why}"
    yield f"{account.duplicated:>14,} duplicated, {account.unknown:,} unknown, {account.torn:,} torn"
    times = len(findings.policies_back)
    back = f"went backwards {times} times" if times else "never went backwards"
    yield f"policies       {back}, in {findings.policy_records:,} records"
    yield f"processes      {len(findings.left) or 'none'} left"
    yield f"verdict        {'bad' if reasons(findings) else 'good'}"


def _harms(findings: Findings) -> Iterator[str]:
    """Yields a line for each role: the number of harms of each kind, and its downtimes."""
    yield f"{'role':<16}{'kills':>7}{'stops':>7}{'cuts':>7}{'downtime: mean':>17}{'longest':>9}{'total':>9}"
    counts = collections.Counter((done.harm.role, done.harm.kind) for done in findings.done)
    for role, downtimes in findings.downtimes.items():
        kinds = "".join(f"{counts[role, kind]:>7}" for kind in Kind)
        seconds = [downtime.seconds for downtime in downtimes] or [0.0]
        times = (sum(seconds) / len(seconds), max(seconds), total_s(downtimes))
        mean, longest, total = (f"{time:.1f} s" for time in times)
        yield f"{role:<16}{kinds}{mean:>17}{longest:>9}{total:>9}"
