"""How waits that a provider asks for are read."""

from datetime import UTC, datetime

import pytest

from providers.retry_after import retry_after_seconds

NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        ("5", 5),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("  7 ", 7),
        ("99999999999", 300),
        ("9" * 5_000, 300),
        ("1e3", None),
        ("nan", None),
        ("5, 10", None),
        ("٣", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 300),
        ("Sat, 21 Nov 2026 20:01:30 GMT", 90),
        ("Sat, 30 Feb 2026 20:01:30 GMT", None),
        ("2026-11-21T20:00:00Z", None),
        ("Fri, 01 Jan 0000 00:00:00 GMT", None),
    ],
)
def test_reads_only_digits_and_dates_and_clamps(value: str, expected: float | None) -> None:
    """Whole seconds and HTTP dates count; anything else is ignored, and no wait exceeds 300 s."""
    assert retry_after_seconds([("Retry-After", value)], NOW) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("retry-after-ms", "-1")], None),
        ([("retry-after-ms", "-1"), ("retry-after", "4")], 4),
        ([("retry-after-ms", "1500"), ("retry-after", "4")], 1.5),
        ([("retry-after", "5"), ("retry-after", "10")], None),
        ([], None),
    ],
)
def test_milliseconds_count_first_and_two_values_count_for_nothing(
    headers: list[tuple[str, str]], expected: float | None
) -> None:
    """The finer header wins where it is sound; a header given twice is no statement."""
    assert retry_after_seconds(headers, NOW) == expected


def test_a_date_is_measured_by_the_response_and_not_by_our_clock() -> None:
    """With a `Date` in the response, a wrong clock here does not change the wait."""
    headers = [("date", "Wed, 21 Oct 2099 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2099 07:28:12 GMT")]
    assert retry_after_seconds(headers, NOW) == 12
