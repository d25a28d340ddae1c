"""Timeframes become first and last days."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.request import Constraints, published_between

TODAY = "2026-03-31"


@pytest.mark.parametrize(
    ("timeframe", "expected"),
    [
        (None, (None, None)),
        ("day", ("2026-03-30", None)),
        ("week", ("2026-03-24", None)),
        ("month", ("2026-02-28", None)),
        ("year", ("2025-03-30", None)),
        ("2020..", ("2020-01-01", None)),
        ("2020..2021", ("2020-01-01", "2021-12-31")),
        ("2020-02..2024-02", ("2020-02-01", "2024-02-29")),
        ("2020-05-17..2020-06-30", ("2020-05-17", "2020-06-30")),
        ("2023-02-31..2023-99-99", ("2023-02-28", "2023-12-31")),
    ],
)
def test_a_timeframe_has_a_first_and_a_last_day(timeframe: str | None, expected: tuple[str | None, str | None]) -> None:
    """Back from the day of the run, or between two dates, whole years and months included."""
    assert published_between(timeframe, TODAY) == expected


@given(st.from_regex(Constraints.model_fields["timeframe"].metadata[0].pattern, fullmatch=True))
def test_every_accepted_timeframe_can_be_used(timeframe: str) -> None:
    """Every accepted timeframe has a first day, so no workflow fails over it."""
    first, last = published_between(timeframe, TODAY)
    assert first is not None
    assert len(first) == 10
    assert last is None or len(last) == 10
