"""How much of a folder of documents survives reading, and what a page costs.

    python -m benchmarks.reading FOLDER [QUESTIONS.json …] [--pages 400]

*Gold pages* are the HTML pages whose markup, stripped of its tags, holds a fact that a question file asks for (`facts`
of the brief questions, patterns in `answer` of the short ones). Printed: the share of those facts that the canonical
text still holds, the share of lines that occur on more than a fifth of all pages (navigation that was taken for
content), and the processor time of a document by its suffix, in this process and in child processes.
"""

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from lxml import etree
from rich.console import Console
from rich.table import Table

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.documents import extract
from providers.reading.reader import extract_in_child

EVERYWHERE = 0.2
"""Share of the pages from which a line is no content."""


def facts_of(files: list[Path]) -> list[re.Pattern[str]]:
    """Every fact of the question files, as a pattern."""
    found = []
    for file in files:
        content = json.loads(file.read_text())
        for question in content["questions"] if isinstance(content, dict) else content:
            literal = ("|".join(map(re.escape, fact.split("|"))) for fact in question.get("facts", ()))
            found += [re.compile(fact, re.IGNORECASE) for fact in (*literal, *question.get("answer", ()))]
    return found


def plain(text: str) -> str:
    """One line without signs of code and escapes."""
    return " ".join(re.sub(r"[`\\]", "", text).split())


def stripped(raw: bytes) -> str:
    """A page without its tags."""
    root = etree.fromstring(raw, etree.HTMLParser(remove_comments=True))
    etree.strip_elements(root, "script", "style", "head", with_tail=False)
    return plain("".join(root.itertext()))


def read(path: Path) -> tuple[str, float]:
    """The canonical text, empty if there is none, and processor seconds."""
    raw, begun = path.read_bytes(), time.process_time()
    try:
        text = extract(raw, path.name).text
    except SourceUnreadable:
        text = ""
    return text, time.process_time() - begun


def gold(texts: dict[Path, str], facts: list[re.Pattern[str]]) -> Iterator[tuple[Path, bool]]:
    """Each fact of each gold page, and whether the text holds it."""
    for path, text in texts.items():
        if ".htm" in path.suffix:
            before, after = stripped(path.read_bytes()), plain(text)
            yield from ((path, fact.search(after) is not None) for fact in facts if fact.search(before))


def repeated_share(texts: list[str]) -> float:
    """Share of all lines that occur on many pages."""
    counts = Counter(line for text in texts for line in {line for line in text.split("\n") if line})
    common = {line for line, count in counts.items() if count > EVERYWHERE * len(texts)}
    lines = [line for text in texts for line in text.split("\n") if line]
    return sum(line in common for line in lines) / max(1, len(lines))


async def in_children(paths: list[Path], children: int) -> float:
    """Wall seconds of a page in child processes."""
    async with SubprocessPool(children) as pool:
        documents = [(path.read_bytes(), path.name) for path in paths]
        await asyncio.gather(*(extract_in_child(pool, "extract", *each) for each in documents[: 5 * children]))
        begun = time.perf_counter()
        await asyncio.gather(*(extract_in_child(pool, "extract", *each) for each in documents), return_exceptions=True)
        return (time.perf_counter() - begun) / len(documents)


def main() -> None:
    """Read the arguments and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path, nargs="*")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--children", type=int, default=2)
    options = parser.parse_args()
    paths = sorted(path for path in options.folder.rglob("*") if path.is_file() and path.stat().st_size)
    random.Random(7).shuffle(paths)
    texts: dict[Path, str] = {}
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for path in paths[: options.pages]:
        texts[path], spent = read(path)
        if texts[path]:
            seconds[path.suffix].append(spent)
    out = Console()
    pairs = list(gold(texts, facts_of(options.questions)))
    out.print(f"{len({path for path, _ in pairs})} gold pages: {sum(kept for _, kept in pairs)} of {len(pairs)} facts")
    out.print(f"{repeated_share(list(texts.values())):.1%} of the lines are on every fifth page")
    table = Table("suffix", "documents", "ms mean", "median", "95 %", "at most")
    for suffix, times in seconds.items():
        ms = [1e3 * each for each in sorted(times)]
        p95 = quantiles(ms, n=20)[-1] if len(ms) > 1 else ms[0]
        table.add_row(suffix, str(len(ms)), *(f"{x:.1f}" for x in (sum(ms) / len(ms), median(ms), p95, ms[-1])))
    out.print(table)
    pages = [path for path in texts if ".htm" in path.suffix][:400]
    wall = asyncio.run(in_children(pages, options.children)) if pages else 0.0
    out.print(f"{1e3 * wall:.1f} ms of wall a page in {options.children} children")


if __name__ == "__main__":
    main()
