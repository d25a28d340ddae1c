"""The roles that steer the strategy `supervisor` between its phases: the supervisor itself, and the refiner."""

from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field

from contracts.addresses import gap_id
from contracts.base import Contract
from contracts.evidence import DocumentRef, Gap
from contracts.gaps import GapReading, SettledGap, settle_gaps
from contracts.lenient import Paragraph, Sentence, clamp, distinct, member_or, one_line
from contracts.plan import PlanNode
from contracts.resolved import CorpusSnapshot
from contracts.roles import FindingsInput, GapsInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.vocabulary import Action, Severity, Tier

MAX_FOLLOW_UPS: Final = 2
MAX_NOTES: Final = 10
MAX_OWN_GAPS: Final = 3
ASSESSMENT_TOKENS: Final = 150
"""Of a gap's assessment with its queries; real models wrote 40 to 130."""
ADVICE_TOKENS: Final = 400
"""Of the advice on another iteration and the improvements of a report."""


class RefineInput(GapsInput):
    """Hand-off to the refiner: the gaps, what was found and read, and the figures of the run."""

    remaining_iterations: int
    most_queries: int = 5
    """Follow-up queries and readings of one iteration, over all gaps."""
    draft: DocumentRef | None = None
    source_count: int = 0
    finding_count: int = 0
    high_confidence_count: int = 0
    asked: list[str] = []
    """Every sub-query of the run; follow-ups must not repeat them."""
    corpus: CorpusSnapshot | None = None
    web: bool = False

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the fields for what the run cannot do any more: search, or read further."""
        without_search = () if self.remaining_iterations else ("follow_up_queries", "own_gaps")
        if self.read_sources:
            return without_search
        return (*without_search, "read_further")

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of an assessment of each gap, also of its own ones, and of the advice."""
        own = MAX_OWN_GAPS if self.remaining_iterations else 0
        return (len(self.gaps) + own) * ASSESSMENT_TOKENS + ADVICE_TOKENS


class FollowUpQuery(Contract):
    """A follow-up query and its purpose."""

    query: Annotated[str, one_line(500)]
    expected_contribution: Paragraph = ""


class GapAssessment(SettledGap):
    """A refiner's assessment of a gap."""

    severity: Annotated[Severity, member_or(Severity, Severity.MODERATE)] = Severity.MODERATE
    read_further: list[int] = Field(
        default=[], description="numbers of the listed passages that answer it, to be read in their sections"
    )
    addressable: bool = Field(default=True, description="whether a new search can close it")
    follow_up_queries: list[FollowUpQuery] = Field(
        default=[], description="at most two; none if findings or listed passages answer all of it"
    )


class OwnGap(Contract):
    """A gap that no reader states: something that the question asks for, and neither findings nor gaps treat."""

    description: Annotated[str, one_line(400)] = Field(default="", description="what is missing")
    severity: Annotated[Severity, member_or(Severity, Severity.MODERATE)] = Severity.MODERATE
    follow_up_queries: list[FollowUpQuery] = Field(default=[], description="one or two, by which it is searched for")


class Recommendation(Contract):
    """Advice on another iteration."""

    should_iterate: bool = False
    rationale: Paragraph = ""
    priority_gaps: list[str] = []


class RefinerAnswer(RoleAnswer):
    """A refinement: assessments of known gaps, gaps of its own, new queries, and advice on another iteration."""

    gap_analysis: list[GapAssessment]
    own_gaps: list[OwnGap] = []
    iteration_recommendation: Recommendation
    report_improvements: list[Paragraph] = []

    def fitted(self, request: RefineInput, notes: list[str]) -> Self:
        """Keep one assessment per gap of the request, gaps of its own with new queries, and new follow-up queries."""
        asked = list(request.asked)
        gap_analysis = []
        own_gaps = []
        known = {gap.id for gap in request.gaps}
        proposed_gaps = self.own_gaps[:MAX_OWN_GAPS] if request.remaining_iterations else []
        for own in proposed_gaps:
            fresh = distinct(own.follow_up_queries, lambda one: one.query, asked)[:MAX_FOLLOW_UPS]
            identity = gap_id(own.description)
            if own.description and fresh and identity not in known:
                own_gaps.append(own.with_fields(follow_up_queries=fresh))
                asked += [one.query for one in fresh]
                known.add(identity)
            elif own.description:
                notes.append("a gap of the refiner's own without a new query was ignored")
        for item in settle_gaps(self.gap_analysis, request.gaps, request.findings, notes):
            is_settled = bool(item.answered_by or item.duplicate_of)
            proposed = [] if is_settled else item.follow_up_queries
            fresh = distinct(proposed, lambda follow_up: follow_up.query, asked)[:MAX_FOLLOW_UPS]
            asked += [follow_up.query for follow_up in fresh]  # nor may two gaps share a query
            read_further = [] if is_settled else item.read_further
            gap_analysis.append(item.with_fields(follow_up_queries=fresh, read_further=read_further))
        advice = self.iteration_recommendation
        gap_ids = {gap.id for gap in request.gaps}
        priority_gaps = [gap_id for gap_id in dict.fromkeys(advice.priority_gaps) if gap_id in gap_ids]
        return self.with_fields(
            gap_analysis=gap_analysis,
            own_gaps=own_gaps,
            iteration_recommendation=advice.with_fields(priority_gaps=priority_gaps),
            report_improvements=distinct(self.report_improvements, str)[:MAX_NOTES],
        )

    @property
    def passages(self) -> dict[str, list[int]]:
        """Return the numbers of the passages to read further, by gap."""
        return {item.gap_id: item.read_further for item in self.gap_analysis}


class RefinerResult(RefinerAnswer):
    """A refinement whose passages to read further are given as sections of sources."""

    readings: list[GapReading] = []


class ReflectInput(FindingsInput):
    """Hand-off to the supervisor: the result of a phase, what is open, and the gate's result."""

    SUBJECT = "phase"

    phase: str
    prompt: str
    metrics: dict[str, bool | int | float] = {}
    gate_valid: bool
    gate_score: float
    gate_needs: str = ""
    """What the gate of the phase requires, in words."""
    sub_queries: list[PlanNode] = []
    titles: list[str] = []
    """Titles of the pages read in this iteration; only after the gathering."""
    gaps: list[Gap] = []
    """The open gaps."""
    draft: DocumentRef | None = None
    """The report, of which headings and first sentences are shown; None before the synthesis."""


class QualityAssessment(Contract):
    """A supervisor's assessment of a phase."""

    score: Annotated[float, clamp(1, 10)] = Field(default=5.0, json_schema_extra={"minimum": 1, "maximum": 10})
    strengths: list[Annotated[str, one_line(1_000)]] = []
    weaknesses: list[Annotated[str, one_line(1_000)]] = []


GUIDED_ROLES: Final = ("planner", "analyzer", "synthesizer", "refiner")
"""Roles that a reflection may address."""


def _guided_role(word: Any) -> str:
    folded = str(word or "").strip().casefold()
    return folded if folded in GUIDED_ROLES else ""


def _to_guidance(value: Any) -> Any:
    """Read a plain text, which addresses every role, as a list."""
    if isinstance(value, str):
        if not value.strip():
            return []
        return [{"text": value}]
    return value or []


class RoleGuidance(Contract):
    """An instruction of a supervisor for one role."""

    role: Annotated[str, BeforeValidator(_guided_role)] = Field(
        default="", description="`planner`, `analyzer`, `synthesizer` or `refiner`"
    )
    text: Sentence = Field(description="one concrete instruction about this research, in one sentence")


class SupervisorAnswer(RoleAnswer):
    """A reflection on a phase."""

    action: Annotated[Action, member_or(Action, Action.PROCEED)]
    rationale: Annotated[str, one_line(1_000)] = ""
    quality_assessment: QualityAssessment = QualityAssessment()
    guidance: Annotated[list[RoleGuidance], BeforeValidator(_to_guidance)] = Field(
        default=[], description="at most one instruction for each role; none if there is nothing to change"
    )
    settled_gaps: list[SettledGap] = Field(default=[], description="gaps that are none; leave out all others")

    def fitted(self, request: ReflectInput, notes: list[str]) -> Self:
        """Keep one instruction for each role, and the known gaps that are settled by known findings or gaps."""
        guidance = list({item.role: item for item in self.guidance if item.text}.values())
        settled = settle_gaps(self.settled_gaps, request.gaps, request.findings, notes)
        settled = [item for item in settled if item.answered_by or item.duplicate_of]
        return self.with_fields(guidance=guidance, settled_gaps=settled)


REFINER: Final = RoleSpec(
    "refiner", "refine_gaps", Tier.ANALYTICAL, RefineInput, RefinerAnswer, RefinerResult,
    share=TokenShare.REFINEMENT, output_tokens=3_000, expected_output_tokens=1_500, work="refinement",
)  # fmt: skip
SUPERVISOR: Final = RoleSpec(
    "supervisor", "reflect_on_phase", Tier.SIMPLE, ReflectInput, SupervisorAnswer, SupervisorAnswer,
    share=TokenShare.REFINEMENT, output_tokens=1_024, expected_output_tokens=600,
)  # fmt: skip
