"""What a person sees of a local run: a live view on a terminal, plain lines elsewhere."""

import time
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from actorlearner.local.progress import Progress
from actorlearner.records.digits import decimals
from actorlearner.records.duration import duration

_PLAIN_INTERVAL_S = 10.0


def evaluation_line(evaluation: dict[str, Any]) -> str:
    """One line about one evaluation, within 80 columns."""
    average = float(evaluation["average_return"])
    return (
        f"train step {evaluation['train_step']:,}: AverageReturn {average:.{decimals(average)}f}, "
        f"AverageEpisodeLength {evaluation['average_episode_length']:.1f}"
    )


class View:
    """Shows a run's progress; a context manager, so that the terminal is left as it was found."""

    def __init__(self, console: Console, progress: Progress) -> None:
        """Shows nothing before it is entered."""
        self._console = console
        self._progress = progress
        self._said_at = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> "View":
        """Begins the live view if the console is a terminal."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the live view."""
        if self._console.is_terminal:
            self._live.stop()

    def update(self, unready: list[str]) -> None:
        """Shows the newest figures.

        Args:
          unready: the roles that are still starting.
        """
        for evaluation in self._progress.update():
            self._console.print(evaluation_line(evaluation), soft_wrap=True)
        if self._console.is_terminal:
            self._live.update(self._picture(unready), refresh=True)
        elif time.monotonic() - self._said_at >= _PLAIN_INTERVAL_S:
            self._said_at = time.monotonic()
            self._console.print(self._plain_line(unready), soft_wrap=True)

    def _plain_line(self, unready: list[str]) -> str:
        progress = self._progress
        if unready:
            return f"starting: {', '.join(unready)}"
        return (
            f"train step {progress.train_step:,} of {progress.train_steps:,}, "
            f"{progress.train_steps_per_s:.0f} train steps/s, "
            f"{progress.env_steps_per_s:.0f} env steps/s, "
            f"replay {progress.replay_size:,} ({self._fill():.0f} %), "
            f"last return {self._last_return()}, "
            f"{duration(progress.time_left_s)} left"
        )

    def _picture(self, unready: list[str]) -> Group:
        progress = self._progress
        steps = Text(f"train step {progress.train_step:,} of {progress.train_steps:,}  ")
        line = Table.grid(expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True)
        times = f"  {duration(progress.elapsed_s)}, {duration(progress.time_left_s)} left"
        line.add_row(steps, ProgressBar(total=progress.train_steps, completed=progress.train_step), times)
        rates = (
            f"{progress.train_steps_per_s:.0f} train steps/s   {progress.env_steps_per_s:.0f} env steps/s   "
            f"replay {progress.replay_size:,} ({self._fill():.0f} %)"
        )
        collected = progress.collect_return
        returns = f"last return {self._last_return()}   while collecting " + (
            "-" if collected is None else f"{collected:.{decimals(collected)}f}"
        )
        rows: list[RenderableType] = [line, Text(rates), Text(returns)]
        if unready:
            rows.append(Text(f"starting: {', '.join(unready)}", style="yellow"))
        return Group(*rows)

    def _fill(self) -> float:
        return 100.0 * self._progress.replay_size / self._progress.capacity

    def _last_return(self) -> str:
        evaluations = self._progress.evaluations
        if not evaluations:
            return "-"
        newest = evaluations[-1]
        average = float(newest["average_return"])
        return f"{average:.{decimals(average)}f} (train step {newest['train_step']:,})"
