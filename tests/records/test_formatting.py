import math

import pytest

from actorlearner.acting.best_record import BestRecord, EpisodeStatistics
from actorlearner.acting.episodes import PlayedEpisode
from actorlearner.acting.rollout_command import episode_line, mean_line
from actorlearner.inspect.report.tables import format_return
from actorlearner.records.formatting import bytes_text, decimals, rate_text


@pytest.mark.parametrize(
    ("values", "least", "expected"),
    [
        ((-1362.3,), 2, 2),
        ((-1.0,), 2, 2),
        ((0.3,), 2, 3),
        ((-0.0123,), 2, 4),
        ((-0.3, 0.004), 1, 3),
        ((-157.0, 77.6), 1, 1),
        ((0.0, 0.0), 1, 1),
        ((math.nan, -math.inf), 2, 2),
        ((1e-300,), 2, 12),
    ],
)
def test_three_digits_are_significant(values: tuple[float, ...], least: int, expected: int) -> None:
    assert decimals(*values, least=least) == expected


@pytest.mark.parametrize(
    ("per_s", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.0025, "0.00250"),
        (0.4, "0.400"),
        (4.0, "4.00"),
        (12.5, "12"),
        (1234.5, "1,234"),
    ],
)
def test_the_rate_of_a_slow_simulator_is_not_shown_as_zero(per_s: float | None, text: str) -> None:
    assert rate_text(per_s) == text


def test_small_returns_are_shown_with_digits_that_differ() -> None:
    facts = BestRecord(
        130, EpisodeStatistics([-0.3016, -0.3058], [5, 5]), EpisodeStatistics([-0.3012, -0.3118], [5, 5])
    )
    described = "-0.306 ± 0.005 on 2 fresh episodes (-0.304 when it was chosen), train step 130"
    assert facts.describe() == described
    assert episode_line(3, PlayedEpisode(-0.00123456, 7)) == "Episode #3: reward: -0.00123, length: 7"
    assert mean_line([PlayedEpisode(-0.3012, 5), PlayedEpisode(-0.3118, 5)]).startswith(
        "mean of 2: reward: -0.306 ± 0.005,"
    )
    assert format_return(-0.00123) == "-0.00123"


def test_numbers_of_bytes_as_text() -> None:
    texts = [bytes_text(number) for number in (0, 2**20, 2**29, 1.26 * 2**30, 2**50)]
    assert texts == ["0.0 MiB", "1.0 MiB", "0.5 GiB", "1.3 GiB", "1,048,576.0 GiB"]
