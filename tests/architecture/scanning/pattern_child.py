"""Measures patterns from the standard input; run as a child, which the kernel ends if a pattern does not end."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from tests.architecture.scanning.judge import excess, growth, limit_this_process
from tests.architecture.scanning.pumps import pumps_of


def main() -> None:
    """Say each pattern and pump before it is tried, and what was found behind it."""
    for subject in map(json.loads, sys.stdin):
        for scan in subject["scans"]:
            _measure(subject, scan)


def _measure(subject: dict[str, Any], scan: str) -> None:
    text, of_bytes, flags = subject["pattern"], subject["bytes"], subject["flags"]
    compiled: re.Pattern[Any] = re.compile(text.encode("latin-1") if of_bytes else text, flags)
    run = _scanner(compiled, scan)
    for pump in pumps_of(compiled.pattern, compiled.flags):
        _say({"number": subject["number"], "scan": scan, "pump": pump})
        limit_this_process(float(sys.argv[1]))
        text_of = (lambda size, pump=pump: pump.text(size).encode("latin-1")) if of_bytes else pump.text
        most = subject.get("most")
        found = growth(run, text_of) if most is None else excess(run, text_of(most))
        if found:
            _say({"number": subject["number"], "scan": scan, "pump": pump, "found": found})
            return


def _scanner(compiled: re.Pattern[Any], scan: str) -> Callable[[Any], object]:
    if scan == "finditer":
        return lambda text: compiled.sub(_same, text)
    scanner: Callable[[Any], object] = getattr(compiled, scan)
    return scanner


def _same(match: re.Match[Any]) -> Any:
    return match[0]


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
