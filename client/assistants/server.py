"""The server of the protocol: tools and resources, and one line with a remedy for whatever fails."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import structlog
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError, UnexpectedToolError
from mcp.types import CallToolResult, InputRequiredResult, Resource, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from client.assistants.answers import Answer, Document, MessageReply, ReportPage, Results, RunState, StartedRun
from client.assistants.library import SCHEME, DocumentLibrary
from client.assistants.runs import Desk, Part, follow_up, observe, read_page, start_run
from client.assistants.tasks import RunTasks
from client.cli.output import CommandError, explain, quote
from client.cli.talk import running_handle
from client.client_errors import ClientError
from client.handle import ResearchHandle
from contracts.parse_request import error_lines
from contracts.request import MAX_QUERY_CHARACTERS
from contracts.strategies import list_selectable
from contracts.texts import join_alternatives, shorten
from providers.errors import ProviderError
from workers.resolution_inputs import product_version

WAIT_SECONDS: Final = 45
"""Longest wait of one call; hosts cut a call at 60 s."""
LISTED_RUNS: Final = 50

INSTRUCTIONS: Final = (
    "Deep research that goes on without you: start_research returns an id at once, research_status waits for news, "
    "read_report reads the report page by page. A run takes minutes and outlives this conversation: with its id, any "
    "conversation can go on. Every citation of a report leads to an archived passage; signs mark doubtful statements. "
    "{cost} search and fetch cost nothing: use them first, they find what earlier runs have read."
)

Id = Annotated[str, Field(description="id of the run; `last` is the newest", min_length=1, max_length=128)]
Question = Annotated[str, Field(description="the question, in full sentences", max_length=MAX_QUERY_CHARACTERS)]
Cap = Annotated[float | None, Field(description="end the run at this cost in US dollars; only below the cap", ge=0)]
Text = Annotated[str, Field(min_length=1, max_length=2_000)]

# The protocol's result, with the schema of its structured content.
Started: TypeAlias = Annotated[CallToolResult, StartedRun]
State: TypeAlias = Annotated[CallToolResult, RunState]
Page: TypeAlias = Annotated[CallToolResult, ReportPage]
Reaction: TypeAlias = Annotated[CallToolResult, MessageReply]
Found: TypeAlias = Annotated[CallToolResult, Results]
Fetched: TypeAlias = Annotated[CallToolResult, Document]

STRATEGY: Final = f"{join_alternatives([each.name for each in list_selectable()])}; default: supervisor"

COMMAND: Final = re.compile("`research ([a-z]+)[^`]{0,200}`")
TOOLS_OF_COMMANDS: Final = {
    "list": "search, which finds finished runs",
    "report": "read_report",
    **dict.fromkeys(("status", "watch"), "research_status"),
    "plan": "research_status, which shows it",
    "approve": "approve_plan",
    **dict.fromkeys(("answer", "reply"), "answer_questions"),
    **{name: name for name in ("steer", "stop")},
}
"""What an assistant has in place of a command that a message names."""
INVALID: Final = "invalid request:"

logger = structlog.get_logger(__name__)


class AssistantServer(MCPServer[Any]):
    """The server whose failures are single lines, and whose resources are the reports of finished runs."""

    def __init__(self, desk: Desk) -> None:
        cap = desk.highest_cap()
        ends = "no cap is set"
        if cap is not None:
            ends = f"a run ends at {cap:.2f} US dollars at most, which you cannot raise"
        cost = f"Only start_research and ask_follow_up cost money, if a model is configured: {ends}."
        instructions = INSTRUCTIONS.format(cost=cost)
        super().__init__(
            "research",
            "Deep research",
            instructions=instructions,
            version=product_version(),
            extensions=[RunTasks(desk, _explain)],
        )
        self._desk = desk
        self._library = DocumentLibrary()
        tools = Tools(desk, self._library).listed()
        self._arguments = {tool.__name__: list(inspect.signature(tool).parameters) for tool in tools}
        for tool, annotations in tools.items():
            description = (inspect.getdoc(tool) or "").replace("{cost}", cost)
            self.add_tool(tool, description=description, annotations=annotations)
        self.resource(f"{SCHEME}{{research_id}}/report.md", mime_type="text/markdown")(self.report)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; a failure is a result with one line: the problem, then the remedy."""
        try:
            self._require_known(name, arguments)
            return await super().call_tool(name, arguments, context)
        except UnexpectedToolError as error:
            message = _explain(error.__cause__, name)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                message = "; ".join(error_lines(cause))
            else:
                message = str(error)
        return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)

    def _require_known(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise `ToolError` for an argument that the tool does not have: a misspelt cap must not be taken for none."""
        known = self._arguments.get(name)
        unknown = []
        if known is not None:
            unknown = [quote(argument) for argument in arguments if argument not in known]
        if unknown:
            raise ToolError(f"{name} has no argument {join_alternatives(unknown[:3])}: it has {', '.join(known or ())}")

    async def list_resources(self) -> list[Resource]:
        """List the reports of the newest finished runs."""
        sessions = await self._desk.context().sessions()
        finished = [session for session in sessions if session.status in ("completed", "partial")][:LISTED_RUNS]
        return [
            Resource(
                uri=f"{SCHEME}{session.research_id}/report.md",
                name=session.research_id,
                title=shorten(session.query, 100),
                description=f"report, {session.status}, {session.saved_at[:10]}",
                mime_type="text/markdown",
            )
            for session in finished
        ]

    async def report(self, research_id: str) -> str:
        """Read the whole report of a finished run."""
        try:
            page = await read_page(self._desk, research_id, "report", 1, size=None)
        except (CommandError, ClientError, ProviderError) as error:
            raise ResourceNotFoundError(_explain(error, "report")) from None
        return page.content


def _explain(error: BaseException | None, name: str) -> str:
    """Return a failure in one line; an unforeseen one is logged."""
    explained = explain(error) if isinstance(error, Exception) else None
    if explained is None:
        logger.error("assistants.failed", tool=name, exc_info=error)
        return f"internal error ({type(error).__name__}): see the log of `research serve` or `research mcp`"
    lines = [line.strip() for line in explained[0].splitlines() if line.strip()]
    text = "; ".join(lines[1:] if lines[0] == INVALID and lines[1:] else lines)
    return _with_tools(text)


def _with_tools(text: str) -> str:
    """Return a message with tools in place of the commands that it names, and an argument in place of a limit."""
    with_tools = COMMAND.sub(lambda match: TOOLS_OF_COMMANDS.get(match[1], match[0]), text)
    return with_tools.replace("limits.max_cost_usd", "max_cost_usd")


def _result(answer: Answer) -> CallToolResult:
    """Return an answer as a result of the protocol."""
    content = TextContent(type="text", text=answer.as_text())
    return CallToolResult(content=[content], structured_content=answer.model_dump(mode="json"))


READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
STARTS: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)
CHANGES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
Tool: TypeAlias = Callable[..., Awaitable[CallToolResult]]
Method = TypeVar("Method", bound=Tool)
ANNOTATIONS: Final[dict[str, ToolAnnotations]] = {}
"""What each tool does to the world, by its name."""


def tool(annotations: ToolAnnotations) -> Callable[[Method], Method]:
    """Make a method of `Tools` a tool."""

    def register(method: Method) -> Method:
        ANNOTATIONS[method.__name__] = annotations
        return method

    return register


class Tools:
    """The tools of one desk; their docstrings are what an assistant reads."""

    def __init__(self, desk: Desk, library: DocumentLibrary) -> None:
        self._desk = desk
        self._library = library

    def listed(self) -> dict[Tool, ToolAnnotations]:
        """Return every tool with what it does to the world, in the order of their use."""
        return {getattr(self, name): annotations for name, annotations in ANNOTATIONS.items()}

    @tool(STARTS)
    async def start_research(
        self,
        question: Question,
        corpus: Annotated[str | None, Field(description="name of a collection of documents to search")] = None,
        web: Annotated[bool | None, Field(description="search the web; default: only without a corpus")] = None,
        strategy: Annotated[str | None, Field(description=STRATEGY, max_length=64)] = None,
        depth: Annotated[Literal["light", "medium", "extended"] | None, Field(description="default: medium")] = None,
        approval: Annotated[bool | None, Field(description="wait until the user has approved the plan")] = None,
        max_cost_usd: Cap = None,
    ) -> Started:
        """Start a research run on a question; it returns at once with an id, an estimate and the cap on its cost.

        {cost} Do not start a second run on the same question: call research_status with the id.
        """
        values = {"query": question, "corpus": corpus, "web": web, "strategy": strategy, "depth": depth}
        gates = {} if approval is None else {"gates": {"approve": "plan" if approval else "none"}}
        given = {name: value for name, value in values.items() if value is not None}
        return _result(await start_run(self._desk, given | gates, max_cost_usd))

    @tool(STARTS)
    async def ask_follow_up(self, research_id: Id, question: Question, max_cost_usd: Cap = None) -> Started:
        """Start a run on a follow-up question; the sources of the earlier run are considered first.

        Strategy, corpus and web are those of the earlier run. {cost}
        """
        return _result(await follow_up(self._desk, research_id, {"query": question}, max_cost_usd))

    @tool(READS)
    async def research_status(
        self,
        research_id: Id,
        seen: Annotated[str | None, Field(description="`seen` of the last answer", max_length=200)] = None,
        wait_seconds: Annotated[int, Field(description="longest wait for news", ge=0, le=WAIT_SECONDS)] = WAIT_SECONDS,
    ) -> State:
        """Wait for news of a run, at most 45 s, and return its state and what to call next. It costs nothing.

        It answers at once if the run is over or waits for the user. Call it again until the run is over.
        """
        return _result(await observe(self._desk, research_id, seen, wait_seconds))

    @tool(READS)
    async def read_report(
        self,
        research_id: Id,
        part: Annotated[
            Part,
            Field(description="the text, the cited sources, each claim with its verdict, or the thread's questions"),
        ] = "report",
        page: Annotated[int, Field(description="pages have at most 20 kB", ge=1, le=100_000)] = 1,
    ) -> Page:
        """Read a page of a report; of a run that is going on, its draft. It costs nothing.

        Numbers in brackets cite sources. Signs after statements are verdicts: ± partly supported, ✗ unsupported,
        ≠ contradicted, ○ not decided, – not checked.
        """
        return _result(await read_page(self._desk, research_id, part, page))

    @tool(READS)
    async def search(self, query: Annotated[Text, Field(description="words to look for")]) -> Found:
        """Find documents in the corpora, pages that runs have archived, and finished reports. It costs nothing.

        It searches what is stored here, not the web. Pass an id to fetch.
        """
        return _result(await self._library.search(self._desk.context(), query))

    @tool(READS)
    async def fetch(self, id: Annotated[Text, Field(description="id of a result of search")]) -> Fetched:  # noqa: A002
        """Read a document that search has found. It costs nothing; long ones have pages, named in the metadata."""
        return _result(await self._library.fetch(self._desk.context(), id))

    @tool(CHANGES)
    async def approve_plan(
        self,
        research_id: Id,
        version: Annotated[int, Field(description="the version that the user has seen", ge=1)],
        phrase: Annotated[str | None, Field(description="what the user wrote, if a phrase is required")] = None,
    ) -> Reaction:
        """Approve the plan of a run, only after the user has seen it and has agreed; the searches then begin."""
        return _result(await self._send(research_id, lambda handle: handle.approve_plan(version, phrase)))

    @tool(CHANGES)
    async def answer_questions(
        self,
        research_id: Id,
        answers: Annotated[
            list[str], Field(description='one for each question, in order; "" skips one', max_length=20)
        ],
    ) -> Reaction:
        """Pass on the user's answers to the open questions of a run or of its plan."""
        return _result(await self._send(research_id, lambda handle: handle.answer(answers)))

    @tool(CHANGES)
    async def steer(
        self, research_id: Id, text: Annotated[Text, Field(description="what the run should do")]
    ) -> Reaction:
        """Guide a running run, or say what should be different in a plan that waits: another version is made."""
        return _result(await self._send(research_id, lambda handle: handle.steer(text), "noted for the next phase"))

    @tool(CHANGES)
    async def stop(self, research_id: Id) -> Reaction:
        """End the searches of a run: it writes its report from what it has found."""
        return _result(
            await self._send(research_id, lambda handle: handle.stop_and_report(), "the report is being written")
        )

    async def _send(
        self, research_id: str, action: Callable[[ResearchHandle], Awaitable[str]], default: str = ""
    ) -> MessageReply:
        """Send a message to a run that is going on."""
        context = self._desk.context()
        await self._desk.client(context)
        handle = await running_handle(context, research_id)
        reply = _with_tools(await action(handle) or default)
        following = f'call research_status with research_id "{handle.research_id}"'
        return MessageReply(research_id=handle.research_id, reply=reply, next=following)
