"""Everything that a report is made of, gathered once for its three forms."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from activities.reporting.citation_styles import CitationLabel, citation_labels, with_labels
from activities.reporting.citations import NumberedText, number_citations, without_numbers
from activities.reporting.claim_finder import without_uncited
from activities.reporting.links import Registry, strip_addresses_shown
from activities.reporting.markdown_layout import escape_markdown, one_line
from activities.reporting.quoted_passages import QuotedPassage, cut_passages
from activities.reporting.report_words import ReportWords
from activities.roles.report_shape import TITLE_CHARACTERS, without_source_lists
from contracts.checking import Correction
from contracts.evidence import ClaimVerdict, Finding, Source
from contracts.outcome import Ending
from contracts.request import Uncited
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.texts import shorten
from contracts.vocabulary import NATURAL_STOPS, STOP_REASON_TEXTS, EngineKind, Outcome, SourceStatus
from providers.errors import InvalidCall
from providers.interfaces import SkippedFile
from providers.verification.contradictions import find_contradictions

HEADING = re.compile(r"\A\s*+#[ \t]++([^\n]++)(?:\n|\Z)")


@dataclass(frozen=True)
class CitedSource:
    """A source with its number and the passages of it that the report cites, in order of first appearance."""

    number: int
    source: Source
    passages: list[QuotedPassage]
    label: CitationLabel


@dataclass(frozen=True)
class ReportInputs:
    """The parts of a report."""

    state: ResearchState
    resolved: ResolvedResearch
    ending: Ending
    numbered: NumberedText
    """The draft's text with numbers, title and all."""
    passages: Mapping[str, QuotedPassage]
    cited: list[CitedSource]
    also_read: list[Source]
    """Read in full, yet not cited."""
    unread: list[Source]
    """Found, yet not readable or not read."""
    skipped: list[SkippedFile]
    registry: Registry
    product_version: str
    replaced_list: bool
    """The draft brought its own list of sources, which ours replaces."""
    uncited_removed: int = 0
    """Assertions that cited nothing, taken out of the draft as the request wants it."""
    contradictions: list[tuple[Finding, Finding]] = field(default_factory=list)
    """Findings of different sources that cannot both be true."""
    verdicts: Mapping[str, ClaimVerdict] = field(default_factory=dict)
    """What the run's verification says, by the ids of claims; the others are judged by rules."""
    corrections: Sequence[Correction] = ()
    """What was done about claims that did not pass."""

    def written_freely(self) -> bool:
        """Whether the text may hold assertions without a citation.

        What the extractive engine writes besides its quotations speaks of the report alone.
        """
        return _written_freely(self.state)

    @cached_property
    def words(self) -> ReportWords:
        """The fixed sentences of this report."""
        return ReportWords.of(self.state, self.resolved)

    def why(self) -> str:
        """Why the run ended as it did, in words; what failed comes before how the work happened to stop."""
        if self.ending.outcome is Outcome.PARTIAL and self.ending.stop_reason in NATURAL_STOPS:
            return self.words["parts_failed" if self.state.failed_branches else "complete_partial"]
        return self.words.told(STOP_REASON_TEXTS[self.ending.stop_reason])

    def outcome(self) -> str:
        """How the run ended."""
        return self.words[f"outcome_{self.ending.outcome.value}"]

    def show(self, text: str) -> str:
        """A foreign line (a title, a reason, a question) as a report may print it, not yet escaped."""
        return one_line(without_numbers(self.without_links(one_line(text))))

    def without_links(self, text: str) -> str:
        """A foreign text without addresses that no source has, however they are spelled."""
        return strip_addresses_shown(text, self.registry)

    def escape(self, text: str) -> str:
        """The same, escaped for Markdown."""
        return escape_markdown(self.show(text))


def _written_freely(state: ResearchState) -> bool:
    return state.draft is not None and writer_engine(state.engine_by_role) is not EngineKind.EXTRACTIVE


def read_ending(state: ResearchState) -> Ending:
    """The ending in the state. Raises `InvalidCall` without one: a report must not guess its outcome."""
    if state.ending is None:
        raise InvalidCall("the state says nothing of how the run ended")
    return state.ending


@dataclass(frozen=True)
class TitleLine:
    """Where the title of a draft stands, and where its line ends."""

    start: int
    end: int
    cut: int


def title_line(draft: str) -> TitleLine | None:
    """The title of a draft that begins with one."""
    match = HEADING.match(draft)
    if match is None:
        return None
    line = match[1].rstrip()
    bare = line.rstrip("#")
    title = bare.rstrip() if bare.endswith((" ", "\t")) else line
    return TitleLine(match.start(1), match.start(1) + len(title), match.end()) if title else None


def _draft_without_list(draft: str) -> tuple[str, bool]:
    without = without_source_lists(draft)
    return (without, True) if without.strip() != draft.strip() else (draft, False)


def _draft_with_title(draft: str, state: ResearchState, resolved: ResolvedResearch) -> str:
    if title_line(draft):
        return draft.lstrip()
    title = state.draft.title if state.draft and state.draft.title else resolved.query
    return f"# {escape_markdown(shorten(title, TITLE_CHARACTERS))}\n\n{draft.lstrip()}"


def _collect_cited(
    numbered: NumberedText,
    passages: Mapping[str, QuotedPassage],
    sources: Mapping[str, Source],
    labels: Mapping[int, CitationLabel],
) -> list[CitedSource]:
    by_number: dict[int, dict[str, QuotedPassage]] = {}
    for mark in numbered.marks:
        by_number.setdefault(mark.number, {}).update({one: passages[one] for one in mark.evidence_ids})
    of_number = {citation.number: citation.source_id for citation in numbered.citations}
    return [CitedSource(number, sources[of_number[number]], list(by_number[number].values()), labels[number])
            for number in sorted(by_number)]  # fmt: skip


def _contradictions(state: ResearchState, language: str) -> list[tuple[Finding, Finding]]:
    """What the analyses linked, and what rules find between findings of different ones."""
    findings = state.findings
    place = {finding.id: number for number, finding in enumerate(findings)}
    linked = {
        (min(place[one.id], place[other]), max(place[one.id], place[other]))
        for one in findings
        for other in one.contradicts
        if other in place
    }
    sources = [finding.source_ids for finding in findings]
    linked |= set(find_contradictions([finding.statement for finding in findings], sources, language))
    return [(findings[one], findings[other]) for one, other in sorted(linked)]


def gather_matter(
    state: ResearchState,
    draft: str | None,
    texts: Mapping[str, str],
    skipped: Sequence[SkippedFile],
    product_version: str,
    verdicts: Sequence[ClaimVerdict] = (),
    corrections: Sequence[Correction] = (),
) -> ReportInputs:
    """Number the draft and sort the sources.

    `draft` is the text with evidence markers, None if the run wrote none; `texts` are the stored texts of every source
    that evidence names, by hash. Raises `ContentMissing`, `ContentCorrupt`, `InvalidCall`.
    """
    resolved = state.resolved
    if resolved is None:
        raise InvalidCall("the state has no resolved request")
    passages = cut_passages(state.evidence, state.sources, texts)
    quotes = (passage.quote for passage in passages.values())
    registry = Registry.of([source.url for source in state.sources.values()], resolved.query, quotes)
    body, replaced = _draft_without_list(draft) if draft is not None else ("", False)
    removed = 0
    if resolved.uncited is Uncited.REMOVE and _written_freely(state):
        body, removed = without_uncited(body, state.evidence, resolved.language)
    numbered = number_citations(_draft_with_title(body, state, resolved), state.evidence, state.citations, registry)
    labels = citation_labels(resolved.citation_style, numbered.citations, state.sources, registry)
    numbered = with_labels(numbered, labels)
    cited = _collect_cited(numbered, passages, state.sources, labels)
    cited_ids = {item.source.id for item in cited}
    others = [source for source in state.sources.values() if source.id not in cited_ids]
    return ReportInputs(
        state=state,
        resolved=resolved,
        ending=read_ending(state),
        numbered=numbered,
        passages=passages,
        cited=cited,
        also_read=[source for source in others if source.status is SourceStatus.FULL],
        unread=[source for source in others if source.status is not SourceStatus.FULL],
        skipped=list(skipped),
        registry=registry,
        product_version=product_version,
        replaced_list=replaced,
        uncited_removed=removed,
        contradictions=_contradictions(state, resolved.language),
        verdicts={verdict.claim_id: verdict for verdict in verdicts},
        corrections=corrections,
    )
