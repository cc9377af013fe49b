"""How often and how soon a role is restarted."""

from actorlearner.local.restarts import Restarts


def test_delays_double_while_a_role_keeps_dying() -> None:
    restarts = Restarts()
    assert [restarts.delay_s(float(now)) for now in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_role_that_lived_for_a_while_is_restarted_at_once() -> None:
    restarts = Restarts()
    assert [restarts.delay_s(100.0 * k) for k in range(5)] == [1, 1, 1, 1, 1]


def test_the_limit_is_for_a_window_of_time() -> None:
    restarts = Restarts()
    assert all(restarts.delay_s(50.0 * k) is not None for k in range(10))
    assert restarts.delay_s(550.0) is None
    assert str(restarts) == "restart 10 of at most 10 in 10 minutes"
    assert restarts.delay_s(601.0) is not None
