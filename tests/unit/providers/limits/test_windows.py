"""Counting what happened in a window."""

import pytest

from providers.shared.rates import CELLS, Amount, add_amount, drop_expired, find_room


def test_what_is_close_together_is_counted_together() -> None:
    """A window is kept in a few cells, whatever the number of calls."""
    log: tuple[Amount, ...] = ()
    for number in range(1_000):
        log = drop_expired(add_amount(log, number / 100, 1, 5.0), number / 100, 5.0)
    assert len(log) <= CELLS + 2
    assert sum(entry.amount for entry in log) >= 500


def test_nothing_leaves_a_window_too_early() -> None:
    """An amount counts at least for the whole window after it."""
    log = add_amount((), 10.0, 3, 5.0)
    assert drop_expired(log, 15.0, 5.0) == log
    assert drop_expired(log, 15.3, 5.0) == ()


def test_room_comes_when_enough_has_left() -> None:
    """The first time at which the rest and the new amount fit."""
    log = (Amount(0.0, 4), Amount(3.0, 4))
    assert find_room(log, (), 2, limit=10, window=10.0, floor=5.0) == 5.0
    assert find_room(log, (), 3, limit=10, window=10.0, floor=5.0) == pytest.approx(10.5)
    assert find_room(log, (), 7, limit=10, window=10.0, floor=5.0) == pytest.approx(13.5)
    assert find_room(log, (), 99, limit=10, window=10.0, floor=5.0) == pytest.approx(13.5)


def test_what_is_promised_counts() -> None:
    """Places count like calls at their times."""
    assert find_room((), [(5.0, 10)], 1, limit=10, window=10.0, floor=5.0) == pytest.approx(15.5)


def test_what_is_given_back_counts_no_more() -> None:
    """Taken from what came last, and never below nothing."""
    log = add_amount(add_amount((), 0.0, 5, 10.0), 5.0, 5, 10.0)
    assert add_amount(log, 6.0, -7, 10.0) == (Amount(0.0, 3),)
    assert add_amount(log, 6.0, -70, 10.0) == ()
