"""How much of a folder of documents survives reading, and what a page costs.

    python -m benchmarks.reading FOLDER [QUESTIONS.json …] [--pages 400]

*Gold pages* are the HTML pages whose markup, stripped of its tags, holds a fact that a question file asks for (`facts`
of the brief questions, patterns in `answer` of the short ones). Printed: the share of those facts that the canonical
text still holds, the share of lines that occur on more than a fifth of all pages (navigation that was taken for
content), and the processor time of a document by its suffix, in this process and in child processes; and by suffix, the
share of the words of the simplest extraction that are read (*kept*), of the words read that it does not have (*false*),
and of the runs of five words that it has, too (*order*).
"""

import argparse
import asyncio
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from statistics import median, quantiles
from zipfile import ZipFile

import pypdfium2
from lxml import etree
from rich.console import Console
from rich.table import Table

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.documents import extract
from providers.reading.reader import extract_in_child

WORD = re.compile(r"[^\W_]+")
TEXT_PARTS = re.compile(r"word/document\.xml|ppt/slides/slide\d+\.xml|content\.xml")
BREAK = re.compile(rb"</(?:w:p|a:p|text:p|text:h)>|<(?:w:tab|w:br|text:tab|text:s)\b")
EVERYWHERE = 0.2
"""Share of the pages from which a line is no content."""
MIN_CHARACTERS = 100  # of a document that is compared


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


def simplest(path: Path) -> str:
    """The plain text of a document without any thought of its structure; empty for formats that have none."""
    raw = path.read_bytes()
    match path.suffix.lower():
        case ".pdf":
            try:
                with closing(pypdfium2.PdfDocument(raw)) as document:
                    text = "\n".join(page.get_textpage().get_text_range() for page in document)
            except pypdfium2.PdfiumError:
                return ""
            return re.sub("[-\ufffe\u00ad]\r?\n", "", text)
        case ".docx" | ".pptx" | ".odt":
            with ZipFile(BytesIO(raw)) as archive:
                parts = [archive.read(name) for name in archive.namelist() if TEXT_PARTS.fullmatch(name)]
            spaced = (BREAK.sub(rb" \g<0>", part) for part in parts)
            return " ".join(
                "".join(etree.fromstring(part, etree.XMLParser(recover=True)).itertext()) for part in spaced
            )
        case ".html" | ".htm":
            return stripped(raw)
        case ".txt" | ".md":
            return raw.decode("utf-8", "replace")
    return ""


def shares(before: str, after: str) -> tuple[float, float, float]:
    """Shares of words kept, of false words, and of runs of five words in common."""
    first, second = (WORD.findall(text) for text in (before, after))
    ours, theirs = Counter(second), Counter(first)
    runs, known = ({tuple(words[at : at + 5]) for at in range(len(words) - 4)} for words in (second, first))
    return (
        (ours & theirs).total() / max(1, theirs.total()),
        (ours - theirs).total() / max(1, ours.total()),
        len(runs & known) / max(1, len(runs)),
    )


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
    measured: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for path, text in texts.items():
        if text and len(before := simplest(path)) >= MIN_CHARACTERS:
            measured[path.suffix].append(shares(before, text))
    by_suffix = Table("suffix", "documents", "kept", "false", "order")
    for suffix, figures in measured.items():
        by_suffix.add_row(
            suffix, str(len(figures)), *(f"{sum(each) / len(each):.1%}" for each in zip(*figures, strict=True))
        )
    out.print(by_suffix)
    pages = [path for path in texts if ".htm" in path.suffix][:400]
    wall = asyncio.run(in_children(pages, options.children)) if pages else 0.0
    out.print(f"{1e3 * wall:.1f} ms of wall a page in {options.children} children")


if __name__ == "__main__":
    main()
