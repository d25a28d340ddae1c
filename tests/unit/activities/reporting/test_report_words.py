"""Moments as a report writes them."""

import pytest

from activities.reporting.report_words import ReportWords

ENGLISH = ReportWords("en")


@pytest.mark.parametrize(
    ("timestamp", "day", "moment"),
    [
        ("2026-11-21T20:15:15+00:00", "2026-11-21", "2026-11-21 20:15 UTC"),
        ("2026-11-21T20:15:15Z", "2026-11-21", "2026-11-21 20:15 UTC"),
        ("2026-11-21T20:15:15.123456-07:30", "2026-11-21", "2026-11-21 20:15 -07:30"),
        ("2026-11-21T20:15:15+02:00", "2026-11-21", "2026-11-21 20:15 +02:00"),
        ("2026-11-21T20:15:15", "2026-11-21", "2026-11-21 20:15"),
        ("", ENGLISH["unknown_day"], "unknown"),
        (None, ENGLISH["unknown_day"], "unknown"),
    ],
)
def test_moments_are_told_with_their_offset(timestamp: str | None, day: str, moment: str) -> None:
    """To the minute, in the zone that they were noted in; what is not known is called that."""
    assert (ENGLISH.day(timestamp), ENGLISH.moment(timestamp)) == (day, moment)
