"""One line of `doctor`: what was looked at, what was found, what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, what to do."""

    name: str
    grade: Grade
    found: str
    remedy: str = ""
