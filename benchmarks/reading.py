"""How much of a folder of documents survives reading, and what a page costs.

    python -m benchmarks.real_files FOLDER
    python -m benchmarks.reading FOLDER [QUESTIONS.json …] [--pages 400] [--save NOW.json] [--against BEFORE.json]

*Gold pages* are the HTML pages whose markup, stripped of its tags, holds a fact that a question file asks for (`facts`
of the brief questions, patterns in `answer` of the short ones). Printed: the share of those facts that the canonical
text still holds, the share of lines that occur on more than a fifth of all pages (navigation that was taken for
content), and the processor time of a document by its suffix, in this process and in child processes.

By suffix, too: *kept*, the share of the words of the simplest extraction that are read; *false*, the share of the
words read that it does not have; *order*, the share of the runs of five words read that it has, too. A PDF is compared
with two readings: of `pdftotext` (Debian's `poppler-utils`), which the product does not use and which orders lines by
its own layout, and of `pdfium` in the order in which the page is drawn. Words are those that both read, false are
those that neither does, and in order are runs that one of them has, perhaps without the lines at the edges of pages.
A mail is compared with its body by the standard library, and with all its parts.
Both readers reverse or divide words of many Arabic documents, so with `--look` a third one looks at pictures of their
pages (`tesseract`, with Debian's `tesseract-ocr-ara` and `-fas`): *seen* is the share of its words that are read.
Hyphens, forms of letters, marks of direction, of raised and of lowered letters are no difference, nor are, in other
formats, the numbers of headings and lists that a program counts. `--save` writes the figures of each file, `--against`
compares them with those of another version, for the suffixes of the folder: run this file with the other version's
interpreter and `PYTHONPATH`.
"""

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any
from zipfile import ZipFile

import pypdfium2
from lxml import etree
from rich.console import Console
from rich.table import Table

from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.documents import extract
from providers.reading.reader import extract_in_child

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
ARABIC_MARKS = re.compile("[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
SAME_LETTERS = str.maketrans("يىكةأإآٱئؤ", "ییکهاااایو")
MOSTLY = 0.3
"""Share of the letters of a document from which it is of writing from right to left."""
LOOKED_AT = 5  # pages of a document
WORD = re.compile(r"[^\W_]+")
HYPHEN = re.compile("(?<=\\w)[-\u2010\u00ad\ufffe\x02]\\s*(?=\\w)")
UNSEEN = re.compile("[\\^_\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
PARTS = {
    ".docx": re.compile(r"word/(document|header\d*|footer\d*|diagrams/data\d*)\.xml"),
    ".pptx": re.compile(r"ppt/(slides/slide\d+|notesSlides/notesSlide\d+|diagrams/data\d+)\.xml"),
    ".odt": re.compile(r"(content|styles)\.xml"),
    ".epub": re.compile(r".*\.x?html"),
}
SHARED, SHEET = "xl/sharedStrings.xml", re.compile(r"xl/worksheets/sheet\d+\.xml")
NAMED = "local-name()='"
ENDS = " or ".join(f"{NAMED}{name}'" for name in "p h tab br cr li td th div line-break s ptab".split())
TEXTS = {
    **dict.fromkeys((".docx", ".pptx"), f"//*[{NAMED}t' and not(ancestor::*[{NAMED}Fallback'])]/text()"),
    ".odt": f"//*[{NAMED}p' or {NAMED}h']//text()",
    ".epub": f"//*[{NAMED}body']//text()",
}
"""Where the words of a part are; elements of `ENDS` end the word before them."""
MARK = re.compile(r" *(?:#{1,6} )?((?:\(?(?:[0-9]{1,3}|[A-Za-z]{1,4})[.)])*(?:[0-9]{1,3}|[A-Za-z]{1,4})?[.)]?) ")
"""What may be the number of a heading or an item."""
LENIENT = etree.XMLParser(recover=True)
EVERYWHERE = 0.2
"""Share of the pages from which a line is no content."""
MIN_WORDS = 15  # of a document that is compared
ALLOWED = 0.01
"""Loss of a share by which a file's reading may differ from that of the version before."""


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


def stripped(raw: bytes, encoding: str | None = None, between: str = "") -> str:
    """A page without its tags."""
    root = etree.fromstring(raw, etree.HTMLParser(remove_comments=True, encoding=encoding))
    if root is None:
        return ""
    etree.strip_elements(root, "script", "style", "head", with_tail=False)
    return plain(between.join(root.itertext()))


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


def simplest(path: Path) -> tuple[str, str]:
    """The plain text of a document without any thought of its structure, by two readers; empty for other formats."""
    raw = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix == ".pdf":
        return by_pdfium(raw), by_poppler(path)
    text = ""
    if suffix in PARTS:
        with ZipFile(BytesIO(raw)) as archive:
            names = sorted(filter(PARTS[suffix].fullmatch, archive.namelist()), key=as_shown)
            parts = [archive.read(name) for name in names]
        roots = (etree.fromstring(part, LENIENT) for part in parts)
        found = (root.xpath(f"{TEXTS[suffix]} | //*[{ENDS}]") for root in roots)
        text = " ".join("".join(each if isinstance(each, str) else " " for each in pieces) for pieces in found)
    elif suffix == ".xlsx":
        text = by_cells(raw)
    elif suffix == ".ipynb":
        notebook = json.loads(raw)
        cells = [cell for sheet in (notebook, *notebook.get("worksheets", ())) for cell in sheet.get("cells", ())]
        text = "\n".join(
            piece if isinstance(piece, str) else "".join(piece) for cell in cells for piece in texts_of_cell(cell)
        )
    elif suffix == ".eml":
        message = message_from_bytes(raw, policy=policy.default)
        return "\n".join(texts_of_mail(message, all_parts=False)), "\n".join(texts_of_mail(message, all_parts=True))
    elif suffix in {".html", ".htm"}:
        text = stripped(raw)
    elif suffix in {".txt", ".md", ".csv"}:
        text = raw.decode("utf-8", "replace")
    return text, text


def as_shown(name: str) -> int:
    """The place of a part: page headers before the text, page footers after it."""
    return ("footer" in name) - ("header" in name)


def by_cells(raw: bytes) -> str:
    """The texts of a workbook, without numbers: a cell shows them in its own form, not as they are saved."""
    with ZipFile(BytesIO(raw)) as archive:
        names = archive.namelist()
        shared = etree.fromstring(archive.read(SHARED)).findall("{*}si") if SHARED in names else []
        sheets = [etree.fromstring(archive.read(name)) for name in names if SHEET.fullmatch(name)]
        book = etree.fromstring(archive.read("xl/workbook.xml"))
    texts = ["".join(each.itertext("{*}t")) for each in shared]
    values = [sheet.get("name") for sheet in book.iter("{*}sheet")]
    for cell in (cell for sheet in sheets for cell in sheet.iter("{*}c")):
        value, kind = cell.findtext("{*}v") or "", cell.get("t")
        values.append(texts[int(value)] if kind == "s" else value if kind else "".join(cell.itertext("{*}t")))
    return " ".join(word for value in values for word in words_of(value) if not word.isdecimal())


def texts_of_cell(cell: dict[str, Any]) -> Iterator[str | list[str]]:
    """The source of a cell of a notebook, and what its code has printed."""
    yield cell.get("source") or cell.get("input") or ""
    for output in cell.get("outputs") or ():
        yield output.get("text") or (output.get("data") or {}).get("text/plain") or ""
        yield [output.get("ename") or "", " ", output.get("evalue") or ""]


def texts_of_mail(message: EmailMessage, *, all_parts: bool) -> Iterator[str]:
    """The headers of a mail and its body by the standard library, or all its parts, and the mails inside."""
    yield from headers_of(message, as_written=all_parts)
    body = message.get_body(("html", "plain"))
    inner = list(message.iter_attachments()) if message.is_multipart() and not all_parts else []
    for part in message.walk() if all_parts else filter(None, (body, *inner)):
        kind = part.get_content_type()
        if kind == "message/rfc822" and not all_parts:
            yield from (text for each in part.iter_parts() for text in texts_of_mail(each, all_parts=False))
        elif kind == "message/rfc822":
            yield from (text for each in part.iter_parts() for text in headers_of(each, as_written=True))
        elif kind in {"text/plain", "text/html"} and not (part.is_attachment() or part.is_multipart()):
            try:
                text = part.get_content()
            except LookupError:  # a character set that nobody knows
                text = part.get_payload(decode=True).decode("cp1252", "replace")
            is_page = kind == "text/html" and text.strip()
            yield stripped(text.encode("utf-8", "replace"), "utf-8", " ") if is_page else text


def headers_of(message: EmailMessage, *, as_written: bool) -> Iterator[str]:
    """The headers that mail programs show as they were typed, or in the order in which programs show them.

    The library has dates and addresses in a form of its own.
    """
    written = {name.title(): str(value) for name, value in reversed(list(message.raw_items()))}
    shown = [name for name in ("Subject", "From", "To", "Cc", "Date") if name in written]
    for name in [name for name in reversed(written) if name in shown] if as_written else shown:
        try:
            yield f"{name}: {make_header(decode_header(written[name]))}"
        except (LookupError, UnicodeError):
            yield f"{name}: {written[name]}"


def by_pdfium(raw: bytes) -> str:
    """The text of a PDF in the order in which it is drawn."""
    try:
        with closing(pypdfium2.PdfDocument(raw)) as document:
            return "\f".join(page.get_textpage().get_text_range() for page in document)
    except pypdfium2.PdfiumError:
        return ""


def by_poppler(path: Path) -> str:
    """The text of a PDF by a reader of which the product knows nothing."""
    return subprocess.run(["pdftotext", "-q", path, "-"], capture_output=True, check=False).stdout.decode()


def words_of(text: str) -> list[str]:
    """The words of a text in one form, joined at hyphens and without marks of direction."""
    return WORD.findall(HYPHEN.sub("", unicodedata.normalize("NFKC", UNSEEN.sub("", text))))


def without_counted(text: str, either: Counter[str]) -> str:
    """The text without the numbers of headings and items that a program counts: they are in no part of the file."""
    extra = Counter(words_of(text)) - either
    lines = []
    for line in text.split("\n"):
        mark = MARK.match(line)
        numbers = Counter(words_of(mark[1])) if mark else Counter()
        is_counted = numbers.total() > 0 and numbers <= extra
        extra -= numbers if is_counted else Counter()
        lines.append(line[mark.end() :] if mark and is_counted else line)
    return "\n".join(lines)


def runs_of(words: list[str]) -> set[tuple[str, ...]]:
    """The runs of five words of a text."""
    return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}


def across_pages(text: str) -> Iterator[str]:
    """The text, and what it is without the first line of each page, without the last one, and without both."""
    yield text
    pages = [[line for line in page.splitlines() if line.strip()] for page in text.split("\f")]
    for start, end in ((1, None), (None, -1), (1, -1)) if len(pages) > 1 else ():
        yield "\n".join(line for lines in pages for line in lines[start:end])


def seen_on(path: Path) -> list[str]:
    """The words of writing from right to left that an eye sees on some pages; none of a PDF with few of them."""
    texts = []
    with closing(pypdfium2.PdfDocument(path)) as document, tempfile.TemporaryDirectory() as folder:
        letters = Counter(
            bool(RIGHT_TO_LEFT.match(each))
            for page in document
            for each in page.get_textpage().get_text_range()
            if each.isalpha()
        )
        if letters[True] < letters.total() * MOSTLY:
            return []
        for number in range(0, len(document), max(1, len(document) // LOOKED_AT)):
            picture = Path(folder) / "page.png"
            document[number].render(scale=3).to_pil().convert("L").save(picture)
            command = ["tesseract", picture, "-", "-l", "fas+ara+eng"]
            texts.append(subprocess.run(command, capture_output=True, check=True).stdout.decode())
    return [word for text in texts for word in plain_arabic(text) if RIGHT_TO_LEFT.match(word)]


def plain_arabic(text: str) -> list[str]:
    """The words of a text without marks, and with letters in the form that Arabic and Persian share."""
    return words_of(ARABIC_MARKS.sub("", unicodedata.normalize("NFKC", text)).translate(SAME_LETTERS))


@dataclass
class Figures:
    """What was measured of one file."""

    pages: int
    seconds: float
    words: int
    kept: float
    false: float
    order: float
    seen: float | None = None


def figures_of(path: Path, text: str, seconds: float, *, is_looked_at: bool = False) -> Figures | None:
    """The figures of a file; nothing of one that has no text, or no second reader."""
    texts = simplest(path)
    first, second = map(words_of, texts)
    if min(len(first), len(second)) < MIN_WORDS:
        return None
    drawn, shown = Counter(first), Counter(second)
    both, either = drawn & shown, drawn | shown
    ours = words_of(text if path.suffix.lower() == ".pdf" else without_counted(text, either))
    if path.suffix.lower() == ".xlsx":
        ours = [word for word in ours if not word.isdecimal()]
    read = Counter(ours)
    runs = runs_of(ours)
    seen = Counter(seen_on(path) if is_looked_at and path.suffix.lower() == ".pdf" else ())
    known = set[tuple[str, ...]]().union(*(runs_of(words_of(each)) for one in texts for each in across_pages(one)))
    return Figures(
        pages_of(path),
        seconds,
        len(ours),
        (read & both).total() / max(1, both.total()),
        (read - either).total() / max(1, len(ours)),
        len(runs & known) / len(runs) if runs else 0.0,
        (seen & Counter(plain_arabic(text))).total() / seen.total() if seen else None,
    )


def pages_of(path: Path) -> int:
    """The number of pages of a PDF; other documents count as one."""
    if path.suffix.lower() != ".pdf":
        return 1
    with closing(pypdfium2.PdfDocument(path)) as document:
        return len(document)


def by_suffix(measured: dict[str, Figures]) -> dict[str, list[str]]:
    """A row of means for each suffix; the time is that of a page."""
    groups: defaultdict[str, list[Figures]] = defaultdict(list)
    for name, figures in measured.items():
        groups[Path(name).suffix.lower()].append(figures)
    return {
        suffix: [
            str(len(group)),
            *(f"{mean(getattr(each, name) for each in group):.1%}" for name in ("kept", "false", "order")),
            f"{1e3 * sum(each.seconds for each in group) / sum(each.pages for each in group):.1f}",
        ]
        for suffix, group in sorted(groups.items())
    }


def worse(before: dict[str, Figures], now: dict[str, Figures]) -> list[tuple[float, str, Figures, Figures]]:
    """The files of which a share is worse by more than `ALLOWED`, the worst first."""
    found = []
    suffixes = {Path(name).suffix for name in now}
    for name, then in before.items():
        if Path(name).suffix not in suffixes:
            continue
        new = now.get(name) or Figures(then.pages, 0.0, 0, 0.0, 0.0, 0.0)
        loss = max(then.kept - new.kept, new.false - then.false, then.order - new.order)
        if then.seen is not None and new.seen is not None:
            loss = then.seen - new.seen
        if loss > ALLOWED:
            found.append((loss, name, then, new))
    return sorted(found, key=lambda each: -each[0])


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
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--look", action="store_true")
    options = parser.parse_args()
    sys.setrecursionlimit(10_000)  # as in child processes
    paths = sorted(path for path in options.folder.rglob("*") if path.is_file() and path.stat().st_size)
    random.Random(7).shuffle(paths)
    readings = {path: read(path) for path in paths[: options.pages]}
    texts = {path: text for path, (text, _) in readings.items()}
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for path, (text, spent) in readings.items():
        if text:
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
    measured = {
        str(path.relative_to(options.folder)): figures
        for path, (text, spent) in readings.items()
        if text and (figures := figures_of(path, text, spent, is_looked_at=options.look)) is not None
    }
    before = {}
    if options.against:
        before = {name: Figures(**figures) for name, figures in json.loads(options.against.read_text()).items()}
    shares = Table("suffix", "documents", "kept", "false", "order", "ms a page")
    was, rows = by_suffix({name: each for name, each in before.items() if name in measured}), by_suffix(measured)
    for suffix, row in rows.items():
        pairs_of = zip(was.get(suffix, row), row, strict=True)
        shares.add_row(suffix, *(f"{old} → {new}" if before and at else new for at, (old, new) in enumerate(pairs_of)))
    out.print(shares)
    for loss, name, then, new in worse(before, measured):
        changes = (
            f"{each} {getattr(then, each):.3f} → {getattr(new, each):.3f}" for each in ("kept", "false", "order")
        )
        out.print(f"worse by {loss:.1%}: {name} ({new.words} words), {', '.join(changes)}", soft_wrap=True)
    if options.save:
        options.save.write_text(json.dumps({name: asdict(each) for name, each in measured.items()}, indent=1))
    pages = [path for path in texts if ".htm" in path.suffix][:400]
    wall = asyncio.run(in_children(pages, options.children)) if pages else 0.0
    out.print(f"{1e3 * wall:.1f} ms of wall a page in {options.children} children")


if __name__ == "__main__":
    main()
