"""Roles: the single declaration of each role's name, tier, prompt, input, answer, result and cap.

A role's *input* comes from the workflow, its *answer* from an engine, parsed leniently and fitted to the input. The
workflow gets the answer, or its *result* if quotes and citations are first grounded in stored text.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Generic, Self, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from contracts.answer_sizes import (
    FINDING_OUTPUT_TOKENS,
    GAPS_OUTPUT_TOKENS,
    MAX_FINDINGS,
    PAGE_FINDING_TOKENS,
    QUERY_OUTPUT_TOKENS,
    TOKENS_PER_FINDING,
    WORD_OUTPUT_TOKENS,
    findings_of_text,
    rewriting_tokens,
)
from contracts.base import CompactModel, Contract
from contracts.evidence import (
    DocumentRef,
    Evidence,
    Finding,
    Gap,
    ReportDraft,
    SearchHit,
    SectionHint,
    SectionRef,
    SourceDetails,
)
from contracts.gaps import SettledGap
from contracts.lenient import Paragraph, Sentence, UnfitAnswer, clamp, distinct, member_or, one_line, take_first
from contracts.outcome import CallAccount, GateIssue, Guidance, Usage
from contracts.plan import MAX_QUESTIONS, PlanNode, QuestionRound
from contracts.request import Turn
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.texts import plural
from contracts.tokens import TokenSettings, TokenShare
from contracts.tools import ToolSpec
from contracts.vocabulary import Confidence, EngineKind, GapKind, Quality, Tier

MAX_GAPS: Final = 4
MAX_SUGGESTIONS: Final = 3
MAX_SECTIONS_WANTED: Final = 30
"""Of one answer; the room of the call that shows them is the limit."""
CHARACTERS_PER_TOKEN: Final = 4
FINDINGS_OF_SEVERAL: Final = 3
"""For each of several sub-queries of one analysis, at least."""
FINDINGS_PER_SOURCE: Final = 2
MIN_ASKED_FINDINGS: Final = 3
LEAST_FURTHER_FINDINGS: Final = 3
"""Of a second reading, however short the sections that it is shown."""
LEAST_PRIORITY: Final = 3
"""Of a finding that is background."""
Priority = Annotated[int, clamp(1, 10), Field(description="1 is the most important", json_schema_extra={"minimum": 1})]


class RoleInput(CompactModel):
    """Fields of every role's input, filled in by the run for each call.

    Notebook contents travel as entry hashes; the activity loads the entries.
    """

    SUBJECT: ClassVar[str] = ""
    """Name of the field with the subject of the call."""

    research_id: str = ""
    tenant: str = "default"
    operation: str = ""
    """Logical id of the call (`plan/1`, `analyze/2/sq-…`): journal key and activity id."""
    caller: str = ""
    """Calling role, if one role calls another."""
    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    date: str = ""
    """Date of the run (ISO 8601)."""
    query: str = ""
    delegated: bool = False
    """True if the query is a task written by another role, which prompts show as data."""
    one_collection: bool = False
    """True if the run searches one collection alone, so that no source is more independent or better than another."""
    language: str = "en"
    iteration: int = 1
    max_iterations: int = 1
    preferences: list[str] = []
    """Preferences of the request beyond the question, one line each."""
    guidance: list[Guidance] = []
    exclude: list[str] = []
    """Words, names and domains never quoted or reported."""
    issues: list[GateIssue] = []
    """Reasons for repeating the phase; empty the first time."""
    canary: str = ""
    """The run's canary; needed in every call, because even earlier turns contain outside text."""
    repair: str | None = None
    """Validation error of the previous answer, if this call repairs it."""
    time_limit_seconds: float = 300.0
    """Start-to-close timeout of the activity; clients must give up before it."""
    reserved_input_tokens: int | None = None
    """Input tokens that the budget has for this call, by the estimate of its prompt; None: no limit is set."""
    reserved_output_tokens: int | None = None
    """Output tokens, including reasoning, that the budget has for this call; None: those of the role."""
    shorten: bool = False
    """True: show less content if the whole needs more input tokens than are reserved."""
    more: bool = False
    """True: the call is made again with more output tokens, because its answer was cut at those reserved."""
    tokens: TokenSettings = TokenSettings()
    summaries: list[str] | None = None
    """Hashes of entries with summaries of this call's texts; None if none were requested yet."""
    protected_source_ids: list[str] = []
    """Sources protected by the request, which are always shown."""
    resolved_entry: str = ""
    """Hash of the stored resolution, which has the fields shared by all calls; empty: none."""

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the names of the answer's fields that this call does not ask for, at any depth of its schema."""
        return ()

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of the longest answer that the prompt asks for, without reasoning; 0 if it names no size.

        The figures for each part of an answer are those of real models, rounded up.
        """
        return 0

    @property
    def least_output_tokens(self) -> int:
        """Return the tokens of output without which the call is not worth making; 0 if any answer is of use."""
        return 0

    def with_reservation(self, size: Usage, *, shorten: bool) -> Self:
        """Return a copy with the tokens that the budget has for this call."""
        return self.with_fields(
            reserved_input_tokens=size.input_tokens, reserved_output_tokens=size.output_tokens, shorten=shorten
        )

    def subject(self) -> str:
        """Return the subject of the call for the web UI; empty if the role's name is enough."""
        if not self.SUBJECT:
            return ""
        return str(getattr(self, self.SUBJECT))


class RoleAnswer(CompactModel):
    """Answer of a role, as returned by an engine; the workflow gets it, or a grounded result (`RoleSpec.result`)."""

    IS_REPORT: ClassVar[bool] = False
    """True for the report's text or a part of it."""

    account: SkipJsonSchema[CallAccount] = CallAccount()
    """Set by the activity, never by a model."""

    def fitted(self, request: Any, notes: list[str]) -> Self:
        """Fit the answer to its request (limits, repetitions, names), adding a line to `notes` for all that is dropped.

        Raises `UnfitAnswer` if nothing is left.
        """
        del request, notes
        return self


@cache
def answer_schema(answer: type[RoleAnswer]) -> str:
    """Return the JSON schema of an answer as JSON; working it out takes milliseconds, so it is done once."""
    return json.dumps(answer.model_json_schema())


class BriefedInput(RoleInput):
    """Input of a planning role, with the whole request."""

    system_prompt: str | None = None
    context: list[Turn] = []
    corpus: CorpusSnapshot | None = None
    web: bool = False
    """True if the web is searched."""
    hits: list[SearchHit] = []
    """Hits of searches before planning: titles and snippets, no pages."""
    previous: list[str] = []
    """Queries or steps of the plan to replace."""


class PlanInput(BriefedInput):
    """Hand-off to the planner."""

    min_sub_queries: int = 2
    max_sub_queries: int = 5

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of the brief and of as many sub-queries as are asked for."""
        return (self.max_sub_queries + 1) * QUERY_OUTPUT_TOKENS


class SubQuery(Contract):
    """A sub-query proposed by a planner."""

    query: Annotated[str, one_line(500)] = Field(description="a specific question that can be searched for on its own")
    rationale: Paragraph = Field(default="", description="why the answer needs it")
    priority: Priority = 1
    facet: Annotated[str, one_line(60)] = Field(default="", description="the aspect it covers, one or two words")


class PlannerAnswer(RoleAnswer):
    """A plan: distinct sub-queries, no more than requested."""

    research_brief: Annotated[str, one_line(2_000)] = Field(
        default="", description="approach and aspects covered, in two or three sentences"
    )
    sub_queries: list[SubQuery]

    def fitted(self, request: PlanInput, notes: list[str]) -> Self:
        """Keep distinct sub-queries, the most important ones up to the limit, in the planner's order."""
        queries = distinct(self.sub_queries, lambda query: query.query)
        if not queries:
            raise UnfitAnswer("sub_queries: at least one sub-query with words is needed")
        if len(queries) < len(self.sub_queries):
            notes.append("sub-queries that were empty or repeated were dropped")
        ranked = sorted(range(len(queries)), key=lambda index: (queries[index].priority, index))
        chosen = take_first(ranked, request.max_sub_queries, notes, "sub-queries")
        return self.with_fields(sub_queries=[queries[index] for index in sorted(chosen)])


class ClarifyInput(RoleInput):
    """Hand-off to the clarifier: the question and earlier rounds of questions."""

    context: list[Turn] = []
    rounds: list[QuestionRound] = []
    required: bool = False
    """True if the person must be asked at least once."""


class ClarifierAnswer(RoleAnswer):
    """At most three clarifying questions; none if the question is clear."""

    clear: bool = Field(description="whether the question can be researched as it is")
    questions: list[Sentence] = Field(
        default=[], description="at most three short questions to the person; none if clear"
    )
    reason: Paragraph = Field(default="", description="one sentence: what is unclear, or why nothing is")

    def fitted(self, request: ClarifyInput, notes: list[str]) -> Self:
        """Keep distinct new questions. Raises `UnfitAnswer` if a required question is missing."""
        asked = [question for question_round in request.rounds for question in question_round.questions]
        proposed = self.questions if request.required or not self.clear else []
        questions = take_first(distinct(proposed, str, asked), MAX_QUESTIONS, notes, "questions")
        if request.required and not questions:
            raise UnfitAnswer("questions: the person must be asked: at least one question is needed")
        return self.with_fields(questions=questions)


class SourceExtract(SourceDetails):
    """A source in the prompts of analyzer and synthesizer."""

    id: str = ""
    url: str = ""
    publisher: str | None = None
    quality: Quality = Quality.UNKNOWN
    text: DocumentRef | None = None
    sections: list[SectionHint] = []
    links: list[str] = []
    entry: str | None = None
    """Hash of the stored entry with the other fields."""
    hit_entries: list[str] = []
    """Hashes of the entries from other searches that found it."""
    changed: bool = False
    """True if the quality differs from the entry's."""
    again: bool = False
    """True if an earlier analysis has read it: only the sections that fit the new questions best are shown."""


class AnalyzeInput(RoleInput):
    """Hand-off to the analyzer: sources, and the sub-queries that they may answer."""

    MAX_CHARACTERS: ClassVar[int | None] = None
    """Limit per source on top of the request's own; None: no extra limit."""
    SHOWS_ALL: ClassVar[bool] = False
    """True if each source is shown, also one that seems not to belong to the questions."""

    brief: str = ""
    sub_query: PlanNode
    """The first of the sub-queries, or the only one."""
    sub_queries: list[PlanNode] = []
    """All sub-queries of the call, numbered from 1 in its prompt; empty: only `sub_query`."""
    sources: list[SourceExtract]
    gaps: list[Gap] = []
    """Open gaps, which the findings may answer: those of the run, and of the earlier answer that asked for `wanted`."""
    source_count: int = 0
    high_quality_sources: int = 0
    pages_read: list[str] = []
    """Titles of the pages that the run has read or is reading, so that what one of them says is no gap of another."""
    max_findings: int = 5
    shown_tokens: int = 24_000
    """Estimated tokens of the sources' texts to show."""
    most_tokens: int | None = None
    """Its part of what the calls of an iteration may show together; None: as much as a call may show."""
    max_characters: int | None = None
    """Most characters to show of each source; None: no limit but the tokens."""
    wanted: list[SectionRef] = []
    """Sections that an earlier answer asked for; if there are any, only these are shown."""
    found: list[str] = []
    """Statements of the earlier answer that asked for `wanted`, or of earlier readings of the same pages."""
    shown_before: bool = False
    """True if `wanted` was asked for by an answer to the same request, which was shown what fits it best."""
    narrowed_before: bool = False
    """True if that answer was shown less than this, because a limit left no room."""
    seen: list[SectionRef] = []
    """What it was shown then, part by part; empty: not known."""
    sections: list[int] = []
    """Numbers of sections to show, as an outline of its sources gives them; empty: what fits the sub-queries best."""
    outlined: bool = False
    """True if the result lists the sections that the call was not shown, for a role that may have them read."""
    for_gaps: bool = False
    """True if the call looks for answers to `gaps` alone, in the sections of its sources that speak most of them."""
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    semantic: bool = False
    """True: rules rank passages by closeness of meaning, too."""

    @property
    def queries(self) -> list[PlanNode]:
        """Return the sub-queries of the call."""
        return self.sub_queries or [self.sub_query]

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the fields that cannot say anything: scales if no source can be surer or better than another, the
        source where there is one, gaps to answer if there are none, and sections to ask for and silence where sections
        alone are shown; and the category, which no role is shown.
        """
        scales = ("category", "confidence", "quality_updates") if self.one_collection else ("category",)
        if len(self.sources) == 1:
            scales = (*scales, "source_id")
        if self.for_gaps:
            return (*scales, "answers", "contradicts", "gaps", "sections_wanted", "nothing_on")
        gaps = () if self.gaps else ("answers_gaps",)
        of_part = ("sections_wanted", "nothing_on") if self.wanted else ("in_sections",)
        return (*scales, *gaps, *of_part)

    @property
    def finding_limit(self) -> int:
        """Return the most findings of the call: more for several sub-queries, and where much is shown."""
        if self.for_gaps:
            return min(max(LEAST_FURTHER_FINDINGS, len(self.gaps)), MAX_FINDINGS)
        several = max(FINDINGS_OF_SEVERAL * len(self.sub_queries), FINDINGS_PER_SOURCE * len(self.sources))
        if self.wanted:
            # Another reading of the same pages is asked for what these sections add.
            several = LEAST_FURTHER_FINDINGS if self.shown_before else several
            of_text = findings_of_text(sum(section.end - section.start for section in self.wanted))
        else:
            sizes = (source.text.size for source in self.sources if source.text is not None)
            of_text = min(self.shown_tokens, sum(sizes) // CHARACTERS_PER_TOKEN) // TOKENS_PER_FINDING
        least = 0 if self.wanted and self.shown_before else self.max_findings
        return min(max(least, several, of_text), MAX_FINDINGS)

    @property
    def asked_findings(self) -> int:
        """Return the most findings to ask for: as many as the answer has room for, where its tokens are reserved."""
        if self.reserved_output_tokens is None:
            return self.finding_limit
        room = (self.reserved_output_tokens - GAPS_OUTPUT_TOKENS) // PAGE_FINDING_TOKENS
        return min(self.finding_limit, max(MIN_ASKED_FINDINGS, room))

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of as many findings as the request may have, and of its gaps."""
        several = len(self.sources) > 1 and not self.for_gaps
        each = FINDING_OUTPUT_TOKENS if several else PAGE_FINDING_TOKENS
        return self.finding_limit * each + GAPS_OUTPUT_TOKENS

    def subject(self) -> str:
        """Return the text of the sub-query, or the number of sub-queries and pages."""
        if len(self.queries) == 1:
            return self.sub_query.text
        return f"{plural(len(self.sources), 'page')} for {plural(len(self.queries), 'sub-query')}"


class Quote(Contract):
    """A passage that supports a finding."""

    source_id: str = ""
    """Not asked for where a call has one source."""
    quote: str = Field(description="copied verbatim from the source")
    start: SkipJsonSchema[int | None] = None
    """Offset in the stored text; only rules know it."""


class ProposedFinding(Contract):
    """A finding proposed by an analyzer."""

    content: Annotated[str, one_line(600)] = Field(description="one specific statement that the quotes support")
    confidence: Annotated[Confidence, member_or(Confidence, Confidence.LOW)] = Confidence.LOW
    quotes: list[Quote] = Field(default=[], description="the passages that support it")
    category: Annotated[str, one_line(80)] | None = None
    answers: list[int] = Field(default=[], description="numbers of the sub-queries that it helps to answer")
    contradicts: list[int] = Field(
        default=[], description="numbers, from 1, of findings in this answer that say otherwise"
    )
    answers_gaps: list[str] = Field(
        default=[],
        description="labels of the listed open gaps that this finding answers, alone or together with others",
    )
    priority: Annotated[int, clamp(1, LEAST_PRIORITY)] = Field(
        default=2, description="1 the answer cannot do without it, 2 it completes the answer, 3 background"
    )


class ProposedGap(Contract):
    """A gap proposed by an analyzer."""

    description: Annotated[str, one_line(400)] = Field(
        description="one thing that is missing; what has two parts is two gaps"
    )
    sub_query: int = Field(default=0, description="number of the sub-query that it leaves open")
    suggested_queries: list[Sentence] = []
    in_sections: list[int] = Field(
        default=[], description="numbers of listed sections, not shown, in which it is probably answered"
    )
    unread: SkipJsonSchema[list[SectionRef]] = []
    """Those sections; set by the activity, never by a model."""
    priority: Priority = 1
    kind: Annotated[GapKind, member_or(GapKind, GapKind.MISSING)] = GapKind.MISSING


class QualityUpdate(Contract):
    """The analyzer's rating of a source."""

    source_id: str = ""
    """Not asked for where a call has one source."""
    quality: Annotated[Quality, member_or(Quality, Quality.UNKNOWN)]


class AnalyzerAnswer(RoleAnswer):
    """Findings with quotes, gaps, and the hidden sections that they need."""

    findings: list[ProposedFinding]
    gaps: list[ProposedGap] = []
    quality_updates: list[QualityUpdate] = []
    sections_wanted: list[int] = Field(
        default=[],
        description="numbers of sections that are not shown and may answer a sub-query, those needed most first",
    )
    nothing_on: list[int] = Field(
        default=[], description="numbers of the sub-queries on which the pages shown say nothing at all"
    )

    def fitted(self, request: AnalyzeInput, notes: list[str]) -> Self:
        """Keep the most important distinct gaps, with a few distinct queries each."""
        del request
        gaps = sorted(distinct(self.gaps, lambda gap: gap.description), key=lambda gap: gap.priority)
        limited = [
            gap.with_fields(suggested_queries=distinct(gap.suggested_queries, str)[:MAX_SUGGESTIONS])
            for gap in take_first(gaps, MAX_GAPS, notes, "gaps")
        ]
        return self.with_fields(gaps=limited)


class AnalyzerResult(RoleAnswer):
    """An analysis in which every quote was found in stored text."""

    findings: list[Finding] = []
    evidence: list[Evidence] = []
    gaps: list[ProposedGap] = []
    quality_updates: list[QualityUpdate] = []
    settled_gaps: list[SettledGap] = []
    """Gaps of the request that findings answer."""
    analyzed_source_ids: list[str] | None = []
    """None: all sources of the request."""
    nothing_on: list[int] = []
    """Numbers of the sub-queries on which a model found nothing in the pages of `read_whole`."""
    read_whole: list[str] = []
    """If there are any: the ids of the sources of which all was shown."""
    answered: list[list[int]] = []
    """For each finding, the numbers of the sub-queries that it answers; empty: the first sub-query."""
    wanted: list[SectionRef] = []
    """Sections that it asked for: the same analysis is made once more with these."""
    outline: list[str] = []
    """For an `outlined` request: each section that was not shown, or only in part, by number; empty: all was shown."""
    links: list[str] = []
    """For an `outlined` request: places of documents of the collection to which its pages link."""
    narrowed: bool = False
    """True if a model was shown less of the sources than was chosen, because a limit left no room."""
    seen: list[SectionRef] = []
    """If sections are wanted: the parts that it was shown then."""
    dropped_quotes: int = 0
    """Number of quotes not found word for word in any stored text."""
    entry: str | None = None
    """Hash of the stored entry with findings and evidence, inline only in part; None if all is inline."""


class ReportPart(Contract):
    """The part of a long report written by one call: a section, or the frame around all sections."""

    number: int = 0
    """Number of the section, from 1; 0 for the frame."""
    heading: str = ""
    question: str = ""
    outline: list[str] = []
    """Headings of all sections, in order."""
    sections: list[DocumentRef] = []
    """For the frame: the written sections."""


class FindingsInput(RoleInput):
    """Input of a role that writes from findings."""

    findings: list[Finding] = []
    evidence: list[Evidence] = []
    sources: list[SourceExtract] = []
    entries: list[str] = []
    """Hashes of the stored analyses, in order, with the other findings, evidence and sources."""


class ChosenFindingsInput(FindingsInput):
    """Input of a role that gets some of the run's findings, which it names by their numbers."""

    finding_ids: list[str] = []
    """The findings in order, including stored ones."""


class GapsInput(FindingsInput):
    """Input of a role that judges open gaps: with them, the best passages of the sources read so far are shown."""

    gaps: list[Gap] = []
    """The open gaps."""
    read_sources: list[SourceExtract] = []
    """The sources read so far; empty: no passage is shown."""


class WriteInput(FindingsInput):
    """Hand-off to the synthesizer."""

    brief: str = ""
    sub_queries: list[PlanNode] = []
    gaps: list[Gap] = []
    source_count: int = 0
    high_quality_sources: int = 0
    improvements: list[str] = []
    target_words: int | None = None
    corpus: CorpusSnapshot | None = None
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    semantic: bool = False
    """True: rules rank passages by closeness of meaning, too."""
    spellings: dict[str, str] = {}
    cut_short: str | None = None
    """Reason why the run ended before its plan was finished (`budget_time`, `user_stopped`, …)."""
    part: ReportPart | None = None
    """Part of a long report to write; None: the whole report."""
    finding_ids: list[str] = []
    """For a section: its findings, of those that the entries have; empty: all of them."""
    words_before: int = 0
    """Words of the draft that the report would replace at the end of a run; 0 if nothing is lost by a shorter one."""

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of the words that are asked for."""
        return (self.target_words or 0) * WORD_OUTPUT_TOKENS

    @property
    def least_output_tokens(self) -> int:
        """Return the tokens without which the report would be poorer than the draft before it."""
        return rewriting_tokens(self.words_before)


class SynthesizerAnswer(RoleAnswer):
    """The report as Markdown with `[ev-…]` markers."""

    markdown: str


class SynthesizerResult(RoleAnswer):
    """A draft in the content store."""

    IS_REPORT = True

    draft: ReportDraft


Request = TypeVar("Request", bound=RoleInput)
Result = TypeVar("Result", bound=RoleAnswer)


@dataclass(frozen=True)
class RoleSpec(Generic[Request, Result]):
    """A role: its prompt is `activities/roles/prompts/NAME.md`; its activity runs on the queue `research-models`."""

    name: str
    activity: str
    tier: Tier
    input: type[Request]
    answer: type[RoleAnswer]
    """Type returned by an engine."""
    result: type[Result]
    """Type returned to the workflow: the answer, or its grounded form."""
    output_tokens: int
    """Cap on the visible output."""
    plain_text: bool = False
    """True if a model answers in plain text, the first field of the answer, instead of JSON."""
    share: TokenShare = TokenShare.ANALYSIS
    has_fallback: bool = True
    """True if the role can work without a model; only then may an answer with a missing end be repaired and used."""
    expected_output_tokens: int = 1_000
    """Tokens of a typical answer, for the estimate."""
    work: str = ""
    """Phase in the decision log; empty: the role's own name."""
    module: str | None = None
    """Module of an external role, with `ground(work)` and `draft(request, documents)` if the defaults do not fit;
    `prompts/NAME.md` is in its folder."""
    tools: tuple[ToolSpec[Any], ...] = ()
    """Tools that the role may call in turns (`contracts.tool_turns`); without a model it follows a script."""

    @property
    def writes_report(self) -> bool:
        """Return true if the result is the report's text or a part of it."""
        return self.result.IS_REPORT


CLARIFIER: Final = RoleSpec(
    "clarifier", "clarify_question", Tier.SIMPLE, ClarifyInput, ClarifierAnswer, ClarifierAnswer,
    share=TokenShare.PLANNING, output_tokens=800, expected_output_tokens=300, work="clarification",
)  # fmt: skip
"""Runs before any strategy, if the request enables it."""
PLANNER: Final = RoleSpec(
    "planner", "plan_research", Tier.ANALYTICAL, PlanInput, PlannerAnswer, PlannerAnswer,
    share=TokenShare.PLANNING, output_tokens=2_000, expected_output_tokens=1_000, work="planning",
)  # fmt: skip
ANALYZER: Final = RoleSpec(
    "analyzer", "analyze_sources", Tier.ANALYTICAL, AnalyzeInput, AnalyzerAnswer, AnalyzerResult,
    output_tokens=8_000, expected_output_tokens=3_000, work="analysis",
)  # fmt: skip
SYNTHESIZER: Final = RoleSpec(
    "synthesizer", "write_report", Tier.COMPLEX, WriteInput, SynthesizerAnswer, SynthesizerResult,
    share=TokenShare.SYNTHESIS, output_tokens=16_000, expected_output_tokens=3_000, work="synthesis", plain_text=True,
)  # fmt: skip


def resolved_fields(role: RoleSpec[Any, Any], request: RoleInput, resolved: ResolvedResearch) -> dict[str, Any]:
    """Return the fields of a role's input that follow from the resolved request.

    The run fills them in to size a call but sends the hash of the stored resolution instead; the activity fills them
    in again.
    """
    by_model = request.engine is EngineKind.MODEL
    # The report is in the requested language, everything else in the search language.
    report_language = resolved.report_language if role.writes_report and by_model else None
    fields: dict[str, Any] = {
        "tenant": resolved.tenant,
        "model": resolved.models.get(role.tier.value) if by_model else None,
        "query": resolved.query,
        "delegated": resolved.delegated,
        "one_collection": resolved.one_collection,
        "language": report_language or resolved.language,
        "preferences": prompt_preferences(role, resolved),
        "exclude": resolved.exclude,
        "max_iterations": resolved.limits.max_iterations,
        "canary": resolved.canary,
        "tokens": resolved.tokens,
    }
    if isinstance(request, BriefedInput):
        fields["system_prompt"] = resolved.system_prompt
    if isinstance(request, BriefedInput | ClarifyInput):
        fields["context"] = resolved.earlier_turns
    known = type(request).model_fields
    fields |= {name: getattr(resolved, name) for name in ("corpus", "web", "semantic") if name in known}
    if isinstance(request, AnalyzeInput):
        bounds = [limit for limit in (request.MAX_CHARACTERS, resolved.source_characters) if limit is not None]
        fields["max_characters"] = min(bounds, default=None)
        limits = [resolved.limits.analysis_tokens, request.most_tokens]
        fields["shown_tokens"] = min(limit for limit in limits if limit is not None)
    return fields


def prompt_preferences(role: RoleSpec[Any, Any], resolved: ResolvedResearch) -> list[str]:
    """Return the preferences of the request beyond the question; only the writer gets the form of the report."""
    preferences = []
    if resolved.constraints.region:
        preferences = [f"The region that matters: {resolved.constraints.region}"]
    if resolved.constraints.audience:
        preferences.append(f"The readers: {resolved.constraints.audience}")
    preferences += [f"Leave out, do not report on: {exclusion}" for exclusion in resolved.exclude]
    if issubclass(role.result, SynthesizerResult) and resolved.output.sections:
        headings = "; ".join(resolved.output.sections)
        preferences.append(f'These sections in this order, in place of the usual ones, each under "## ": {headings}')
    return preferences
