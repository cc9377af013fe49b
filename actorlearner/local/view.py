"""The console output of a local run: a live view on a terminal, plain lines elsewhere, and a summary."""

import time
from collections.abc import Iterator, Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from actorlearner.acting.best_record import read_best
from actorlearner.inspect.bottleneck.verdict import verdict_lines
from actorlearner.local.progress import Progress
from actorlearner.records.formatting import decimals, duration, rate_text, return_text
from actorlearner.records.metrics import METRICS_INTERVAL_S

_PLAIN_INTERVAL_S = 10.0


class View:
    """Shows a run's progress; a context manager, which restores the terminal at its end."""

    def __init__(self, console: Console, progress: Progress) -> None:
        """Prints nothing yet."""
        self._console = console
        self._progress = progress
        self._shown_at = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._interval_s = METRICS_INTERVAL_S if console.is_terminal else _PLAIN_INTERVAL_S

    def __enter__(self) -> "View":
        """Starts the live view if the console is a terminal."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stops the live view."""
        self._live.stop()

    def update(self, unready: list[str]) -> None:
        """Prints new evaluations; at intervals, also the run's newest figures and the `unready` roles."""
        print_evaluations(self._console, self._progress)
        if time.monotonic() - self._shown_at < self._interval_s:
            return
        self._shown_at = time.monotonic()
        self._progress.update()
        if self._console.is_terminal:
            self._live.update(self._picture(unready), refresh=True)
            return
        facts = [f"starting: {', '.join(unready)}"] if unready else []
        if self._progress.train_step > 0 or not unready:  # One slow actor must not hide the run's progress.
            left = duration(self._progress.status.time_left_s)
            facts = [self._steps(), *self._rates(), self._last_return(), f"{left} left", *facts]
        self._console.print(", ".join(facts), soft_wrap=True)

    def _picture(self, unready: list[str]) -> Group:
        progress, status = self._progress, self._progress.status
        bar = Table.grid(expand=True)
        bar.add_column(no_wrap=True)
        bar.add_column(ratio=1)
        bar.add_column(no_wrap=True)
        times = f"  {duration(progress.elapsed_s)}, {duration(status.time_left_s)} left"
        train_steps = ProgressBar(total=status.train_steps, completed=progress.train_step)
        bar.add_row(Text(f"{self._steps()}  "), train_steps, times)
        collected = "-" if status.collect_return is None else return_text(status.collect_return)
        returns = f"{self._last_return()}   while collecting {collected}"
        starting = [Text(f"starting: {', '.join(unready)}", style="yellow")] if unready else []
        return Group(bar, Text("   ".join(self._rates())), Text(returns), *starting)

    def _steps(self) -> str:
        return f"train step {self._progress.train_step:,} of {self._progress.status.train_steps:,}"

    def _rates(self) -> list[str]:
        status = self._progress.status
        rates = [
            f"{rate_text(status.train_steps_per_s or 0)} train steps/s",
            f"{rate_text(status.env_steps_per_s or 0)} env steps/s",
        ]
        if (capacity := status.replay.get("capacity")) is not None:
            size = status.replay["size"]
            rates.append(f"replay {size:,} ({100 * size / capacity:.0f} %)")
        return rates

    def _last_return(self) -> str:
        if self._progress.config.evaluate.interval is None:
            return "evaluation is off"
        if not self._progress.evaluations:
            return "last return -"
        newest = self._progress.evaluations[-1]
        return f"last return {return_text(newest['average_return'])} (train step {newest['train_step']:,})"


def print_evaluations(console: Console, progress: Progress) -> None:
    """Prints the evaluations since the last call of `progress.new_evaluations`."""
    for evaluation in progress.new_evaluations():
        console.print(
            f"train step {evaluation['train_step']:,}: "
            f"AverageReturn {return_text(evaluation['average_return'])}, "
            f"AverageEpisodeLength {evaluation['average_episode_length']:.1f}",
            soft_wrap=True,
        )


def summary_lines(progress: Progress, start_ups: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines: returns, totals, start-up with its phases, mean rates, bottleneck, files."""
    directory = progress.directory
    best = progress.status.best_evaluation
    if best is not None:
        first, last = progress.evaluations[0], progress.evaluations[-1]
        yield (
            f"AverageReturn  first {return_text(first['average_return'])}, "
            f"best {return_text(best['average_return'])} at train step {best['train_step']:,}, "
            f"last {return_text(last['average_return'])} at train step {last['train_step']:,}"
        )
    elif progress.config.evaluate.interval is None:
        yield "AverageReturn  evaluation is off"
    best_policy = read_best(directory.best_policy)
    if best_policy is not None:
        yield f"best policy    {best_policy.describe()}"
    yield (
        f"totals         {progress.train_step:,} train steps, {progress.env_steps:,} env steps, "
        f"{progress.episodes:,} episodes{'; this part took' if progress.is_resumed else ' in'} "
        f"{duration(progress.elapsed_s)}"
    )
    if faults := progress.status.faults:
        yield f"faults         {faults:,} of environments, each named in logs/"
    if progress.first_steps_s:
        env_s, train_s = progress.first_steps_s
        yield f"start-up       first env step after {env_s:.1f} s, first train step after {train_s:.1f} s"
        for role, phases in start_ups.items():
            yield f"  {role:<16} {phases}"
    train_rate, env_rate = (f"{rate:.{decimals(rate, least=1)}f}" for rate in progress.mean_rates)
    yield f"mean rates     {train_rate} train steps/s, {env_rate} env steps/s, start-up included"
    for i, line in enumerate(verdict_lines(progress.status.bottlenecks)):
        yield f"{'' if i else 'bottleneck':<15}{line}"
    yield f"files          {directory.path}"
    for name, path in (
        ("policies", directory.policies),
        ("checkpoints", directory.learner_checkpoints),
        ("metrics", directory.metrics("eval").parent),
        ("TensorBoard", directory.summaries("eval").parent),
        ("logs", directory.log("learner").parent),
    ):
        if path.exists():
            yield f"  {name:<13}{path.relative_to(directory.path)}/"
