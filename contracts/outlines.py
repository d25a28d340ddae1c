"""Outlines: the report headings that a person approves before the research. Pure."""

import re
from collections.abc import Sequence
from html import unescape
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from contracts.lenient import UnfitAnswer, distinct, take_first
from contracts.texts import REPLACEMENT, shorten, visible

MAX_HEADINGS: Final = 20
"""The limit of a request's `output.sections`."""
HEADING_CHARACTERS: Final = 120
MARKUP: Final = str.maketrans(dict.fromkeys("\\`*<>[]"))
"""Characters that mark up code, emphasis, HTML, links and citations."""
ADDRESS: Final = re.compile(r"//|www\.|(?:https?|ftp|wss?|mailto|corpus):|[\w.+-]@\w", re.IGNORECASE)
"""Part of a word that is a URL, a corpus document or an email address."""
SOURCE_HEADING: Final = re.compile(
    r"(?:\d{1,9}[.)]?\s{0,9})?(?:list of )?(?:sources|references|bibliography|works cited|citations|further reading"
    r"|quellen|quellenverzeichnis|literatur|références|bibliographie|fuentes|referencias|fonti|bronnen)"
    r"(?: cited| used)?:?",
    re.IGNORECASE,
)
"""Heading of a list of sources, which every report gets at the end and no draft contains."""

STATE_HEADING: Final = re.compile(
    r"(?:identified )?(?:knowledge )?gaps(?: and (?:limitations|limits|open questions))?"
    r"|(?:limitations|limits)(?: and (?:gaps|open questions))?|open questions(?: for further research)?"
    r"|(?:erkannte )?(?:wissens)?lücken(?: und (?:grenzen|einschränkungen))?"
    r"|(?:grenzen|einschränkungen)(?: und lücken)?"
    r"|offene fragen(?: für weitere forschung)?"
    r"|lacunes(?: et limites)?|limites(?: et lacunes)?|questions ouvertes"
    r"|(?:lagunas|carencias|vacíos)(?: y (?:limitaciones|límites))?|limitaciones(?: y lagunas)?|preguntas abiertas"
    r"|lacune(?: e (?:limiti|limitazioni))?|limiti(?: e lacune)?|questioni aperte"
    r"|lacunas(?: e (?:limitações|limites))?|limitações(?: e lacunas)?|questões em aberto"
    r"|(?:hiaten|leemten)(?: en beperkingen)?|beperkingen(?: en hiaten)?|open vragen",
    re.IGNORECASE,
)
"""Heading of a section about the research itself: what it did not find, and how far it can be trusted."""


def clean_heading(text: str) -> str:
    """Return a text as a heading: one line of plain words, without markup or addresses, cut to `HEADING_CHARACTERS`."""
    line = visible(unescape(text[: 8 * HEADING_CHARACTERS])).replace(REPLACEMENT, " ").translate(MARKUP)
    words = [word.strip("_") for word in line.split() if not ADDRESS.search(word)]
    heading = shorten(" ".join(filter(None, words)).lstrip("#+=- "), HEADING_CHARACTERS)
    # The removed parts may have hidden more.
    if heading == text:
        return heading
    return clean_heading(heading)


def fit_outline(proposed: Sequence[str], notes: list[str]) -> list[str]:
    """Return a model's headings without markup, repetitions or lists of sources.

    Raises `UnfitAnswer` if none is left.
    """
    cleaned = [clean_heading(text) for text in proposed]
    headings = [text for text in distinct(cleaned, str) if not SOURCE_HEADING.fullmatch(text)]
    if not headings:
        raise UnfitAnswer("outline: at least one heading is needed")
    if len(headings) < len(proposed):
        notes.append("headings that were empty, repeated or lists of sources were dropped")
    if any(heading != " ".join(text.split()) for heading, text in zip(cleaned, proposed, strict=True)):
        notes.append("headings were shortened, or lost their markup")
    return take_first(headings, MAX_HEADINGS, notes, "headings")


def _check_heading(text: str) -> str:
    line = " ".join(text.split())
    if clean_heading(line) != line:
        raise ValueError("expected plain words, without Markdown, HTML and addresses")
    if not distinct([line], str):
        raise ValueError("there are no words in it")
    if SOURCE_HEADING.fullmatch(line):
        raise ValueError("every report has its list of sources at the end; leave this heading out")
    return line


def _check_distinct(headings: list[str]) -> list[str]:
    if len(distinct(headings, str)) < len(headings):
        raise ValueError("two headings are equal; leave one of them out")
    return headings


Heading = Annotated[str, Field(min_length=1, max_length=HEADING_CHARACTERS), AfterValidator(_check_heading)]
"""A heading written by a person."""
WrittenOutline = Annotated[list[Heading], Field(min_length=1, max_length=MAX_HEADINGS), AfterValidator(_check_distinct)]
"""An outline written by a person."""
