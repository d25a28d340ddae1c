"""Runs measurements in children that may be ended, and goes on behind whatever ended one."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.architecture.repository import ROOT

LIMIT = 2.0
"""Seconds of the processor for one pump; a linear pattern needs milliseconds."""


@dataclass(frozen=True)
class Finding:
    """A subject that is slow, and the text that shows it."""

    number: int
    said: dict[str, Any]

    def __str__(self) -> str:
        opening, part, end = self.said["pump"]
        text = f"{opening!r} + {part!r} * n + {end!r}"
        if "found" not in self.said:
            return f"did not end: {text}"
        short, long = (f"{seconds * 1000:.0f} ms" for seconds in self.said["found"])
        return f"from {short} to {long}: {text}"


def collected() -> dict[str, Any]:
    """Every pattern of the product."""
    found: dict[str, Any] = json.loads(_child("collection").stdout)
    return found


def measured(child: str, subjects: Iterable[dict[str, Any]], limit: float = LIMIT) -> Iterator[Finding]:
    """The slow ones among the subjects. `child` is the module that measures them."""
    left = [{**subject, "number": number} for number, subject in enumerate(subjects)]
    while left:
        ran = _child(child, str(limit), given="\n".join(map(json.dumps, left)), check=False)
        said = [json.loads(line) for line in ran.stdout.splitlines() if line.endswith("}")]
        yield from (Finding(line["number"], line) for line in said if "found" in line)
        if ran.returncode == 0:
            return
        if ran.returncode > 0 or not said:
            raise AssertionError(ran.stderr)
        yield Finding(said[-1]["number"], said[-1])
        left = [subject for subject in left if subject["number"] > said[-1]["number"]]


def _child(module: str, *arguments: str, given: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"tests.architecture.scanning.{module}", *arguments]
    ran = subprocess.run(command, cwd=ROOT, input=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 or not check, ran.stderr
    return ran
