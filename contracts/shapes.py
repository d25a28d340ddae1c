"""Texts of a fixed shape: the pattern that checks one, and the words that tell a person what is expected."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_DAY: Final = "[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?"


class Shape(NamedTuple):
    """How a text must look."""

    pattern: str
    """A regular expression for the whole of it."""
    expected: str
    """The same for people, with an example."""


NAME: Final = Shape(
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "at most 64 letters, digits, dots, dashes and underscores, such as team-1"
)
PROVIDER: Final = Shape(r"^[a-z][a-z0-9_]{0,31}$", "the name of a search provider, such as wikipedia")
ENDPOINT: Final = Shape(r"^[a-z][a-z0-9_-]{0,31}$", "a name in small letters, such as office-server")
DOMAIN: Final = Shape(
    r"^([a-zA-Z0-9_-]{1,63}\.)*[a-zA-Z0-9-]{2,63}$", "a host name alone, without https:// and path, such as example.org"
)
LANGUAGE: Final = Shape(r"^[a-z]{2,3}$", "a language code of two or three small letters, such as en")
REPORT_LANGUAGE: Final = Shape(
    r"^(same as question|[a-z]{2,3})$", "`same as question`, or a language code of two or three small letters like de"
)
LANGUAGE_TAG: Final = Shape(r"^[a-z]{2,3}(-[A-Za-z0-9]+)*$", "a language code, such as en or pt-BR")
TIMEFRAME: Final = Shape(
    rf"^(day|week|month|year|{_DAY}\.\.({_DAY})?)$",
    "day, week, month or year for the last one, or dates such as 2023-05..2024 or 2023..",
)
BASE_ADDRESS: Final = Shape(
    r"^https?://([^\s/?#]*@)?[\w.{}:\[\]-]+([/?#]\S*)?$",
    "an address such as http://localhost:8080 or https://example.org",
)
CONTACT: Final = Shape(
    r"^[!-'*-~]([ !-'*-~]{0,198}[!-'*-~])?$", "an address that sites can write to, such as crawler@example.org"
)
DOCUMENT_HASH: Final = Shape(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 hexadecimal digits")
AGENT_ID: Final = Shape(r"^[a-z][a-z0-9-]{0,31}$", "a name in small letters, digits and dashes, such as agent-1")

EXPECTED: Final[Mapping[str, str]] = {
    shape.pattern: shape.expected
    for shape in (
        *(NAME, PROVIDER, ENDPOINT, DOMAIN, LANGUAGE, LANGUAGE_TAG, REPORT_LANGUAGE, TIMEFRAME),
        *(BASE_ADDRESS, CONTACT, DOCUMENT_HASH, AGENT_ID),
    )
}


def expectation(problem: Mapping[str, Any]) -> str | None:
    """For an error of pydantic that a text does not have its shape: what is expected; None for any other error."""
    if problem["type"] != "string_pattern_mismatch":
        return None
    expected = EXPECTED.get(str(problem.get("ctx", {}).get("pattern")))
    return None if expected is None else f"must be {expected}"
