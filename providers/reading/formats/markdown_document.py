"""Markdown: rendered to HTML and read as such, so that tables, lists and raw HTML obey one set of rules."""

import dataclasses
import re
from functools import cache
from typing import Final

from markdown_it import MarkdownIt

from providers.reading.canonical_text import BlockKind, Extraction
from providers.reading.cleaning import clean, one_line
from providers.reading.html.page import extract_html
from providers.reading.page_dates import iso_date

FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.{0,8000}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
ENTRY: Final = re.compile(r"^(title|author|authors|date|lang|language)\s*+:\s*+(.+)$", re.MULTILINE | re.IGNORECASE)
DEFINITION: Final = re.compile(r" {0,3}:[ \t]{1,8}(?=\S)")
FENCE: Final = re.compile(r" {0,3}(`{3,}+|~{3,}+)")
NESTING_LIMIT: Final = 50


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True, "maxNesting": NESTING_LIMIT}).enable(["table", "strikethrough"])


def extract_markdown(text: str) -> Extraction:
    """The canonical text of a Markdown document. Raises `SourceUnreadable` as HTML does."""
    entries, body = front_matter(clean(text))
    page = extract_html(_renderer().render(_with_terms_apart(body)))
    first = next((block for block in page.blocks if block.kind is BlockKind.HEADING), None)
    heading = page.text[first.start : first.end] if first else ""
    author = entries.get("author") or entries.get("authors")
    return dataclasses.replace(
        page,
        title=entries.get("title") or heading,
        media_type="text/markdown",
        language=entries.get("lang") or entries.get("language"),
        authors=[name.strip(" '\"") for name in author.strip("[]").split(",")] if author else [],
        published_at=iso_date(entries.get("date", "")),
    )


def _with_terms_apart(text: str) -> str:
    """Definition lists (`term`, below it `: text`) with a paragraph for each: CommonMark knows none."""
    if "\n:" not in text:
        return text
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if not fence and lines and (found := DEFINITION.match(line)):
            lines += ["", line[found.end() :]] if lines[-1].strip() else [line[found.end() :]]
        else:
            lines.append(line)
    return "\n".join(lines)


def front_matter(text: str) -> tuple[dict[str, str], str]:
    """The plain entries of a YAML front matter, and the text below it."""
    found = FRONT_MATTER.match(text)
    if found is None:
        return {}, text
    entries = {key.lower(): one_line(value).strip("'\"") for key, value in ENTRY.findall(found.group(1))}
    return entries, text[found.end() :]
