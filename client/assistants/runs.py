"""Runs for an assistant: started, observed and read through server and stores; nothing is remembered."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

from client.assistants.answers import PAGE_BYTES, Asked, ReportPage, RunState, StartedRun, pages_of
from client.cli.context import CommandContext, RunInfo, Stores, new_id
from client.cli.options import RunOptions
from client.cli.output import CommandError
from client.cli.preflight import build_request, is_gone
from client.cli.read import load_documents
from client.cli.reports import VERDICT_LABELS
from client.cli.run import follow_up_options
from client.cli.talk import plan_lines, tree_lines
from client.cli.thread import answer_lines, load_thread
from client.cli.watch import find_status
from client.client_errors import ClientError, PreviewRefused
from client.handle import ResearchClient
from client.run_results import reasons_of
from client.view.words import elapsed_at, ending_text, engine_text, event_lines, local_time, printable, usage_text
from contracts.ceilings import Ceiling
from contracts.names import CORPUS_PROVIDER, SERVER_PREFIX, WORKFLOWS_QUEUE
from contracts.outcome import Event, Mark, ResearchResult, ResearchStatus
from contracts.plan import Waiting, WaitKind
from contracts.presets import highest_limits
from contracts.report import VERDICT_SIGNS
from contracts.request import Depth
from contracts.resolved import ResolvedResearch
from contracts.strategies import list_selectable
from contracts.tenants import DEFAULT_TENANT
from contracts.texts import plural
from contracts.vocabulary import StopReason
from workers.settings.loading import Settings
from workers.temporal import namespace_of
from workers.tenants import tenant_here

Part = Literal["report", "sources", "verdicts", "thread"]

DEPTHS: Final = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
POLL_SECONDS: Final = 1.0
NEWS: Final = 6
"""Events that a state shows."""
MAX_EVENT_PAGES: Final = 4
MARKS: Final = {Mark.WAITING: "[ ]", Mark.RUNNING: "[>]", Mark.DONE: "[x]", Mark.FAILED: "[!]"}


@dataclass(frozen=True)
class Desk:
    """Configuration and stores of the process that serves assistants."""

    settings: Settings
    stores: Stores
    start_workers: Callable[[], Awaitable[None]] | None = None
    """Starts a server with workers on this machine; None if they belong to this process or to a cluster."""

    def context(self) -> CommandContext:
        """Return a new context: a server that has moved since the last call is found."""
        return CommandContext(self.settings, self.stores, self.settings.tenant)

    def highest_cap(self) -> float | None:
        """Return the highest cost, in US dollars, at which runs of this configuration end; None without a cap.

        It is that of the presets, within the ceiling of the tenant whose runs are started here.
        """
        limits = [self.settings.preset(strategy.name, depth) for strategy in list_selectable() for depth in DEPTHS]
        ceiling = ceiling_here(self.settings).max_cost_usd
        caps = [cap for cap in (highest_limits(limits).max_cost_usd, ceiling) if cap is not None]
        return min(caps, default=None)

    async def client(self, context: CommandContext) -> ResearchClient:
        """Connect to a server with workers, and start both if needed and possible. Raises `CommandError`."""
        client = await context.client_if_running()
        if self.start_workers is not None and (client is None or not await _has_workers(client)):
            await self.start_workers()
            return await context.connect()
        return client or await context.running_client()


async def _has_workers(client: ResearchClient) -> bool:
    return not all(map(is_gone, await client.polled_by(WORKFLOWS_QUEUE)))


# --- starting ------------------------------------------------------------------------------------------------------
async def start_run(
    desk: Desk, values: Mapping[str, Any], max_cost_usd: float | None = None, research_id: str | None = None
) -> StartedRun:
    """Start a run, with a new id unless one is given, and return at once.

    A cap above the operator's is refused with `CommandError`, or cut where ceilings cut. Raises `ClientError`.
    """
    if not str(values["query"]).strip():
        raise CommandError("the question is empty: write it in full sentences")
    if desk.settings.tenant is not None:
        require_provable(desk.settings, desk.settings.tenant)
        values = {**values, "tenant": desk.settings.tenant}
    request = build_request(values)
    context = desk.context()
    research_id = research_id or new_id()
    await require_corpus(context, request.corpus)
    client = await desk.client(context)
    try:
        resolved = await client.preview(request, research_id)
        cap = highest_limits([resolved.limits, *resolved.choices.values()]).max_cost_usd
    except PreviewRefused as refusal:
        if max_cost_usd is None or refusal.stop_reason != StopReason.BUDGET_COST:
            raise
        cap = desk.highest_cap()  # what is left of a day's money may suffice for a run that costs less
    notes = []
    if max_cost_usd is not None:
        if cap is not None and max_cost_usd > cap:
            if desk.settings.limits.beyond == "refuse":
                raise CommandError(
                    f"max_cost_usd: the operator allows at most {cap:.2f} US dollars: name less, or leave it out"
                )
            notes = [f"max_cost_usd: {cap:.2f} in place of {max_cost_usd:.2f}, as the operator allows no more"]
        cap = max_cost_usd if cap is None else min(cap, max_cost_usd)
        request = build_request({**values, "limits": {"max_cost_usd": cap}})
        resolved = await client.preview(request, research_id)
        cap = highest_limits([resolved.limits, *resolved.choices.values()]).max_cost_usd
    await client.start(request, research_id)
    started = _started(resolved, research_id, cap)
    return started.with_fields(advice=[*notes, *started.advice])


def ceiling_here(settings: Settings, tenant: str | None = None) -> Ceiling:
    """Return the ceiling of what is started here for a tenant; None: for that of these settings."""
    return settings.limits.of(tenant_here(settings, tenant, namespace_of(settings)) or DEFAULT_TENANT)


def offered_strategies(settings: Settings, tenant: str | None = None) -> list[str]:
    """Return the names of the strategies that a tenant may choose."""
    allowed = ceiling_here(settings, tenant).strategies
    return [each.name for each in list_selectable() if allowed is None or each.name in allowed]


def require_provable(settings: Settings, tenant: str) -> None:
    """Raise `CommandError` for a tenant whose runs would be of another one, and so not be found by who starts them."""
    if tenant_here(settings, tenant, namespace_of(settings)) != tenant:
        raise CommandError(
            f"runs of the tenant {printable(tenant)} cannot be started here, as nothing proves it: set "
            f"RESEARCH_TENANT_KEYS to {printable(tenant)}=KEY, or to *=KEY for all users of a proxy"
        )


async def require_corpus(context: CommandContext, name: str | None) -> None:
    """Raise `CommandError` for a corpus that does not exist; workers of a cluster may have others than this machine."""
    if name is None or context.settings.uses_cluster:
        return
    known = sorted(await (await context.stores.corpora()).searchable())
    if name not in known:
        raise CommandError(f"there is no corpus {name}; known: {', '.join(known) or 'none'}")


async def follow_up(desk: Desk, research_id: str, values: Mapping[str, Any], max_cost_usd: float | None) -> StartedRun:
    """Start a run that considers the sources of an earlier one first; strategy and searches are those of that one."""
    earlier = await desk.context().find(research_id)
    options = follow_up_options(RunOptions(), str(values["query"]), earlier)
    inherited = options.values() | {"follow_up_of": earlier.research_id}
    if private := earlier.stored_resolution().private_providers:  # its question must not reach the web
        inherited["search"] = {"providers": private}
    return await start_run(desk, inherited | dict(values), max_cost_usd)


def _started(resolved: ResolvedResearch, research_id: str, cap: float | None) -> StartedRun:
    estimate = resolved.estimate
    waits = resolved.gates.requires_approval and not resolved.approval_waived
    later = " It asks the user before it searches." if waits or resolved.gates.clarifies else ""
    return StartedRun(
        research_id=research_id,
        question=resolved.query,
        strategy=resolved.strategy,
        searches=searches_of(resolved),
        engine=engine_text(resolved),
        egress=resolved.egress,
        estimate="" if estimate is None else estimate.words(),
        likely_usd=0.0 if estimate is None else estimate.likely_usd,
        likely_minutes=0.0 if estimate is None else estimate.likely_minutes,
        max_cost_usd=cap,
        advice=[*resolved.ceiling_lines, *resolved.advice],
        next=f'call research_status with research_id "{research_id}": it waits for news.{later}',
    )


def searches_of(resolved: ResolvedResearch) -> str:
    """Return what a run searches, in words."""
    names = [choice.name for choice in resolved.providers if choice.available and choice.name != CORPUS_PROVIDER]
    private = [name for name in names if name.startswith(SERVER_PREFIX)]
    web = ", ".join(name for name in names if name not in private)
    searched = list(private)
    if resolved.corpus is not None:
        searched.insert(0, f"the corpus {resolved.corpus.name}")
    if web:
        searched.append(f"the web ({web})")
    return " and ".join(searched) or "nothing"


async def started_run(desk: Desk, state: RunState) -> StartedRun:
    """Return what the start of a run has answered, with what to call next. Raises `CommandError` if it never began."""
    resolved = (await desk.context().find(state.research_id)).stored_resolution()
    return _started(resolved, state.research_id, resolved.limits.max_cost_usd).with_end(state.next)


# --- observing -----------------------------------------------------------------------------------------------------
async def observe(desk: Desk, research_id: str, seen: str | None, seconds: float) -> RunState:
    """Return the state of a run once it differs from `seen`, waits for a person or is over, at the latest in time.

    Without `seen` any change since the call counts. Raises `CommandError`, `ClientError`.
    """
    end = time.monotonic() + seconds
    context = desk.context()
    run = await context.find(research_id)
    if not run.running and await run.result() is None:
        await desk.client(context)  # an open run goes on with the server
        run = await context.load_run(run.research_id)
    while True:
        status, note = await find_status(context, run)
        state = _seen(status)
        seen = seen or state
        if note or seen != state or status.waiting or status.outcome is not None or time.monotonic() >= end:
            return await _state_of(context, run, status, note)
        await asyncio.sleep(min(POLL_SECONDS, max(0.0, end - time.monotonic())))


def _seen(status: ResearchStatus) -> str:
    """Return a mark of the state, which differs after each step that is worth telling."""
    done = sum(unit.mark in (Mark.DONE, Mark.FAILED) for unit in status.progress.units)
    agents = sum(1 for top in status.agents for _, agent in top.walk() if agent.ended_at)
    return f"{status.status.value}-{status.phase or 'none'}-{status.iteration}-{done}-{agents}"


async def _state_of(context: CommandContext, run: RunInfo, status: ResearchStatus, note: str) -> RunState:
    """Return a state with its news, its open question and the next call."""
    over = status.outcome is not None
    result = None
    if over:
        newest = await context.load_run(run.research_id)
        result = await newest.result() or (await newest.handle.result() if newest.handle else None)
    asked = None if over else await _asked(run, status.waiting)
    news = [] if over else await _news(run)
    units = [f"{MARKS[unit.mark]} {unit.label} {unit.detail}".rstrip() for unit in status.progress.units]
    now = datetime.now(tz=UTC)
    return RunState(
        research_id=run.research_id,
        question=status.query,
        status=status.status.value,
        phase=status.phase or "",
        iteration=status.iteration,
        work=[] if over else units,
        sources=status.counts.sources,
        findings=status.counts.findings,
        open_gaps=status.counts.gaps_open,
        seconds=round(elapsed_at(status, now)),
        cost=usage_text(status),
        news=news,
        asked=asked,
        outcome=status.outcome.value if status.outcome is not None else None,
        summary=_summary(result) if over else note,
        seen=_seen(status),
        next=_next(run.research_id, status, result, note),
    )


async def _asked(run: RunInfo, waiting: Waiting | None) -> Asked | None:
    """Return the open question to a person, with the plan to approve."""
    if waiting is None or run.open is None:
        return None
    plan = None
    if waiting.kind is WaitKind.APPROVAL:
        plan = await run.open.plan()
    return Asked(
        awaited=waiting.describe(),
        until=local_time(waiting.expires_at),
        questions=waiting.questions,
        plan=[] if plan is None else plan_lines(plan, tree_lines(plan.nodes)),
        plan_version=waiting.plan_version,
        phrase=waiting.phrase,
        objections=[] if plan is None else [item.line() for item in plan.objections if not item.overruled],
    )


async def _news(run: RunInfo) -> list[str]:
    """Return the lines of the newest events; none if no worker answers."""
    events: list[Event] = []
    cursor = 0
    try:
        for _ in range(MAX_EVENT_PAGES):
            page = None
            if run.open is not None:
                page = await run.open.events(cursor)
            if page is None or not page.events:
                break
            events = page.events
            cursor = page.next
    except ClientError:
        return []
    return event_lines(events)[-NEWS:]


def _summary(result: ResearchResult | None) -> str:
    if result is None:
        return ""
    return "\n".join(filter(None, [ending_text(result), result.summary, *reasons_of(result)]))


def _next(research_id: str, status: ResearchStatus, result: ResearchResult | None, note: str) -> str:
    """Return what an assistant should do."""
    named = f'research_id "{research_id}"'
    if status.outcome is not None:
        advice = f"; {result.advice}" if result is not None and result.advice else ""
        if result is not None and result.report:
            return f"call read_report with {named}{advice}"
        return f"tell the user why there is no report{advice}"
    if note:
        return f"tell the user: {note}"
    if status.waiting is None:
        return f'call research_status with {named} and seen "{_seen(status)}"'
    if status.waiting.kind is WaitKind.CLARIFICATION:
        return f"ask the user these questions, then call answer_questions with {named}"
    version = status.waiting.plan_version
    return f"show the plan to the user; after a yes call approve_plan with {named} and version {version}, else steer"


# --- reading -------------------------------------------------------------------------------------------------------
async def read_page(desk: Desk, research_id: str, part: Part, number: int, size: int | None = PAGE_BYTES) -> ReportPage:
    """Return a page of a report, its sources, its verdicts or its thread; `size` in bytes, None for all on one page.

    Raises `CommandError`, `ClientError`.
    """
    context = desk.context()
    run = await context.find(research_id)
    result = await run.result()
    documents: dict[str, bytes] = {}
    if part != "thread":
        documents = await load_documents(context, run)
    report = {}
    if "json" in documents:
        report = json.loads(documents["json"])
    if part == "thread":
        content = "\n".join(await _thread_lines(context, run.research_id))
    elif part == "report":
        content = documents["md"].decode()
    elif not report:
        raise CommandError("only a finished report has sources and verdicts: call research_status")
    else:
        content = "\n".join(_source_lines(report) if part == "sources" else _verdict_lines(report)) or "none"
    pages = [content] if size is None else pages_of(content, size)
    if number > len(pages):
        raise CommandError(
            f"the {part} of {run.research_id} has {plural(len(pages), 'page')}: there is no page {number}"
        )
    more = f'page {number + 1} of part "{part}"' if number < len(pages) else ""
    others = []
    if report or part == "thread":
        others = [f'part "{name}"' for name in get_args(Part) if name != part]
    return ReportPage(
        research_id=run.research_id,
        part=part,
        page=number,
        pages=len(pages),
        outcome=result.outcome.value if result is not None else "draft",
        verdicts=result.verification.verdict_counts if result is not None else {},
        content=pages[number - 1],
        next=f"read_report also has {', '.join(filter(None, [more, *others]))}" if more or others else "this is all",
    )


async def _thread_lines(context: CommandContext, research_id: str) -> list[str]:
    """Return each question of the thread of a run, with how it was answered, its cost and the id of its run."""
    thread = await load_thread(context, research_id, context.tenant, documents=False)
    return [
        f"{number}. {printable(answer.query)} — {' · '.join(answer_lines(answer))}"
        for number, answer in enumerate(thread.answers, start=1)
    ]


def _source_lines(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each cited source: number, title, address, when it was read, and its id for `fetch`."""
    sources = {source["id"]: source for source in report["sources"]}
    lines = []
    for citation in sorted(report["citations"], key=lambda citation: int(citation["number"])):
        source = sources.get(citation["source_id"])
        if source is not None:
            read = f", read {source['retrieved_at'][:10]}" if source.get("retrieved_at") else ""
            quality = f", {source['quality']} quality" if source.get("quality") else ""
            title = printable(source["title"])
            address = printable(source.get("address") or source["url"])
            named = f"; fetch: research://{report['research_id']}/sources/{source['id']}"
            extent = ", abstract only" if source.get("abstract_only") else ""
            lines.append(f"[{citation['number']}] {title} {address}{read}{extent}{quality}{named}")
    return lines


def _verdict_lines(report: Mapping[str, Any]) -> list[str]:
    """Return each claim with its verdict and the reason, those that are not supported first."""
    claims = sorted(report["claims"], key=lambda claim: claim["verdict"] == "supported")
    lines = []
    for claim in claims:
        verdict = claim["verdict"] or "unverified"
        label = VERDICT_LABELS.get(verdict, verdict.replace("_", " "))
        reason = ""
        if claim.get("reason") and verdict != "supported":
            reason = f" — {printable(claim['reason'])}"
        lines.append(f"{VERDICT_SIGNS.get(verdict, '–')} {label}: {printable(claim['text'])}{reason}")
    return lines
