"""Roles: the only declaration of each one's name, tier, prompt, input, draft, output and cap.

A role's *input* is what the workflow sends, its *draft* is what an engine must return, its *output* is what the
workflow gets back once the draft has been grounded in stored text and stored itself.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from pydantic import Field

from contracts.base import Contract, Terse
from contracts.evidence import (
    DocumentRef,
    Evidence,
    Finding,
    FindingLabel,
    Gap,
    QualityUpdate,
    ReportDraft,
    SearchHit,
    SectionHint,
)
from contracts.outcome import CallAccount, GateIssue, Guidance
from contracts.plan import PlanNode, QuestionRound
from contracts.request import Turn
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.tools import ToolSpec
from contracts.vocabulary import Action, Confidence, EngineKind, GapKind, Quality, Severity, Tier


class RoleInput(Terse):
    """What every role is told: the envelope. A strategy leaves it out, and the run fills it in for each call.

    What the run's notebook holds is sent as hashes of its entries, and filled in where the role is done.
    """

    research_id: str = ""
    tenant: str = "default"
    operation: str = ""
    """Logical id of the call (`plan/1`, `analyze/2/sq-…`): key of the journal, and the activity id."""
    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    date: str = ""
    """Date of the run (ISO 8601), so that the prompt can state it."""
    query: str = ""
    language: str = "en"
    iteration: int = 1
    max_iterations: int = 1
    wishes: list[str] = []
    """What the request wants of the work beyond the question: one line each."""
    guidance: list[Guidance] = []
    exclude: list[str] = []
    """Words, names and domains that are neither quoted nor reported."""
    issues: list[GateIssue] = []
    """Why the phase is done again; empty the first time."""
    canary: str = ""
    """The run's canary, told to every role: even earlier turns hold words from outside. Empty in old histories."""
    repair: str | None = None
    """The validation error of the previous answer, when this call is its repair."""
    time_limit_seconds: float = 300.0
    """The caller's start-to-close timeout: a client must give up before it."""
    resolved_entry: str = ""
    """Hash of the stored resolution, which holds what is the same in every call of the run; empty: all is here."""

    def subject(self) -> str:
        """What the call is about, for the web UI; empty when the role's name says it."""
        return ""


class RoleOutput(Terse):
    """What every role's answer carries."""

    account: CallAccount = CallAccount()


def words_of(kind: type[StrEnum]) -> dict[str, Any]:
    """Extra JSON schema of a field that takes the words of an enumeration.

    The model is told the closed vocabulary; its answer is read leniently all the same, because many endpoints do not
    hold a model to a schema.
    """
    return {"enum": [member.value for member in kind]}


class BriefedInput(RoleInput):
    """Input of a role that hears everything the request says: who plans, and who decides how much is planned."""

    system_prompt: str | None = None
    context: list[Turn] = []
    corpus: CorpusSnapshot | None = None
    hits: list[SearchHit] = []
    """What was found before the plan: titles and snippets, no page."""


# --- planner -------------------------------------------------------------------------------------------------------
class PlanInput(BriefedInput):
    """Hand-off to the planner."""

    min_sub_queries: int = 2
    max_sub_queries: int = 5
    previous: list[str] = []
    """The sub-queries of the plan that is done again."""


class SubQueryDraft(Contract):
    """A sub-query as a planner proposes it."""

    query: str = Field(description="a specific question that can be searched for by itself")
    rationale: str = Field(default="", description="why the answer needs it")
    priority: int = Field(default=1, description="1 is the most important", json_schema_extra={"minimum": 1})
    facet: str = Field(default="", description="the aspect it covers, one or two words")


class PlanDraft(Contract):
    """What a planner returns."""

    research_brief: str = Field(default="", description="two or three sentences: approach and aspects")
    sub_queries: list[SubQueryDraft]


class PlanOutput(RoleOutput):
    """A plan as the workflow gets it: clamped, without repetitions."""

    research_brief: str
    sub_queries: list[SubQueryDraft]


# --- clarifier -----------------------------------------------------------------------------------------------------
class ClarifyInput(RoleInput):
    """Hand-off to the clarifier: the question, and what was asked about it before."""

    context: list[Turn] = []
    rounds: list[QuestionRound] = []
    required: bool = False
    """Whether a person is to be asked at least once."""


class ClarifyDraft(Contract):
    """What a clarifier returns: questions, or that there is nothing to ask."""

    clear: bool = Field(description="whether the question can be researched as it stands")
    questions: list[str] = Field(default=[], description="at most three short questions to the person; none if clear")
    reason: str = Field(default="", description="in one sentence, what is unclear, or why nothing is")


class ClarifyOutput(RoleOutput):
    """At most three questions; none where the question is clear."""

    questions: list[str] = []
    reason: str = ""


# --- analyzer ------------------------------------------------------------------------------------------------------
class SourceExtract(Contract):
    """A source as the analyzer and the synthesizer are shown it."""

    id: str = ""
    url: str = ""
    title: str = ""
    publisher: str | None = None
    snippet: str = ""
    quality: Quality = Quality.UNKNOWN
    text: DocumentRef | None = None
    sections: list[SectionHint] = []
    entry: str | None = None
    """Hash of the stored entry that holds what is not given here."""
    hit_entries: list[str] = []
    """Hashes of the entries of searches that found it again."""
    changed: bool = False
    """Whether its quality is not what it was when it was read."""


class AnalyzeInput(RoleInput):
    """Hand-off to the analyzer: one sub-query with its sources."""

    brief: str = ""
    sub_query: PlanNode
    sources: list[SourceExtract]
    source_count: int = 0
    high_quality_sources: int = 0
    max_findings: int = 5
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}

    def subject(self) -> str:
        """The sub-query."""
        return self.sub_query.text


class QuoteDraft(Contract):
    """A passage that a finding rests on."""

    source_id: str
    quote: str = Field(description="copied word for word from the source")
    start: int | None = Field(default=None, description="offset in the stored text, if known")


class FindingDraft(Contract):
    """A finding as an analyzer proposes it."""

    content: str = Field(description="one specific statement that the quotes support")
    confidence: str = Field(default="low", json_schema_extra=words_of(Confidence))
    quotes: list[QuoteDraft] = Field(default=[], description="the passages it rests on")
    category: str | None = None
    contradicts: list[int] = Field(default=[], description="numbers, from 1, of findings here that say otherwise")


class GapDraft(Contract):
    """A gap as an analyzer proposes it."""

    description: str
    suggested_queries: list[str] = []
    priority: int = Field(default=1, description="1 is the most important", json_schema_extra={"minimum": 1})
    kind: str = Field(default="missing", json_schema_extra=words_of(GapKind))


class QualityUpdateDraft(Contract):
    """An opinion of a source."""

    source_id: str
    quality: str = Field(json_schema_extra=words_of(Quality))


class AnalysisDraft(Contract):
    """What an analyzer returns."""

    findings: list[FindingDraft]
    gaps: list[GapDraft] = []
    quality_updates: list[QualityUpdateDraft] = []


class AnalysisOutput(RoleOutput):
    """An analysis whose every quote was found in stored text."""

    findings: list[Finding] = []
    evidence: list[Evidence] = []
    gaps: list[GapDraft] = []
    quality_updates: list[QualityUpdate] = []
    analyzed_source_ids: list[str] | None = []
    """None: all that were given."""
    dropped_quotes: int = 0
    """Quotes that stood in no stored text word for word: dropped, and counted."""
    entry: str | None = None
    """Hash of the stored entry with findings and evidence, of which only `labels` are here. None: all is here."""
    labels: list[FindingLabel] = []


# --- synthesizer ---------------------------------------------------------------------------------------------------
class ReportPart(Contract):
    """The part of a long report that one call writes: a section, or the frame around all of them."""

    number: int = 0
    """Of the section, from 1; 0 for the frame."""
    heading: str = ""
    question: str = ""
    """What the section answers."""
    outline: list[str] = []
    """The headings of all sections, in order."""
    sections: list[DocumentRef] = []
    """For the frame: the sections as they were written."""


class WriteInput(RoleInput):
    """Hand-off to the synthesizer."""

    brief: str = ""
    sub_queries: list[PlanNode] = []
    findings: list[Finding] = []
    evidence: list[Evidence] = []
    sources: list[SourceExtract] = []
    gaps: list[Gap] = []
    source_count: int = 0
    high_quality_sources: int = 0
    improvements: list[str] = []
    target_words: int | None = None
    corpus: CorpusSnapshot | None = None
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    spellings: dict[str, str] = {}
    """Stem that no document has → the nearest spelling that one has."""
    cut_short: str | None = None
    """Why the run could not do all it planned (`budget_time`, `user_stopped`, …)."""
    entries: list[str] = []
    """Hashes of the stored analyses, in their order: findings, evidence and sources that are not given here."""
    part: ReportPart | None = None
    """What of a long report is to be written; None: all of it."""


class ReportTextDraft(Contract):
    """The report as Markdown with `[ev-…]` markers."""

    markdown: str


class WriteOutput(RoleOutput):
    """A draft in the content store."""

    draft: ReportDraft


# --- refiner -------------------------------------------------------------------------------------------------------
class RefineInput(RoleInput):
    """Hand-off to the refiner: gaps with their ids."""

    gaps: list[Gap]
    remaining_iterations: int
    draft: DocumentRef | None = None
    source_count: int = 0
    finding_count: int = 0
    high_confidence_count: int = 0
    asked: list[str] = []
    """Every sub-query so far: a follow-up must not repeat one."""
    term_documents: dict[str, int] = {}


class FollowUpDraft(Contract):
    """A follow-up query and what it is to bring."""

    query: str
    expected_contribution: str = ""


class GapAnalysisDraft(Contract):
    """A gap as a refiner judges it."""

    gap_id: str
    severity: str = Field(default="moderate", json_schema_extra=words_of(Severity))
    addressable: bool = True
    follow_up_queries: list[FollowUpDraft] = []


class RecommendationDraft(Contract):
    """Whether to go round again."""

    should_iterate: bool = False
    rationale: str = ""
    priority_gaps: list[str] = []


class RefineDraft(Contract):
    """What a refiner returns."""

    gap_analysis: list[GapAnalysisDraft]
    iteration_recommendation: RecommendationDraft
    report_improvements: list[str] = []


class GapAssessment(Contract):
    """A gap as judged, in known words."""

    gap_id: str
    severity: Severity
    addressable: bool
    follow_up_queries: list[FollowUpDraft] = []


class RefineOutput(RoleOutput):
    """A refinement as the workflow gets it: known gaps, new queries only."""

    gap_analysis: list[GapAssessment] = []
    iteration_recommendation: RecommendationDraft
    report_improvements: list[str] = []


# --- supervisor ----------------------------------------------------------------------------------------------------
class ReflectInput(RoleInput):
    """A think-pause: the reflection prompt with the phase's figures, and what the gate said."""

    phase: str
    prompt: str
    metrics: dict[str, float] = {}
    gate_valid: bool
    gate_score: float
    open_gaps: list[str] = []

    def subject(self) -> str:
        """The phase."""
        return self.phase


class QualityAssessmentDraft(Contract):
    """A supervisor’s assessment."""

    score: float = Field(default=5, json_schema_extra={"minimum": 1, "maximum": 10})
    strengths: list[str] = []
    weaknesses: list[str] = []


class ReflectionDraft(Contract):
    """What a supervisor returns."""

    action: str = Field(json_schema_extra=words_of(Action))
    rationale: str = ""
    quality_assessment: QualityAssessmentDraft = QualityAssessmentDraft()
    guidance: str = Field(default="", description="what the next phase should do differently")


class ReflectOutput(RoleOutput):
    """A reflection in known words."""

    action: Action
    rationale: str = ""
    score: float = 5.0
    strengths: list[str] = []
    weaknesses: list[str] = []
    guidance: str = ""


I = TypeVar("I", bound=RoleInput)
O = TypeVar("O", bound=RoleOutput)


@dataclass(frozen=True)
class RoleSpec(Generic[I, O]):
    """One role. The activity of the same name on the queue `research-models` does it."""

    name: str
    activity: str
    tier: Tier
    prompt: str
    """File stem in `activities/roles/prompts/`."""
    input: type[I]
    draft: type[Contract]
    output: type[O]
    output_tokens: int
    """Cap on visible output."""
    plain_text: bool = False
    """The engine's answer is the one field of the draft as text, not JSON."""
    sees_outside_text: bool = True
    """Whether its prompt holds words of pages, documents or search hits: then it carries the run's canary."""
    sees_question: bool = True
    """Whether its prompt states the question, the wishes and the guidance of the run."""
    has_fallback: bool = True
    """Whether it can be done without a model; without that, answers of no use are no answer."""
    whole_answers: bool = False
    """Whether an answer that lacks its end is refused, even where the rest can be read."""
    expected_output_tokens: int = 1_000
    """Of a usual answer, for the estimate."""
    work: str = ""
    """The phase that is its work, for the decision log; its own name where that says it."""
    module: str | None = None
    """For a role from outside the product: the module with its `prompt_values(request, rendering)` and, where the
    defaults do not fit, `finish(work)` and `draft(request, documents)`; `prompts/<prompt>.md` lies beside it."""
    tools: tuple[ToolSpec[Any], ...] = ()
    """What it may call. Such a role is asked turn by turn (`contracts.tool_turns`), and without a model follows the
    script of its name in `providers.extractive.scripted_turns`, or `draft(request, transcript)` of its module."""
    must_call: bool = True
    """Whether an endpoint that can is made to have a tool called in every turn."""

    @property
    def writes_report(self) -> bool:
        """Whether its output is the draft of the report."""
        return issubclass(self.output, WriteOutput)


CLARIFIER: Final = RoleSpec(
    "clarifier",
    "clarify_question",
    Tier.SIMPLE,
    "clarifier",
    ClarifyInput,
    ClarifyDraft,
    ClarifyOutput,
    800,
    expected_output_tokens=300,
    work="clarification",
)
"""Works before any strategy, where the request wants it."""
PLANNER: Final = RoleSpec(
    "planner",
    "plan_research",
    Tier.ANALYTICAL,
    "planner",
    PlanInput,
    PlanDraft,
    PlanOutput,
    2_000,
    expected_output_tokens=1_000,
    work="planning",
)
ANALYZER: Final = RoleSpec(
    "analyzer",
    "analyze_sources",
    Tier.ANALYTICAL,
    "analyzer",
    AnalyzeInput,
    AnalysisDraft,
    AnalysisOutput,
    6_000,
    expected_output_tokens=2_500,
    work="analysis",
)
SYNTHESIZER: Final = RoleSpec(
    "synthesizer",
    "write_report",
    Tier.COMPLEX,
    "synthesizer",
    WriteInput,
    ReportTextDraft,
    WriteOutput,
    16_000,
    True,
    expected_output_tokens=5_000,
    work="synthesis",
)
REFINER: Final = RoleSpec(
    "refiner",
    "refine_gaps",
    Tier.ANALYTICAL,
    "refiner",
    RefineInput,
    RefineDraft,
    RefineOutput,
    3_000,
    expected_output_tokens=1_500,
    work="refinement",
)
SUPERVISOR: Final = RoleSpec(
    "supervisor",
    "reflect_on_phase",
    Tier.SIMPLE,
    "supervisor",
    ReflectInput,
    ReflectionDraft,
    ReflectOutput,
    1_024,
    expected_output_tokens=600,
)


def language_of_call(role: RoleSpec[Any, Any], resolved: ResolvedResearch, engine: EngineKind) -> str:
    """What a role's texts are in: the report in what was asked for, all else in the language that is searched in."""
    wanted = resolved.report_language if role.writes_report and engine is EngineKind.MODEL else None
    return wanted or resolved.language


def wishes_of_call(role: RoleSpec[Any, Any], resolved: ResolvedResearch) -> list[str]:
    """What the request wants beyond the question; the form of the report concerns its writer alone."""
    wishes = [f"The region that matters: {resolved.region}"] if resolved.region else []
    if resolved.audience:
        wishes.append(f"The readers: {resolved.audience}")
    wishes += [f"Leave out, do not report on: {each}" for each in resolved.exclude]
    if role.writes_report and resolved.sections:
        headings = "; ".join(resolved.sections)
        wishes.append(f'These sections in this order, in place of the usual ones, each under "## ": {headings}')
    return wishes
