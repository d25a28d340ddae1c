"""Time and memory for reading the documents of a folder: processor time of each format, and what a child grows by.

Each format is read in a child process of its own, as the index does; nothing is written anywhere.
"""

import argparse
import multiprocessing
import resource
import time
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from providers.errors import SourceUnreadable
from providers.reading.documents import extract


def measure(paths: list[Path], answers: "multiprocessing.Queue[tuple[list[float], int, int, int]]") -> None:
    """Read some documents; seconds of the processor for each, characters, refusals, and memory in MB."""
    seconds, characters, refused = [], 0, 0
    for path in [paths[0], *paths]:  # the first one loads the reader
        raw, begun = path.read_bytes(), time.process_time()
        try:
            characters += len(extract(raw, path.name).text)
        except SourceUnreadable:
            refused += 1
        seconds.append(time.process_time() - begun)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    answers.put((seconds[1:], characters, refused, memory))


def main() -> None:
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    by_format: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(arguments.folder.rglob("*")):
        if path.is_file() and path.stat().st_size:
            by_format[path.suffix.lower()].append(path)
    table = Table("format", "documents", "kB each", "refused", "ms each", "ms at most", "MB of the child")
    context = multiprocessing.get_context("spawn")
    for suffix, paths in by_format.items():
        answers: multiprocessing.Queue[tuple[list[float], int, int, int]] = context.Queue()
        child = context.Process(target=measure, args=(paths, answers))
        child.start()
        seconds, _, refused, memory = answers.get()
        child.join()
        size = sum(path.stat().st_size for path in paths) / len(paths) / 1_000
        mean, most = sum(seconds) / len(seconds) * 1e3, max(seconds) * 1e3
        table.add_row(suffix, str(len(paths)), f"{size:.0f}", str(refused), f"{mean:.1f}", f"{most:.1f}", str(memory))
    Console().print(table)


if __name__ == "__main__":
    main()
