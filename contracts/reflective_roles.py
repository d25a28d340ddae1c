"""The roles of the `reflective` strategy: coordinator, investigator, step planner, researcher, reflector, responder."""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, JsonValue

from contracts.base import Contract
from contracts.gaps import FurtherReading, GapReading, SettledGap, settle_gaps
from contracts.lenient import (
    Paragraph,
    Query,
    Sentence,
    UnfitAnswer,
    distinct,
    max_lines,
    member_or,
    one_line,
    take_first,
    to_line,
)
from contracts.plan import MAX_QUESTIONS
from contracts.request import Depth, Mode, Turn
from contracts.resolved import CorpusSnapshot
from contracts.roles import (
    BriefedInput,
    ClarifyInput,
    GapsInput,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SynthesizerAnswer,
    SynthesizerResult,
    WriteInput,
)
from contracts.tokens import TokenShare
from contracts.vocabulary import NodeStatus, Tier

ROUTES: Final[list[JsonValue]] = [mode.value for mode in Mode if mode is not Mode.AUTO]
"""Modes that a coordinator may choose."""


class Complexity(StrEnum):
    """Amount of research that a question needs."""

    SIMPLE = "simple"
    MODERATE = "moderate"
    COMPLEX = "complex"


class StepKind(StrEnum):
    """Kind of step: a search, or an analysis of earlier findings."""

    RESEARCH = "research"
    ANALYSIS = "analysis"


class ReflectionDecision(StrEnum):
    """Decision after a step."""

    CONTINUE = "continue"
    ADJUST = "adjust"
    COMPLETE = "complete"


class ClassifyInput(BriefedInput, ClarifyInput):
    """Hand-off to the coordinator: the question and at most five earlier turns."""

    may_answer: bool = True
    """True if a question that needs no research may be answered directly."""


class CoordinatorAnswer(RoleAnswer):
    """A classification; unreadable values count as `moderate`, `deep` and `auto`."""

    complexity: Annotated[Complexity, member_or(Complexity, Complexity.MODERATE)] = Complexity.MODERATE
    route: Annotated[Mode, member_or(Mode, Mode.DEEP)] = Field(default=Mode.DEEP, json_schema_extra={"enum": ROUTES})
    recommended_depth: Annotated[Depth, member_or(Depth, Depth.AUTO)] = Depth.AUTO
    is_ambiguous: bool = False
    clarifying_questions: list[Sentence] = []
    brief: Paragraph = Field(
        default="", description="what earlier turns and instructions add to the question, in your own words"
    )
    reasoning: Annotated[str, one_line(400)] = ""

    def fitted(self, request: ClassifyInput, notes: list[str]) -> Self:
        """Keep new questions and an allowed route. Raises `UnfitAnswer` if a required question is missing."""
        route = self.route
        if route is Mode.AUTO or (route is Mode.DIRECT and not request.may_answer):
            notes.append(f"the route {route.value}, which is not open, was read as deep")
            route = Mode.DEEP
        asked = [question for question_round in request.rounds for question in question_round.questions]
        questions = distinct(self.clarifying_questions, str, asked)[:MAX_QUESTIONS]
        if request.required and not questions:
            raise UnfitAnswer("clarifying_questions: the person must be asked: at least one question is needed")
        ambiguous = self.is_ambiguous or request.required
        return self.with_fields(route=route, clarifying_questions=questions, is_ambiguous=ambiguous)

    @property
    def questions(self) -> list[str]:
        """Return the questions to the person; none if the query is unambiguous."""
        if not self.is_ambiguous:
            return []
        return self.clarifying_questions

    @property
    def reason(self) -> str:
        """Return the reasoning."""
        return self.reasoning


class InvestigateInput(BriefedInput):
    """Hand-off to the background investigator."""

    most_queries: int = 3


class QueriesAnswer(RoleAnswer):
    """Searches proposed by an investigator or a researcher: distinct, new, within the limit."""

    queries: list[Query] = Field(
        default=[], description="each can be searched for on its own; empty if nothing more is needed"
    )
    reasoning: str = ""

    def fitted(self, request: "InvestigateInput | ResearchStepInput", notes: list[str]) -> Self:
        """Keep new queries; the investigator and a step's first turn get at least one."""
        asked = list[str]()
        fallback = [request.query]
        if isinstance(request, ResearchStepInput):
            asked = request.asked
            fallback = [request.description, request.step_title] if request.turn == 1 else []
        queries = take_first(distinct(self.queries, str, asked), request.most_queries, notes, "queries")
        fresh = distinct([to_line(text, 400) for text in fallback], str, asked)[:1]
        return self.with_fields(queries=queries or fresh)


class StepSummary(Contract):
    """A step, for the prompts of planner and reflector."""

    title: str
    status: NodeStatus = NodeStatus.PENDING
    observations: list[str] = []
    """Statements of its best findings, for the planner."""
    queries: list[str] = []
    """Ids of its sub-queries."""
    finding_count: int = 0
    """Number of findings that answer it, including those of earlier steps."""


class PlanStepsInput(BriefedInput):
    """Hand-off to the step planner: background hits, finished steps, and the number of steps to add.

    A model sees outside text here, so its prompt has the coordinator's brief instead of earlier turns and the
    request's own instructions. Only rules, which no page can steer, read those.
    """

    brief: str = ""
    steps: list[StepSummary] = []
    feedback: str = ""
    """Reason for adjusting the plan; empty for the first plan."""
    suggested_changes: list[str] = []
    fewest: int = 1
    most: int = 3


class ProposedStep(Contract):
    """A step proposed by a planner."""

    title: Annotated[str, one_line(200)] = Field(description="the topic, in the form “Research …”")
    description: Annotated[str, one_line(500)] = Field(default="", description="what the step must find out")
    step_type: Annotated[StepKind, member_or(StepKind, StepKind.RESEARCH)] = StepKind.RESEARCH
    needs_search: bool = True
    searches: list[Annotated[str, one_line(500)]] = Field(
        default=[], description="of a step that must search: one or two queries to begin with"
    )


class StepPlannerAnswer(RoleAnswer):
    """New steps; finished ones do not change."""

    title: Annotated[str, one_line(200)] = ""
    thought: Annotated[str, one_line(2_000)] = Field(default="", description="how the steps lead to an answer")
    has_enough_context: bool = False
    steps: list[ProposedStep] = []

    def fitted(self, request: PlanStepsInput, notes: list[str]) -> Self:
        """Keep distinct new steps. Raises `UnfitAnswer` for a first plan without a search, as nothing is read yet."""
        done = [step.title for step in request.steps]
        steps = [_complete_step(step) for step in self.steps]
        fresh = distinct(steps, lambda step: step.title, done)
        if len(fresh) < len(self.steps):
            notes.append("steps that were empty or done already were dropped")
        if not fresh and not request.steps:
            raise UnfitAnswer("steps: at least one step with a title is needed")
        fresh = take_first(fresh, request.most, notes, "steps")
        if not request.steps and all(step.step_type is StepKind.ANALYSIS for step in fresh):
            raise UnfitAnswer("steps: nothing has been read yet: at least one step must search (needs_search)")
        return self.with_fields(steps=fresh)


def _complete_step(step: ProposedStep) -> ProposedStep:
    """Fill an empty title or description from the other, and turn a step without a search into an analysis."""
    kind = step.step_type if step.needs_search else StepKind.ANALYSIS
    title = step.title or step.description[:200]
    return step.with_fields(
        title=title, description=step.description or title, step_type=kind, needs_search=kind is StepKind.RESEARCH
    )


class ResearchStepInput(RoleInput):
    """Hand-off to the researcher of one step."""

    SUBJECT = "step_title"

    step_title: str = ""
    description: str = ""
    corpus: CorpusSnapshot | None = None
    web: bool = False
    most_queries: int = 2
    asked: list[str] = []
    """Every earlier query of the run."""
    observations: list[str] = []
    """Findings of this step so far; empty in its first turn."""
    titles: list[str] = []
    """Titles of the pages read in this step."""
    pages: list[str] = []
    """Titles of found but unread pages, for the model to choose from."""
    turn: int = 1


class ResearcherAnswer(QueriesAnswer):
    """Searches, and found pages to read."""

    pages: list[int] = Field(default=[], description="numbers of the listed pages that are worth reading")

    def fitted(self, request: "InvestigateInput | ResearchStepInput", notes: list[str]) -> Self:
        """Keep new queries, and numbers of listed pages."""
        pages: list[int] = []
        if isinstance(request, ResearchStepInput):
            pages = [number for number in dict.fromkeys(self.pages) if 0 < number <= len(request.pages)]
        return super().fitted(request, notes).with_fields(pages=pages)


class ReflectOnStepInput(GapsInput):
    """Hand-off to the reflector: the plan with its statuses, the findings, what is open, and the remaining steps."""

    steps: list[StepSummary] = []
    pending: list[str] = []
    source_titles: list[str] = []
    completed: int = 0
    fewest_steps: int = 1
    may_adjust: bool = True

    def subject(self) -> str:
        """Return the title of the step just finished."""
        return next((step.title for step in reversed(self.steps) if step.status is NodeStatus.COMPLETED), "")


class ReflectorAnswer(RoleAnswer):
    """A decision; an unreadable one counts as `continue`, which is harmless."""

    decision: Annotated[ReflectionDecision, member_or(ReflectionDecision, ReflectionDecision.CONTINUE)]
    reasoning: Paragraph = ""
    suggested_changes: Annotated[list[Paragraph], BeforeValidator(lambda value: value or []), max_lines(5)] = []
    settled_gaps: list[SettledGap] = Field(default=[], description="gaps that are none; leave out all others")
    read_further: list[FurtherReading] = Field(
        default=[], description="open gaps that listed passages of pages already read answer; usually none"
    )

    def fitted(self, request: ReflectOnStepInput, notes: list[str]) -> Self:
        """Keep the known gaps that are settled by known findings or gaps, and those to read further for."""
        settled = settle_gaps(self.settled_gaps, request.gaps, request.findings, notes)
        settled = [settlement for settlement in settled if settlement.answered_by or settlement.duplicate_of]
        still_open = {gap.id for gap in request.gaps} - {settlement.gap_id for settlement in settled}
        further = distinct(
            (reading for reading in self.read_further if reading.gap_id in still_open), lambda one: one.gap_id
        )
        return self.with_fields(settled_gaps=settled, read_further=further)

    @property
    def passages(self) -> dict[str, list[int]]:
        """Return the numbers of the passages to read further, by gap."""
        return {item.gap_id: item.passages for item in self.read_further}


class ReflectorResult(ReflectorAnswer):
    """A decision whose passages to read further are given as sections of sources."""

    readings: list[GapReading] = []


class RespondInput(WriteInput):
    """Hand-off to the responder, which answers without research or citations."""

    context: list[Turn] = []


COORDINATOR: Final = RoleSpec(
    "coordinator", "classify_question", Tier.SIMPLE, ClassifyInput, CoordinatorAnswer, CoordinatorAnswer,
    share=TokenShare.PLANNING, output_tokens=1_000, expected_output_tokens=400, work="coordination",
)  # fmt: skip
INVESTIGATOR: Final = RoleSpec(
    "investigator", "investigate_background", Tier.SIMPLE, InvestigateInput, QueriesAnswer, QueriesAnswer,
    share=TokenShare.PLANNING, output_tokens=600, expected_output_tokens=200, work="background",
)  # fmt: skip
STEP_PLANNER: Final = RoleSpec(
    "step_planner", "plan_steps", Tier.ANALYTICAL, PlanStepsInput, StepPlannerAnswer, StepPlannerAnswer,
    share=TokenShare.PLANNING, output_tokens=3_000, expected_output_tokens=1_000, work="planning",
)  # fmt: skip
RESEARCHER: Final = RoleSpec(
    "researcher", "choose_searches", Tier.ANALYTICAL, ResearchStepInput, ResearcherAnswer, ResearcherAnswer,
    output_tokens=1_000, expected_output_tokens=250, work="research",
)  # fmt: skip
REFLECTOR: Final = RoleSpec(
    "reflector", "reflect_on_step", Tier.SIMPLE, ReflectOnStepInput, ReflectorAnswer, ReflectorResult,
    share=TokenShare.REFINEMENT, output_tokens=1_024, expected_output_tokens=400, work="reflection",
)  # fmt: skip
RESPONDER: Final = RoleSpec(
    "responder", "answer_directly", Tier.COMPLEX, RespondInput, SynthesizerAnswer, SynthesizerResult,
    share=TokenShare.SYNTHESIS, output_tokens=4_000, expected_output_tokens=800, work="answer", plain_text=True,
)  # fmt: skip
ROLES: Final = (COORDINATOR, INVESTIGATOR, STEP_PLANNER, RESEARCHER, REFLECTOR, RESPONDER)
