"""Dates as documents write them, as far as they go: `2024`, `2024-05`, `2024-05-17`."""

import re
from datetime import date
from email.utils import parsedate
from typing import Final

ISO_LIKE: Final = re.compile(r"^(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?!\d)")
COMPACT: Final = re.compile(r"^(\d{4})(\d{2})(\d{2})(?:T|$)")
LONGEST_DATE: Final = 100
YEARS: Final = range(1000, 2101)


def iso_date(value: str | None) -> str | None:
    """The date at the start of a value, or None if there is none, or none that the calendar has.

    Read are ISO 8601 and similar forms, a mail's form, and `May 17, 2024`. Never raises: the text is a page's.
    """
    written = (value or "").strip()
    if len(written) > LONGEST_DATE:
        return None
    found = COMPACT.match(written) or ISO_LIKE.match(written)
    if found is not None:
        return _check_date(*found.groups())
    try:
        read = parsedate(written) or parsedate(f"{written} 00:00")
    except (ValueError, IndexError, TypeError, OverflowError):  # it raises all of these, numbers too large among them
        return None
    return None if read is None else _check_date(str(read[0]), str(read[1]), str(read[2]))


def _check_date(year: str, month: str | None = None, day: str | None = None) -> str | None:
    try:
        date(int(year), int(month or 1), int(day or 1))
    except (ValueError, OverflowError):
        return None
    if int(year) not in YEARS:
        return None
    return "-".join([year, *(part.zfill(2) for part in (month, day) if part)])
