"""What two runs over the same pages have in common: their reports without identifiers, times, ports and hashes."""

import re

MOMENT = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: UTC|\+00:00|Z)?)?"
VARIABLE = re.compile(
    rf"{MOMENT}|r-[0-9a-f]{{8}}|(?:src|ev|f|sq|gap)-[0-9a-f]{{10,32}}|\b[0-9a-f]{{8,64}}\b|(?<=:)\d{{4,5}}\b"
)
TOKENS = re.compile(r"[\d,]+ tokens")


def comparable(report: str) -> str:
    return VARIABLE.sub("…", report)


def without_tokens(report: str) -> str:
    """A report without its number of tokens, for runs that are not told the same."""
    return TOKENS.sub("… tokens", report)
