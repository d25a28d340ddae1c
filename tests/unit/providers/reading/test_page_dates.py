"""Dates as documents write them."""

import pytest

from providers.reading.page_dates import iso_date


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-17T10:00:00+02:00", "2024-05-17"),
        (" 2024/5/7 ", "2024-05-07"),
        ("2024.05.17", "2024-05-17"),
        ("20240517", "2024-05-17"),
        ("20240517T101010Z", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("Fri, 17 May 2024 10:00:00 GMT", "2024-05-17"),
        ("2024-13-01", None),
        ("2023-02-29", None),
        ("0001-01-01", None),
        ("9999-01-01", None),
        ("17", None),
        ("20245", None),
        ("soon", None),
        ("", None),
    ],
)
def test_dates_go_as_far_as_they_are_written(value: str, expected: str | None) -> None:
    """To the day, the month or the year; what the calendar does not have is no date."""
    assert iso_date(value) == expected
