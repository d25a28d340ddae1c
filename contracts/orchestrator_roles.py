"""The roles of the `orchestrator` strategy: intake, outliner, orchestrator and agent.

Orchestrator, agent and intake call tools, which the workflow executes; the other roles are the supervisor's.
"""

from typing import Annotated, Any, Final, Self

from pydantic import Field

from contracts.base import Contract
from contracts.lenient import Paragraph, Sentence, UnfitAnswer, distinct, one_line, take_first
from contracts.resolved import CorpusSnapshot
from contracts.roles import BriefedInput, ClarifyInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.tool_turns import ToolTurnInput, TurnAnswer, TurnResult
from contracts.tools import NoArguments, Place, ReadingArguments, SearchArguments, ToolSpec
from contracts.vocabulary import Tier


class AnsweredPoint(Contract):
    """A point that a report left open and that statements of the reports answer."""

    point: int = Field(description="number of the open point")
    documents: list[int] = Field(
        default=[], description="numbers of the documents behind the statements that answer it"
    )


ANSWERED: Final[Any] = Field(
    default=[], description="open points of earlier reports that statements of the reports by now answer; usually none"
)


class ReportArguments(Contract):
    """The end of the research."""

    answered: list[AnsweredPoint] = ANSWERED


class AgentArguments(Contract):
    """A task for an agent."""

    task: str = Field(
        description="everything the agent will know: name the subject and the information to find, in self-contained "
        "sentences",
        min_length=1,
        max_length=4_000,
    )
    searches: list[Annotated[str, one_line(500)]] = Field(
        default=[],
        description="one to three short queries to begin with, from several angles, in the words that documents use; "
        "they are searched for before the agent's first turn",
    )
    steps: list[int] = Field(default=[], description="numbers of the plan's steps that it serves")
    answered: list[AnsweredPoint] = ANSWERED


class ThinkArguments(Contract):
    """A thought."""

    reasoning: str = Field(description="what is known, what is missing, what comes next", min_length=1)


class AskArguments(Contract):
    """Questions to the person."""

    questions: list[Sentence] = Field(description="one to three short questions, each about one thing", min_length=1)


class OpenArguments(ReadingArguments):
    """A page to read, for the first time or for another purpose."""

    index: int = Field(default=0, description="number of the page in the search results")
    place: Place = ""


class AgentReportArguments(Contract):
    """The end of an agent's work."""

    open_questions: list[str] = Field(default=[], description="parts of the task that remain open")
    nothing_on: list[str] = Field(
        default=[],
        description="parts of the task on which pages that you had read for them say nothing, each with these pages",
    )


RESEARCH_AGENT: Final = ToolSpec(
    "research_agent",
    "Assign one task to one agent, which knows nothing else. Several calls in one turn run in parallel.",
    AgentArguments,
)
ORCHESTRATOR_REPORT: Final = ToolSpec(
    "generate_report",
    "End the research. The final report is written from everything the agents found.",
    ReportArguments,
)
THINK: Final = ToolSpec(
    "think_tool", "Think before the next step. Call it alone in its turn; nothing is looked up.", ThinkArguments
)
GENERATE_PLAN: Final = ToolSpec(
    "generate_plan", "Continue to the plan: the question can be researched as it is.", NoArguments
)
ASK_PERSON: Final = ToolSpec(
    "ask_person", "Ask the person first, because two readers would look for different things.", AskArguments
)
SEARCH: Final = ToolSpec("search", "Search. Returns numbered titles with places and matching lines.", SearchArguments)
OPEN_PAGE: Final = ToolSpec(
    "open_page",
    "Have a found page read for a purpose. Returns notes, what the page leaves open, and sections not shown.",
    OpenArguments,
)
AGENT_REPORT: Final = ToolSpec(
    "generate_report", "End your work. Your notes become the report, each with its passage.", AgentReportArguments
)


class IntakeInput(ToolTurnInput, ClarifyInput):
    """Hand-off to the intake: the question, and earlier questions to the person."""


class OutlineInput(BriefedInput):
    """Hand-off to the outliner."""

    most: int = 6


class OutlinedStep(Contract):
    """A step of a plan, proposed by an outliner."""

    step: Annotated[str, one_line(400)] = Field(description="what to find out, in one sentence that names the subject")
    facet: Annotated[str, one_line(60)] = Field(default="", description="the aspect it covers, one or two words")


class OutlinerAnswer(RoleAnswer):
    """A plan of distinct steps."""

    approach: Paragraph = Field(default="", description="how the steps lead to an answer, in one or two sentences")
    steps: list[OutlinedStep]

    def fitted(self, request: OutlineInput, notes: list[str]) -> Self:
        """Keep distinct steps within the limit. Raises `UnfitAnswer` if there are none."""
        steps = distinct(self.steps, lambda step: step.step)
        if not steps:
            raise UnfitAnswer("steps: at least one step is needed")
        return self.with_fields(steps=take_first(steps, request.most, notes, "steps"))


class OrchestrateInput(ToolTurnInput):
    """Hand-off to the orchestrator: the plan in its opening, the agents' findings as answers to its calls."""

    approach: str = ""
    steps: list[str] = []
    corpus: CorpusSnapshot | None = None
    web: bool = False
    """True if the web is searched."""
    at_once: int = 3
    cycles: int = 7
    """Number of turns in which it may start agents."""
    searches_of_agent: int = 0
    pages_of_agent: int = 0
    """What one agent may do for its task; 0: not named in the prompt."""
    readings_left: int | None = None
    """About how many pages agents can have read with what is left of the limits; None: no limit counts that."""
    reasons: bool = False
    """True if the model reasons on its own, so it gets no think tool."""
    unserved: list[int] = []
    """Steps, from 1, without an agent. For the scripted fallback; no prompt shows them."""


class WorkInput(ToolTurnInput):
    """Hand-off to an agent: its task is the query."""

    searches_left: int = 0
    pages_left: int = 0
    readings_left: int | None = None
    """Readings that the agent's part of the budget pays for, if these are fewer than the pages that it may open."""
    reasons: bool = False
    earlier: list[str] = []
    """In the opening of an agent that goes on with its task: what it had read and noted, line by line."""
    hits: list[str] = []
    """In the opening: what the searches that came with the task found, line by line."""
    searches_waiting: list[str] = []
    """In the opening: searches that came with the task and were not made."""
    found: list[tuple[int, int]] = []
    """Number and rank of each page not opened yet. This and the fields below are for the scripted fallback."""
    searches: int = 0
    open_gaps: list[str] = []


INTAKE: Final = RoleSpec(
    "intake", "take_in_question", Tier.SIMPLE, IntakeInput, TurnAnswer, TurnResult,
    share=TokenShare.PLANNING, output_tokens=800, expected_output_tokens=200, work="clarification",
    tools=(GENERATE_PLAN, ASK_PERSON),
)  # fmt: skip
"""Calls one of its tools; plain text counts as one question to the person."""
OUTLINER: Final = RoleSpec(
    "outliner", "outline_research", Tier.ANALYTICAL, OutlineInput, OutlinerAnswer, OutlinerAnswer,
    share=TokenShare.PLANNING, output_tokens=2_000, expected_output_tokens=500, work="planning",
)  # fmt: skip
ORCHESTRATOR: Final = RoleSpec(
    "orchestrator", "orchestrate", Tier.COMPLEX, OrchestrateInput, TurnAnswer, TurnResult,
    output_tokens=1_024, expected_output_tokens=400, work="orchestration",
    tools=(RESEARCH_AGENT, ORCHESTRATOR_REPORT, THINK),
)  # fmt: skip
AGENT: Final = RoleSpec(
    "agent", "work_on_task", Tier.ANALYTICAL, WorkInput, TurnAnswer, TurnResult,
    output_tokens=1_000, expected_output_tokens=250, work="research", tools=(SEARCH, OPEN_PAGE, AGENT_REPORT, THINK),
)  # fmt: skip
ROLES: Final = (INTAKE, OUTLINER, ORCHESTRATOR)
