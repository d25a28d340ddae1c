"""What the structure of a page tells about whether it shows its content: facts, not judgements."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Final, Literal
from urllib.parse import urlsplit

from contracts.vocabulary import PageAccess
from providers.reading.canonical_text import BlockKind, Extraction
from providers.reading.cleaning import one_line
from providers.reading.html.rules import Element, beginning_of, is_dropped, names_of

LOOKED_AT: Final = 6_000
"""Characters of prose above which nothing is looked for: such a page shows its content."""
POINTERS: Final = 0.5
"""Link share from which a block points elsewhere rather than says something."""
MOST_ELEMENTS: Final = 20_000
MOST_LABELS: Final = 3_000
MOST_FIELDS: Final = 20
UNFILLED: Final = 100
"""Characters: less in what an application fills is a sign that it has not run."""


@cache
def phrases(part: Literal["said", "weak", "stops", "called", "marks"]) -> dict[PageAccess, tuple[str, ...]]:
    """What pages say when they hold their content back, in all languages; `access_phrases.toml` explains its parts."""
    data = tomllib.loads(files(__package__ or "").joinpath("access_phrases.toml").read_text("utf-8"))
    return {
        PageAccess(access): tuple(chain.from_iterable(words.values()) if isinstance(words, dict) else words)
        for access, words in data[part].items()
    }


@dataclass(frozen=True)
class PageSignals:
    """Facts about a page; the fields after `free` are only looked for where there is little prose."""

    prose: int
    """Characters of the blocks that are neither headings nor mostly links."""
    free: bool | None = None
    marks: frozenset[PageAccess] = frozenset()
    """What the names of its elements and scripts hint at."""
    password: bool = False
    """Whether a password is asked for in what is no navigation."""
    scripts: int = 0
    labels: str = ""
    """Words of forms, buttons and dialogs, which are no part of the text."""
    noscript: str = ""
    consent_host: bool = False


def prose_of(found: Extraction) -> int:
    """Characters that say something by themselves."""
    return sum(
        block.end - block.start
        for block in found.blocks
        if block.kind is not BlockKind.HEADING and block.link_share < POINTERS
    )


def signals_of(root: Element, found: Extraction, free: bool | None, url: str) -> PageSignals:
    """Gather the facts of one page."""
    prose = prose_of(found)
    if prose > LOOKED_AT:
        return PageSignals(prose, free)
    fields = [field for field in root.iter("input") if (field.get("type") or "").lower() == "password"]
    scripts = list(root.iter("script"))
    host = (urlsplit(url).hostname or "").lower()
    return PageSignals(
        prose,
        free,
        marks=_marks(root, scripts),
        password=any(map(_is_shown, fields[:MOST_FIELDS])),
        scripts=len(scripts),
        labels=_words(root, "button", "label", "dialog", "legend"),
        noscript=_words(root, "noscript"),
        consent_host=host.startswith(("consent.", "guce.", "cmp.", "cookies.")),
    )


def _marks(root: Element, scripts: list[Element]) -> frozenset[PageAccess]:
    names = []
    for number, element in enumerate(root.iter("div", "section", "aside", "form", "iframe", "body", "p")):
        if number > MOST_ELEMENTS:
            break
        names.append(names_of(element).lower())
    sources = [(script.get("src") or script.get("id") or "").lower() for script in scripts]
    everything = "\n".join([*names, *sources])
    found: set[PageAccess] = {
        access
        for access, hints in phrases("marks").items()
        if access is not PageAccess.SCRIPT_REQUIRED and any(hint in everything for hint in hints)
    }
    if any(_is_unfilled(element) for element in root.iter("div", "app-root")):
        found.add(PageAccess.SCRIPT_REQUIRED)
    return frozenset(found)


def _is_unfilled(element: Element) -> bool:
    """Whether an element waits for an application to fill it."""
    name = element.get("id") or (element.tag if element.tag == "app-root" else "")
    if name not in phrases("marks")[PageAccess.SCRIPT_REQUIRED]:
        return False
    words = beginning_of(element, LOOKED_AT)
    return words is not None and len(words.strip()) < UNFILLED


def _is_shown(field: Element) -> bool:
    return not any(
        isinstance(outer.tag, str) and outer.tag != "dialog" and is_dropped(outer, outer.tag)
        for outer in field.iterancestors()
    )


def _words(root: Element, *tags: str) -> str:
    """The words of all elements of a kind, up to a limit."""
    parts: list[str] = []
    size = 0
    for element in root.iter(*tags):
        words = beginning_of(element, LOOKED_AT) or ""
        parts.append(words)
        size += len(words) + 1
        if size > MOST_LABELS:
            break
    return one_line(" ".join(parts))[:MOST_LABELS]
