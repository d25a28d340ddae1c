"""The report as one HTML file: every citation opens its passage, every sentence its check, and nothing is loaded."""

import base64
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from typing import Final

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from activities.reporting.inputs import JudgedClaim, ReportInputs
from activities.reporting.markdown import is_tight
from activities.reporting.method import pages_of, quality_words
from activities.reporting.passages import QuotedPassage
from activities.reporting.report_text import RenderedText
from activities.reporting.tree import Block, Blocks, CitationPlace, Inline, Sentence, clean_characters, sentences
from contracts.evidence import Source
from contracts.vocabulary import Outcome

LINK_REL: Final = "noopener noreferrer nofollow ugc"
STATEMENT_CHARACTERS: Final = 240
"""Of a statement above its check; the text has all of it."""
VERDICT_SIGNS: Final = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "?",
    "unverified": "–",
}
"""In the order in which readers are shown them."""


def compose_html(inputs: ReportInputs, report: RenderedText) -> str:
    """Render the page."""
    template, style, style_hash = _load_template()
    page = _Page(inputs, report)
    page_text: str = template.render(
        inputs=inputs, report=report, page=page, say=inputs.words, rel=LINK_REL, style=style, style_hash=style_hash,
        is_tight=is_tight,
    )  # fmt: skip
    return page_text + "\n"


@lru_cache(maxsize=1)
def _load_template() -> tuple[Template, Markup, str]:
    """Load the template, the style sheet, and the style's hash for the Content-Security-Policy."""
    folder = resources.files("activities.reporting")
    style = (folder / "report_style.css").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_finalize)
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    return template, Markup(style), base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()  # noqa: S704


def _finalize(value: object) -> object:
    """Clean the characters of every text that is printed; the template then escapes it."""
    return clean_characters(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@dataclass(frozen=True)
class _Check:
    """The check of a claim as the page shows it."""

    index: int
    verdict: str
    method: str
    reason: str
    words: str
    sign: str
    last: Sentence
    """The sentence that the sign of the verdict follows."""
    passage: str
    """The evidence id of the passage that shows the check; empty for a claim without a listed passage."""
    proofs: list[tuple[QuotedPassage, Source]]
    """Its further passages."""


class _Page:
    """Values of the template beside the inputs."""

    def __init__(self, inputs: ReportInputs, report: RenderedText) -> None:
        self._inputs = inputs
        self._report = report
        self.all_checks = [self._check(index, claim) for index, claim in enumerate(inputs.claims, start=1)]
        self.checks: defaultdict[Sentence, _Check | None] = defaultdict(lambda: None)
        self.by_passage: defaultdict[str, list[_Check]] = defaultdict(list)
        for check, claim in zip(self.all_checks, inputs.claims, strict=True):
            self.checks |= dict.fromkeys(claim.claim.sentences, check)
            self.by_passage[check.passage].append(check)
        self.places: defaultdict[str, list[str]] = defaultdict(list)
        self._anchors: dict[tuple[Sentence, int], str] = {}
        for sentence in sentences(report.body):
            for place, inline in enumerate(sentence.inlines):
                if isinstance(inline, CitationPlace):
                    anchor = f"cite-{len(self._anchors) + 1}"
                    self._anchors[sentence, place] = anchor
                    for key in inline.evidence_ids:
                        self.places[key].append(anchor)
        headings = [block for block in _headings(report.body) if block.level == 2]
        self.anchors = {block: f"section-{number}" for number, block in enumerate(headings, start=1)}

    def inlines(self, sentence: Sentence) -> list[tuple[Inline, str]]:
        """Return what a sentence is made of; each citation with its anchor."""
        return [(inline, self._anchors.get((sentence, place), "")) for place, inline in enumerate(sentence.inlines)]

    def _check(self, index: int, item: JudgedClaim) -> _Check:
        inputs, claim, judged = self._inputs, item.claim, item.judged
        listed = {passage.evidence.id for cited in inputs.cited for passage in cited.passages}
        first = next((key for key in claim.evidence_ids if key in listed), "")
        others = [inputs.passages[key] for key in claim.evidence_ids if key != first]
        cut = claim.words[:STATEMENT_CHARACTERS].rpartition(" ")[0] + " …"
        return _Check(
            index=index,
            verdict=judged.verdict.value,
            method=judged.method.value,
            reason=judged.reason,
            words=claim.words if len(claim.words) <= STATEMENT_CHARACTERS else cut,
            sign=VERDICT_SIGNS[judged.verdict],
            last=claim.sentences[-1],
            passage=first,
            proofs=[(passage, inputs.state.sources[passage.evidence.source_id]) for passage in others],
        )

    @cached_property
    def language(self) -> str:
        """The language of the report, as HTML names it."""
        language = self._inputs.resolved.language
        return language if re.fullmatch(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}", language) else "en"

    @cached_property
    def chrome(self) -> Markup:
        """The attribute for the language of our own words, where it is not the report's."""
        code = self._inputs.words.code
        return Markup("") if self.language.split("-")[0] == code else Markup(' lang="{}"').format(code)

    @cached_property
    def is_short(self) -> bool:
        """True if the run did not complete."""
        return self._inputs.ending.outcome is not Outcome.COMPLETED

    @cached_property
    def summary(self) -> list[str]:
        """Return the line below the title, without the date."""
        inputs, say, corpus = self._inputs, self._inputs.words, self._inputs.resolved.corpus
        cited = say("facts_cited", sources=say.count("source", len(inputs.cited)))
        passages = sum(len(item.passages) for item in inputs.cited)
        parts = [cited if inputs.cited else say("facts_nothing"), say.count("passage", passages) if passages else ""]
        if corpus:
            parts.append(say("facts_corpus", files=say.count("file", corpus.files), name=corpus.title or corpus.name))
        return [part for part in [*parts, say.translated(inputs.resolved.egress)] if part]

    @cached_property
    def contents(self) -> list[tuple[str, str]]:
        """The anchors and titles of all sections."""
        inputs, say = self._inputs, self._inputs.words
        own = [("sources", say("sources"))] if inputs.cited or inputs.also_read else []
        own += [("statements", say("loose"))] if self.by_passage.get("") else []
        return [*((anchor, block.words) for block, anchor in self.anchors.items()), *own, ("method", say("method"))]

    @cached_property
    def choices(self) -> list[tuple[str, str]]:
        """The choices of the filter by verdict: names and labels. The style sheet does the rest."""
        say, counts = self._inputs.words, Counter(check.verdict for check in self.all_checks)
        return [
            ("all", f"{say('show_all')} {say.number(len(self.all_checks))}"),
            *(
                (name, f"{sign} {say.name('judged', name)} {say.number(counts[name])}")
                for name, sign in VERDICT_SIGNS.items()
                if counts[name]
            ),
        ]

    def about(self, source: Source) -> list[str]:
        """Return what is known of a source beside its title and its address."""
        say, show = self._inputs.words, self._inputs.show
        parts = [
            show(", ".join(source.authors) or source.publisher or ""),
            say("published_on", day=say.day(source.published_at)) if source.published_at else "",
            show(quality_words(source.quality, source.quality_reason, say)),
            say("read_on", day=say.day(source.retrieved_at)),
        ]
        return [part for part in parts if part]

    def where(self, source: Source, passage: QuotedPassage, *, with_day: bool = False) -> str:
        """Return the heading and the page of a passage, and when its source was read."""
        say, heading = self._inputs.words, passage.evidence.heading
        section = f"§ {self._inputs.show(heading)}" if heading and heading.casefold() != source.title.casefold() else ""
        day = say("read_on", day=say.day(source.retrieved_at)) if with_day else ""
        return " · ".join(part for part in (section, pages_of(source, [passage.evidence.page], say), day) if part)


def _headings(blocks: Blocks) -> Iterator[Block]:
    for block in blocks:
        if block.kind == "heading":
            yield block
        for part in block.parts:
            yield from _headings(part)
