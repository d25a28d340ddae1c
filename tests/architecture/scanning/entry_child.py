"""Measures entry points named on the standard input; run as a child, which the kernel ends if one does not end."""

import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tests.architecture.scanning.entry_points import ENTRY_POINTS, REFUSALS, SLOW, pumps
from tests.architecture.scanning.judge import growth, limit_this_process


def main() -> None:
    """Say each entry point and pump before it is tried, and what was found behind it."""
    warnings.simplefilter("ignore")
    for subject in map(json.loads, sys.stdin):
        run = _unrefused(ENTRY_POINTS[subject["name"]])
        run("warm ")
        share = SLOW.get(subject["name"], 1)
        for pump in pumps(subject["name"]):
            said = {"number": subject["number"], "pump": pump}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
            limit_this_process(float(sys.argv[1]))
            found = growth(run, lambda size, pump=pump, share=share: pump.text(size // share))
            if found:
                sys.stdout.write(json.dumps({**said, "found": found}) + "\n")
                break


def _unrefused(entry_point: Callable[[str], object]) -> Callable[[str], Any]:
    def run(text: str) -> None:
        try:
            entry_point(text)
        except REFUSALS:
            return

    return run


if __name__ == "__main__":
    main()
