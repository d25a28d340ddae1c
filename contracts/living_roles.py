"""The roles of the `living` strategy: the decomposer, which plans, and the agent, which works through tool calls.

The supervisor's analyzer analyzes pages; the reporter writes passages (`contracts.report_updates`).
"""

from typing import Final, Self

from pydantic import Field

from contracts.answer_sizes import QUERY_OUTPUT_TOKENS
from contracts.base import Contract
from contracts.lenient import Paragraph, Query, Sentence, UnfitAnswer, distinct, take_first
from contracts.outlines import clean_heading, fit_outline
from contracts.plan import MAX_ASSUMPTIONS, MAX_QUESTIONS, QuestionRound
from contracts.request import Constraints
from contracts.roles import BriefedInput, RoleAnswer, RoleSpec
from contracts.tokens import TokenShare
from contracts.tool_turns import ToolTurnInput, TurnAnswer, TurnResult
from contracts.tools import MAX_CALLS, Place, ReadingArguments, SearchArguments, ToolSpec
from contracts.vocabulary import Tier


class DecomposeInput(BriefedInput):
    """Hand-off to the decomposer: the question, its constraints, and the plan to replace."""

    constraints: Constraints = Constraints()
    most_queries: int = 6
    rounds: list[QuestionRound] = []
    previous_outline: list[str] = []

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of as many queries as are asked for, and of the other lists of the plan, as much again."""
        return 2 * self.most_queries * QUERY_OUTPUT_TOKENS


class DecomposerAnswer(RoleAnswer):
    """A plan: queries, the headings of the report, open questions and assumptions."""

    brief: Paragraph = Field(
        default="", description="what the report will answer, and for whom, in one or two sentences"
    )
    title: Sentence = Field(default="", description="title of the report: its subject in at most twelve plain words")
    clarifying_questions: list[Sentence] = Field(
        default=[], description="at most three questions whose answers would change the plan; none if it is clear"
    )
    expanded_queries: list[Query] = Field(
        description="what to search for, most important first; each makes sense on its own"
    )
    outline: list[str] = Field(description="headings of the report, in order and in plain words")
    assumptions: list[Sentence] = Field(
        default=[], description="what the plan takes for granted where the question leaves something open"
    )

    def fitted(self, request: DecomposeInput, notes: list[str]) -> Self:
        """Keep distinct queries, headings and new questions. Raises `UnfitAnswer` without a query or heading."""
        queries = distinct(self.expanded_queries, str)
        if not queries:
            raise UnfitAnswer("expanded_queries: at least one query with words is needed")
        if len(queries) < len(self.expanded_queries):
            notes.append("queries that were empty or repeated were dropped")
        asked = [question for question_round in request.rounds for question in question_round.questions]
        questions = distinct(self.clarifying_questions, str, asked)
        return self.with_fields(
            title=clean_heading(self.title),
            expanded_queries=take_first(queries, request.most_queries, notes, "queries"),
            outline=fit_outline(self.outline, notes),
            clarifying_questions=take_first(questions, MAX_QUESTIONS, notes, "questions"),
            assumptions=take_first(distinct(self.assumptions, str), MAX_ASSUMPTIONS, notes, "assumptions"),
        )


DECOMPOSER: Final = RoleSpec(
    "decomposer", "decompose_query", Tier.ANALYTICAL, DecomposeInput, DecomposerAnswer, DecomposerAnswer,
    share=TokenShare.PLANNING, output_tokens=2_000, expected_output_tokens=700, work="planning",
)  # fmt: skip


MAX_RESULTS: Final = 5
"""Pages of one search shown to the agent."""
FILE_ID_CHARACTERS: Final = 12
"""Length of the hash prefix that names a file in a conversation."""
MAX_UPDATE_NOTES: Final = 8
"""Of an update that the agent orders: what a writer has room for in a medium report, a sentence or two for each."""
MAX_LAST_NOTES: Final = 12
"""Of an update at the end, from which the writer takes what the section still lacks."""
CALL_OUTPUT_TOKENS: Final = 120
"""Of a call of a tool with its purpose; real models wrote 650 tokens for a turn of eight calls."""


class WebSearchArguments(SearchArguments):
    """A search."""

    max_results: int = Field(default=MAX_RESULTS, description="pages to list", ge=1, le=MAX_RESULTS)


class FetchArguments(Contract):
    """A page to fetch."""

    page: int = Field(default=0, description="number of the page in the search results")
    place: Place = ""


class ParseArguments(ReadingArguments):
    """A fetched file to read, for the first time or for another purpose."""

    file_id: str = Field(description="file id returned by fetch_url", min_length=1, max_length=100)


class UpdateArguments(Contract):
    """A passage for one section of the report."""

    heading: str = Field(description="heading, exactly as in the outline", min_length=1, max_length=300)
    notes: list[int] = Field(default=[], description=f"numbers of notes, at most {MAX_UPDATE_NOTES}")
    purpose: str = Field(default="", description="what the passage should do, in one sentence", max_length=500)


class FinishArguments(Contract):
    """The end of the research."""

    open_questions: list[str] = Field(
        default=[],
        description="what remains open, including every query not asked and every heading still empty",
    )


WEB_SEARCH: Final = ToolSpec(
    "web_search",
    "Search. Returns numbered titles of pages that no earlier search found, with places and matching lines.",
    WebSearchArguments,
)
FETCH_URL: Final = ToolSpec(
    "fetch_url",
    "Fetch a page by its number or its place. Returns a file id, type and size. "
    f"One turn has at most {MAX_CALLS} calls of all tools together.",
    FetchArguments,
)
PARSE_CONTENT: Final = ToolSpec(
    "parse_content",
    "Have a fetched file read for a purpose. Returns numbered notes, what it leaves open, and sections not shown.",
    ParseArguments,
)
UPDATE_REPORT: Final = ToolSpec(
    "update_report",
    "Have notes written into one section of the report, as one short passage. Returns what changed.",
    UpdateArguments,
)
FINISH: Final = ToolSpec(
    "finish", "End the research once every query was asked and no section is empty.", FinishArguments
)


class LivingInput(ToolTurnInput):
    """Hand-off to the agent; the opening contains the approved plan."""

    queries: list[str] = []
    outline: list[str] = []
    assumptions: list[str] = []
    hits: list[str] = []
    """What the queries of the plan found, line by line."""
    pages_left: int = 0
    turns_left: int = 0
    unasked: list[str] = []
    """Queries of the plan that were not searched yet. This and the fields below are for the scripted fallback; no
    prompt shows them."""
    found: list[int] = []
    """Numbers of pages not fetched yet, best first."""
    files: list[str] = []
    """Ids of fetched files not read yet."""
    unwritten: dict[str, list[int]] = {}
    """Notes not in the report yet, by the heading they fit."""
    open_questions: list[str] = []

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of as many calls as a turn may have."""
        return MAX_CALLS * CALL_OUTPUT_TOKENS


LIVING_AGENT: Final = RoleSpec(
    "living_agent", "take_living_turn", Tier.ANALYTICAL, LivingInput, TurnAnswer, TurnResult,
    output_tokens=1_500, expected_output_tokens=300, work="research",
    tools=(WEB_SEARCH, FETCH_URL, PARSE_CONTENT, UPDATE_REPORT, FINISH),
)  # fmt: skip
"""Decides what to search, read and write; it never sees the text of a page."""
