"""Evidence with its words: cut out of the stored text, checked, and shown to readers without Markdown's signs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contracts.addresses import digest
from contracts.evidence import Evidence, Source
from providers.errors import ContentCorrupt, ContentMissing

SELECTOR_CHARACTERS: Final = 32
"""Length of prefix and suffix of a text quote selector (Web Annotation)."""
CONTEXT_CHARACTERS: Final = 220
"""Of the text around a quote that a reader is shown."""
BORDERS: Final = "\ue104\ue105"
"""Stand for where a quote begins and ends while lines are looked at; foreign text has no such characters left."""
LAYOUT_LINE: Final = re.compile(rf"[|:\- {BORDERS}]*|[ {BORDERS}]*(?:```|~~~).*")
"""The rule below the header of a table, a fence."""
LEADING_SIGN: Final = re.compile(rf"^([ {BORDERS}]*)(#{{1,6}} |[-*+] |> )")


@dataclass(frozen=True)
class QuotedPassage:
    """A verbatim passage: `quote == text[start:end]` of the stored text of its source."""

    evidence: Evidence
    quote: str
    prefix: str
    suffix: str
    before: str
    """Text before the quote from the beginning of a word, for readers."""
    after: str

    def shown_parts(self) -> tuple[str, str, str]:
        """Return the text before, the quote and the text after, without the signs of headings, lists and tables."""
        opening, closing = BORDERS
        parts = [part.translate({ord(opening): None, ord(closing): None})
                 for part in (self.before, self.quote, self.after)]  # fmt: skip
        lines = f"{parts[0]}{opening}{parts[1]}{closing}{parts[2]}".split("\n")
        shown = "\n".join(text for line in lines if (text := _shown_line(line)) is not None)
        before, _, rest = shown.partition(opening)
        quote, _, after = rest.partition(closing)
        return before, quote, after


def _shown_line(line: str) -> str | None:
    """Return a line as it is shown; None for one that is nothing but layout. The borders of the quote stay."""
    bare = line.strip(f" {BORDERS}")
    if bare and LAYOUT_LINE.fullmatch(line):
        return "".join(sign for sign in line if sign in BORDERS) or None
    if bare.startswith("|"):
        shown = ""
        for cell in re.split(r"(?<!\\)\|", line):
            separator = " · " if cell.strip(f" {BORDERS}") and shown.strip(BORDERS) else ""
            shown += separator + cell.strip()
        line = shown
    line = LEADING_SIGN.sub(lambda found: found[1] + ("• " if found[2][0] in "-*+" else ""), line)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", line)


def cut_passages(
    evidence: Mapping[str, Evidence], sources: Mapping[str, Source], texts: Mapping[str, str]
) -> dict[str, QuotedPassage]:
    """Cut every passage of a run out of its text, by evidence id; `texts` are the stored texts by hash.

    Raises `ContentMissing` if a passage has no source or no stored text, `ContentCorrupt` if its words differ.
    """
    passages = {}
    for identity, item in evidence.items():
        source = sources.get(item.source_id)
        if source is None or source.text is None or source.text.hash not in texts:
            raise ContentMissing(f"{identity}: there is no stored text for its source")
        passages[identity] = _cut_passage(item, texts[source.text.hash])
    return passages


def _cut_passage(evidence: Evidence, text: str) -> QuotedPassage:
    start, end = evidence.start, evidence.end
    quote = text[start:end]
    if len(quote) != end - start or digest(quote) != with_scheme(evidence.quote_hash):
        raise ContentCorrupt(f"{evidence.id}: the stored text does not have the quoted words at their place")
    return QuotedPassage(
        evidence=evidence,
        quote=quote,
        prefix=text[max(0, start - SELECTOR_CHARACTERS) : start],
        suffix=text[end : end + SELECTOR_CHARACTERS],
        before=_before(text, start),
        after=_after(text, end),
    )


def with_scheme(value: str) -> str:
    """Return a SHA-256 with its scheme, as `contracts.addresses.digest` writes it."""
    return value if value.startswith("sha256:") else "sha256:" + value


def _before(text: str, start: int) -> str:
    piece = text[max(0, start - CONTEXT_CHARACTERS) : start]
    paragraph = piece.rfind("\n\n")
    if paragraph >= 0 and piece[paragraph:].strip():
        return piece[paragraph:].lstrip()
    cut = start > CONTEXT_CHARACTERS and " " in piece
    return "… " + piece.split(" ", 1)[1] if cut else piece


def _after(text: str, end: int) -> str:
    piece = text[end : end + CONTEXT_CHARACTERS]
    paragraph = piece.find("\n\n")
    if paragraph >= 0 and piece[:paragraph].strip():
        return piece[:paragraph].rstrip()
    cut = end + CONTEXT_CHARACTERS < len(text) and " " in piece
    return piece.rsplit(" ", 1)[0] + " …" if cut else piece
