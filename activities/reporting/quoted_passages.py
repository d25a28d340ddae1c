"""Evidence with its words: cut out of the stored text and checked before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass

from contracts.addresses import digest
from contracts.evidence import Evidence, Source
from providers.errors import ContentCorrupt, ContentMissing

SELECTOR_CHARACTERS = 32
"""Length of prefix and suffix of a text quote selector (Web Annotation)."""
CONTEXT_CHARACTERS = 220
"""What a reader is shown of the text around a quote."""


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


def cut_passage(evidence: Evidence, text: str) -> QuotedPassage:
    """The passage in its stored text. Raises `ContentCorrupt` if the words are not those that were quoted."""
    quote = text[evidence.start : evidence.end]
    if len(quote) != evidence.end - evidence.start or digest(quote) != digest_form(evidence.quote_hash):
        raise ContentCorrupt(f"{evidence.id}: the stored text does not hold the quoted words at their place")
    return QuotedPassage(
        evidence=evidence,
        quote=quote,
        prefix=text[max(0, evidence.start - SELECTOR_CHARACTERS) : evidence.start],
        suffix=text[evidence.end : evidence.end + SELECTOR_CHARACTERS],
        before=_before(text, evidence.start),
        after=_after(text, evidence.end),
    )


def digest_form(value: str) -> str:
    """A SHA-256 with its scheme, as `contracts.addresses.digest` writes it."""
    return value if value.startswith("sha256:") else "sha256:" + value


def cut_passages(
    evidence: Mapping[str, Evidence], sources: Mapping[str, Source], texts: Mapping[str, str]
) -> dict[str, QuotedPassage]:
    """Every passage of a run by evidence id; `texts` are the stored texts by hash.

    Raises `ContentMissing` if a passage has no source or no stored text, `ContentCorrupt` if its words differ.
    """
    passages = {}
    for identity, item in evidence.items():
        source = sources.get(item.source_id)
        if source is None or source.text is None or source.text.hash not in texts:
            raise ContentMissing(f"{identity}: there is no stored text for its source")
        passages[identity] = cut_passage(item, texts[source.text.hash])
    return passages
