"""A turn of a conversation: start a run or attach to one, pass on what the user says, show it until it ends or asks."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from activities.reporting.references import ReportMarks
from activities.reporting.tree import CitationMark, Sentence, change_sentences, parse, write
from client.assistants.answers import StartedRun
from client.assistants.runs import Desk, offered_strategies, start_run
from client.chat.conversation import (
    AGAIN,
    OVERRULE,
    STOP,
    THREAD,
    Pointer,
    Speaker,
    Thread,
    command_of,
    read_thread,
    reply_to,
)
from client.chat.protocol import Completion, CompletionRequest, ModelId, ProtocolError, find_model, list_models
from client.cli.context import CommandContext, RunInfo
from client.cli.talk import plan_lines, tree_lines
from client.cli.thread import answer_lines, cost_words, load_thread
from client.client_errors import MessageRefused, RunClosed
from client.handle import ResearchHandle
from client.run_results import reasons_of
from client.view.console import PlainSink, follow
from client.view.words import ending_text, local_time, printable
from contracts.addresses import normalized_text
from contracts.outcome import PERSON, Event, Guidance, ResearchResult, ResearchStatus
from contracts.plan import ObjectionKind, PlanAnswer, Waiting, WaitKind
from contracts.report import QuestionThread
from contracts.request import MAX_QUERY_CHARACTERS
from contracts.texts import as_markdown
from contracts.vocabulary import Outcome, StopReason

MAX_OPEN_MESSAGES: Final = 20
"""Messages since the last answer that are considered."""
LINE_CHARACTERS = 600
LINE_BYTES = 4_000
ENDED_BY_PERSON: Final = (StopReason.APPROVAL_REJECTED, StopReason.USER_STOPPED, StopReason.USER_CANCELLED)
"""Endings without a report that are no failure."""
GOES_ON: Final = (
    "It goes on when this window is closed: ask for the answer once more to see it, or write “stop” to have the report "
    "written from what has been found."
)
SERVER_SECONDS: Final = 1.0
"""Between attempts to reach a server that is being started again."""


@dataclass(frozen=True)
class Attachment:
    """A run that answers a message, and what to say first."""

    context: CommandContext
    run: RunInfo
    opening: str
    answered: Pointer | None = None
    """The question of the run that the message has answered."""
    refusal: str = ""
    """Why the run did not take the message."""
    listing: Pointer | None = None
    """Set where the message asks for the questions of the thread: the last line of the answer."""


async def offered_models(desk: Desk) -> dict[str, ModelId]:
    """Return the models on offer by id: each allowed strategy alone and with each corpus that the operator offers."""
    settings = desk.settings
    offered = settings.serve.chat.corpora
    known: Iterable[str] = offered if offered is not None else settings.corpus
    if not settings.uses_cluster:
        searchable = await (await desk.context().stores.corpora()).searchable()
        known = [name for name in searchable if offered is None or name in offered]
    return list_models(offered_strategies(settings), sorted(known))


@dataclass(frozen=True)
class Conversation:
    """The conversation of a request."""

    desk: Desk
    request: CompletionRequest
    speaker: Speaker
    model: ModelId
    thread: Thread

    @classmethod
    async def of(cls, desk: Desk, request: CompletionRequest, speaker: Speaker) -> "Conversation":
        """Read a request. Raises `ProtocolError`."""
        model = find_model(request.model, await offered_models(desk))
        thread = read_thread(request.messages, speaker)
        return cls(desk, request, speaker, model, replace(thread, words=thread.words[-MAX_OPEN_MESSAGES:]))

    async def attach(self) -> Attachment:
        """Find the run that answers the newest message, pass the message on to it, or start it.

        The same conversation always leads to the same run. Raises `ProtocolError`, `CommandError`, `ClientError`.
        """
        context = self.desk.context()
        place = await self._place(context)
        run = place.run
        text = self.thread.words[-1]
        if run is not None and command_of(text) == THREAD:
            pointer = place.asked or Pointer(run.research_id)
            return Attachment(context, run, f"The questions of the thread of {run.research_id}.", listing=pointer)
        if run is not None and place.asked is not None:
            return await _answer(context, run, place.asked, text)
        research_id = self._id(run, [*place.begun, text])
        own = await _find(context, research_id)
        if own is not None:
            return Attachment(context, own, await _opening(own))
        if run is not None and (run.open is not None or (place.unanswered and await _is_repeated(run, text))):
            return await _tell(context, run, text)
        return await self._start(context, place, research_id)

    async def _place(self, context: CommandContext) -> "Place":
        """Find the run before the newest message: the one that the last answer names, or that later messages began."""
        place = Place()
        if self.thread.pointer is not None:
            run = await _find(context, self.thread.pointer.research_id)
            if run is not None:
                place = Place(run, asked=self.thread.pointer if self.thread.pointer.asked is not None else None)
        for words in self.thread.words[:-1]:  # messages whose answers the client does not have
            if place.asked is not None:
                place = Place(place.run, unanswered=True)
                continue
            found = await _find(context, self._id(place.run, [*place.begun, words]))
            if found is None:
                place = replace(place, begun=[*place.begun, words])
            else:
                place = Place(found, unanswered=True)
        return place

    def _id(self, run: RunInfo | None, words: list[str]) -> str:
        """Return the id of the run that these words begin after another run."""
        before = "" if run is None else run.research_id
        depth = self.request.depth
        return self.speaker.run_id(f"{self.model} {depth.value if depth else ''}", before, words)

    async def _start(self, context: CommandContext, place: "Place", research_id: str) -> Attachment:
        """Start a run on the newest message, as a follow-up of the run before if that has a report."""
        opening = ""
        with suppress(RunClosed):  # another request of this conversation has started it, and it has ended since
            opening = _started(await start_run(self.desk, await self._values(place), research_id=research_id))
        run = await context.load_run(research_id)
        return Attachment(context, run, opening or await _opening(run))

    async def _values(self, place: "Place") -> dict[str, Any]:
        """Return the request of a run. Raises `ProtocolError` for a message that is no question."""
        chat = self.desk.settings.serve.chat
        gates = {"clarify": chat.clarify, "approve": chat.approve}
        values: dict[str, Any] = {
            "query": self.thread.words[-1],
            "strategy": self.model.strategy,
            "depth": self.request.depth,
            "corpus": self.model.corpus or chat.default_corpus,
            "gates": {name: value.value for name, value in gates.items() if value is not None} or None,
            "system_prompt": self.thread.system or None,
            "context": self.thread.earlier or None,
        }
        before = place.run
        result = None
        if before is not None:
            result = await before.result()
        if command_of(values["query"]) == AGAIN and (before is not None or place.begun):
            values |= await _repeated_values(place)
        elif command_of(values["query"]):
            raise ProtocolError("there is nothing to answer or to stop: write a question in full sentences")
        elif before is not None and result is not None and result.report:
            values["follow_up_of"] = before.research_id
        length = len(values["query"])
        if length > MAX_QUERY_CHARACTERS:
            raise ProtocolError(
                f"the question has {length:,} characters, more than {MAX_QUERY_CHARACTERS:,}: shorten it; files "
                "that a chat window attaches belong into a corpus",
                param="messages",
            )
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Place:
    """What comes before the newest message of a conversation."""

    run: RunInfo | None = None
    asked: Pointer | None = None
    """The question of the run that the newest message answers; None if it answers none."""
    unanswered: bool = False
    """True if the client has no answer of the run."""
    begun: list[str] = field(default_factory=list)
    """Messages since then that began no run: one that was refused, or turns with another model."""


async def _repeated_values(place: Place) -> dict[str, Any]:
    """Return the question of the message before, or of the run before with the run that it was a follow-up of."""
    if place.begun or place.run is None:
        return {"query": place.begun[-1]}
    follow_up = None
    if place.run.resolved is not None and place.run.resolved.follow_up is not None:
        follow_up = place.run.resolved.follow_up.research_id
    return {"query": await place.run.question() or "", "follow_up_of": follow_up}


async def _find(context: CommandContext, research_id: str) -> RunInfo | None:
    """Load a run; None if there is none with this id."""
    run = await context.load_run(research_id)
    return None if run.state is None and run.handle is None else run


async def _opening(run: RunInfo) -> str:
    """Return the first lines about a run that exists already."""
    if run.open is not None:
        return f"Run {run.research_id} is going on. {GOES_ON}"
    result = await run.result()
    ended = "" if result is None else local_time(result.ended_at)
    when = f" {ended}" if ended else ""
    return f"Run {run.research_id} has ended{when}. Write “{AGAIN}” to research its question once more."


def _started(started: StartedRun) -> str:
    """Return the first lines about a new run."""
    facts = f"{started.strategy}; {started.searches}; {started.engine}; {started.egress}"
    lines = [f"Run {started.research_id}: {facts}.", started.estimate or "It makes no paid call."]
    return "\n".join(as_markdown(line, LINE_CHARACTERS, LINE_BYTES) for line in [*lines, *started.advice, GOES_ON])


# --- messages to a run -----------------------------------------------------------------------------------------------
async def _answer(context: CommandContext, run: RunInfo, asked: Pointer, text: str) -> Attachment:
    """Pass an answer on, if the run still asks what the answer is about."""
    attached = Attachment(context, run, await _opening(run))
    if run.open is None:
        return attached
    waiting = (await run.open.status()).waiting
    if waiting is None or Pointer.of_wait(run.research_id, waiting) != asked:
        if command_of(text) == STOP:
            return await _tell(context, run, text)
        return attached
    reply = reply_to(waiting, text)
    try:
        taken = await getattr(run.open, reply.method)(*reply.arguments, **reply.options)
    except MessageRefused as error:
        return replace(attached, refusal=str(error))
    except RunClosed:
        return replace(attached, run=await context.load_run(run.research_id))
    return replace(attached, opening=f"Run {run.research_id}: {taken}", answered=asked)


async def _is_repeated(run: RunInfo, text: str) -> bool:
    """Return whether a run that is over has had this message before it ended, or is about the same question."""
    command = command_of(text)
    if command:
        return command != AGAIN
    guidance = [] if run.state is None else run.state.people.guidance
    return _is_known(guidance, text) or await _is_same_question(run, text)


async def _is_same_question(run: RunInfo, text: str) -> bool:
    return normalized_text(await run.question() or "") == normalized_text(text)


def _is_known(guidance: Iterable[Guidance], text: str) -> bool:
    return any(item.origin == PERSON and item.text.strip() == text for item in guidance)


async def _tell(context: CommandContext, run: RunInfo, text: str) -> Attachment:
    """Pass on a message to a run whose answer the user does not wait for, once: a stop, or guidance."""
    attached = Attachment(context, run, await _opening(run))
    handle = run.open
    if handle is None:
        return attached
    try:
        if command_of(text) == STOP:
            return replace(attached, opening=f"Run {run.research_id}: {await handle.stop_and_report()}")
        status = await handle.status()
        is_message = not (command_of(text) or status.waiting or _is_known(status.guidance, text))
        if is_message and not await _is_same_question(run, text):
            return replace(attached, opening=f"Run {run.research_id}: {await handle.steer(text)}")
    except MessageRefused as error:
        return replace(attached, opening=f"Run {run.research_id} did not take the message: {_line(str(error))}")
    except RunClosed:
        return replace(attached, run=await context.load_run(run.research_id))
    return attached


# --- watching a run --------------------------------------------------------------------------------------------------
async def watch(attached: Attachment) -> AsyncGenerator[str | Completion, None]:
    """Yield what is under way, line by line, then the answer: the report, or what the run asks.

    Raises `ProtocolError` for a run that ended without a report, `ClientError`.
    """
    run = attached.run
    if attached.listing is not None:
        yield await _listed_thread(attached.context, run, attached.listing)
        return
    if run.open is None:
        result = await run.result()
        if result is None:
            raise ProtocolError(
                f"the run {run.research_id} was interrupted: research resume {run.research_id}", 500, "interrupted"
            )
        yield await _ended(attached.context, run, result)
        return
    async with aclosing(_follow(run.open, attached.answered)) as items:
        async for item in items:
            if isinstance(item, str):
                yield _line(item)
            elif isinstance(item, Waiting):
                yield await _asking(run.open, item, attached.refusal)
            else:
                yield await _ended(attached.context, run, item)


async def _listed_thread(context: CommandContext, run: RunInfo, pointer: Pointer) -> Completion:
    """Return the questions of the thread of a run, with how each was answered, its cost and the id of its run."""
    thread = await load_thread(context, run.research_id, context.tenant, documents=False)
    lines = [_line(f"{answer.query} — {' · '.join(answer_lines(answer))}") for answer in thread.answers]
    numbered = [f"{number}. {line}" for number, line in enumerate(lines, start=1)]
    cost = cost_words(QuestionThread.of(thread.answers).cost_usd)
    whole = f"One document with one list of sources: `research thread {run.research_id} --out thread.html`"
    return Completion("\n".join([*numbered, "", f"Together {cost}. {whole}", "", pointer.line()]))


class ProgressSink(PlainSink):
    """The lines that `watch` prints, without those that name commands of a terminal for an open question."""

    def show(self, status: ResearchStatus, news: list[Event]) -> None:
        """Write the news."""
        super().show(status, [event for event in news if not event.type.startswith("wait.")])


async def _follow(
    handle: ResearchHandle, answered: Pointer | None
) -> AsyncGenerator[str | Waiting | ResearchResult, None]:
    """Yield the lines that `watch` prints, then the first question that is not answered yet, or the result."""
    news: asyncio.Queue[str | Waiting | None] = asyncio.Queue()

    async def ask(waiting: Waiting) -> None:
        if Pointer.of_wait(handle.research_id, waiting) != answered:
            news.put_nowait(waiting)

    async def wait_for_server() -> None:
        await asyncio.sleep(SERVER_SECONDS)

    following = asyncio.create_task(follow(handle, ProgressSink(news.put_nowait), recover=wait_for_server, ask=ask))
    following.add_done_callback(lambda _: news.put_nowait(None))
    try:
        while (item := await news.get()) is not None:
            yield item
            if isinstance(item, Waiting):
                return
        yield await following
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _asking(handle: ResearchHandle, waiting: Waiting, refusal: str) -> Completion:
    """Return what a run asks, with the ways to answer; first why it did not take the last message."""
    lines = [_line(refusal), ""] if refusal else []
    if waiting.kind is WaitKind.CLARIFICATION:
        lines += ["Before anything is searched:", "", *_numbered(waiting.questions), ""]
        several = ", in one message, a line for each" if len(waiting.questions) > 1 else ""
        lines.append(f"Please answer{several}; “skip” goes on without.")
    else:
        lines += _plan_text(await handle.plan(), waiting)
    until = f"waits until {local_time(waiting.expires_at)}"
    pointer = Pointer.of_wait(handle.research_id, waiting)
    return Completion("\n".join([*lines, "", pointer.line(until)]))


def _plan_text(plan: PlanAnswer, waiting: Waiting) -> list[str]:
    tree = tree_lines(plan.nodes)
    shown = ["```text", *(line.replace("`", "'") for line in tree), "```"] if tree else []
    flat = plan_lines(plan.with_fields(sub_queries=[]) if tree else plan)
    text = [_list_line(line) for line in flat]
    ways = ["**yes** begins"]
    open_objections = [objection for objection in plan.objections if not objection.overruled]
    if open_objections and not all(objection.kind is ObjectionKind.OPINION for objection in open_objections):
        ways = []
    elif open_objections:
        words = " ".join(filter(None, [OVERRULE, waiting.phrase]))
        ways = [f"**{words}** begins although queries are called too wide"]
    elif waiting.phrase is not None:
        ways = [f"“{waiting.phrase}” begins"]
    ways += ["**no** ends it", "any other words change the plan"]
    lines = [f"The plan, version {plan.version}:", "", *text, *shown, ""]
    lines += [f"- Too wide: {_line(objection.line())}" for objection in open_objections]
    if plan.estimate:
        lines += ["", _line(plan.estimate)]
    return [*lines, "", f"Nothing has been searched yet. {', '.join(ways)}."]


def _list_line(line: str) -> str:
    """Return a line of a plan as Markdown, a list item where it begins with a dash, a label in bold."""
    if line.startswith("- "):
        return f"- {_line(line[2:])}"
    return f"\n**{_line(line[:-1])}**\n" if line.endswith(":") and " " not in line else f"{_line(line)}\n"


def _numbered(texts: Iterable[str]) -> list[str]:
    return [f"{number}. {_line(text)}" for number, text in enumerate(texts, start=1)]


def _line(text: str) -> str:
    """Return a text of a run as one line of Markdown without markup of its own."""
    return as_markdown(text, LINE_CHARACTERS, LINE_BYTES)


async def _ended(context: CommandContext, run: RunInfo, result: ResearchResult) -> Completion:
    """Return the report of a run. Raises `ProtocolError` with the reasons of one without, unless a person ended it."""
    pointer = Pointer(run.research_id)
    cost = result.usage.cost_usd
    spent = f"{cost:.2f} USD" if cost else ""
    documents = await context.report_documents(result)
    if not documents:
        reasons = "; ".join(dict.fromkeys([*reasons_of(result), *filter(None, [result.advice])]))
        text = f"{ending_text(result)}{f': {reasons}' if reasons else ''}"
        if result.stop_reason not in ENDED_BY_PERSON:
            status = 422 if result.outcome is Outcome.REFUSED else 500
            raise ProtocolError(f"{run.research_id}: {printable(text)}", status, result.stop_reason.value)
        return Completion(f"{_line(text)}\n\n{pointer.line(spent)}", usage=result.usage)
    report = json.loads(documents["json"]) if "json" in documents else None
    if report is None:
        return Completion(documents["md"].decode() + "\n" + pointer.line(spent), usage=result.usage)
    text, annotations = await asyncio.to_thread(cited_text, report)
    return Completion(f"{text}\n{pointer.line(ending_text(result), spent)}", annotations, result.usage)


def cited_text(report: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of a `report.json`, and an annotation for each citation in it.

    `start_index` and `end_index` count characters (code points) of the text, and enclose `[number]`.
    """
    blocks = parse(report["report"]["markdown"], ReportMarks())
    text = write(blocks).text
    # Written again with other numbers of the same length, a text differs where citations are, and nowhere else: numbers
    # in brackets within code or a quotation are no citations.
    other = write(change_sentences(blocks, _with_other_numbers)).text
    sources = {source["id"]: source for source in report["sources"]}
    cited = {int(citation["number"]): sources.get(citation["source_id"]) for citation in report["citations"]}
    annotations = []
    position = 0
    while (start := _first_difference(text, other, position)) is not None:
        position = text.index("]", start) + 1
        source = cited.get(int(text[start : position - 1]))
        if source is not None:
            address = printable(source.get("address") or source["url"])
            citation = {
                "url": address,
                "title": printable(source["title"]) or address,
                "start_index": start - 1,
                "end_index": position,
            }
            annotations.append({"type": "url_citation", "url_citation": citation})
    return text, annotations


def _with_other_numbers(sentence: Sentence) -> Sentence:
    inlines = [
        replace(inline, number=_other_number(inline.number))
        if isinstance(inline, CitationMark) and inline.number
        else inline
        for inline in sentence.inlines
    ]
    return replace(sentence, inlines=tuple(inlines))


def _other_number(number: int) -> int:
    """Return a number of as many digits whose first digit differs."""
    digits = str(number)
    return int(f"{int(digits[0]) % 9 + 1}{digits[1:]}")


def _first_difference(text: str, other: str, start: int) -> int | None:
    """Return the first place from `start` on where two texts of one length differ; None if they are equal."""
    return next((place for place in range(start, len(text)) if text[place] != other[place]), None)
