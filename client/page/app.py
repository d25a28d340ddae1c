"""The pages and forms, and the server that answers for them."""

import asyncio
import base64
import hashlib
import json
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from mimetypes import guess_type
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from client.assistants.runs import Desk, searches_of
from client.cli.context import CommandContext, RunInfo
from client.cli.options import RunOptions
from client.cli.output import CommandError
from client.cli.read import find_source, load_documents
from client.cli.run import request_again, require_resumable
from client.cli.talk import parse_plan, running_handle
from client.cli.thread import answer_lines, export_thread, form_of
from client.cli.watch import INTERRUPTED, find_status
from client.client_errors import ClientError, MessageRefused
from client.http_server import QuietServer, WholeRequests, make_server
from client.page import views
from client.page.access import Access, Guarded, open_access
from client.page.desk import MAX_LISTED, WEB, PageDesk, versions_of
from client.page.watching import MAX_WATCHERS, Watches
from client.view.picture import draw_picture, illustrate
from client.view.words import engine_text, local_time
from contracts.evidence import DocumentRef, ReportDraft
from contracts.outcome import Event, EventPage, ResearchStatus
from contracts.report import ThreadAnswer
from providers.errors import ContentMissing, ProviderError

STATIC: Final = Path(__file__).parent / "static"
MAX_FIELDS: Final = 100
PAGE_SIZE: Final = 50
LISTING_SECONDS: Final = 2.0
PICTURE_SECONDS: Final = 3.0
"""A picture of a run at work is drawn again after this time, because it reads histories."""
PICTURE_REST: Final = 10
"""The same in multiples of the time that it took, so that the histories of a large run do not occupy the server."""
PICTURE_WAIT_SECONDS: Final = 0.2
"""How long a page waits for its picture, which otherwise comes with a later change."""
FORMS: Final = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"
)
REPORT_HEADERS: Final = {"cross-origin-opener-policy": "unsafe-none"}
"""A browser shows no page in a frame of its own origin that asks for a window of its own."""
STREAM_HEADERS: Final = {"x-accel-buffering": "no"}
"""A proxy passes each event on at once."""
EVENTS_KEPT: Final = 400

Form = Mapping[str, str]


@dataclass
class Seen:
    """What watchers of one run have seen of it, so that nothing is asked or read twice."""

    context: CommandContext
    run: RunInfo | None = None
    """None until it is loaded, and again after an error."""
    events: list[Event] = field(default_factory=list)
    cursor: int = 0
    draft_hash: str = ""
    draft: Markup | None = None
    picture: Markup | None = None
    drawing: "asyncio.Task[None] | None" = None
    draw_again_at: float = 0.0


class PageHandlers:
    """The handlers of all addresses."""

    def __init__(self, desk: PageDesk, access: Access) -> None:
        self._desk = desk
        self._access = access
        self.watches = Watches()

    def routes(self) -> list[Route | Mount]:
        """Return the addresses of the page."""
        run = "/runs/{research_id}"
        return [
            Route("/", self.shown(self.home)),
            Route("/live", self.shown(self.live_list)),
            Route("/preview", self.form(self.preview), methods=["POST"]),
            Route("/start", self.form(self.start), methods=["POST"]),
            Route("/compare", self.shown(self.compare)),
            Route(run, self.shown(self.run)),
            Route(f"{run}/live", self.shown(self.live_run)),
            Route(f"{run}/report", self.shown(self.report)),
            Route(f"{run}/report.{{form}}", self.shown(self.report_file)),
            Route(f"{run}/thread.{{form}}", self.shown(self.thread_file)),
            Route(f"{run}/passages/{{evidence_id}}", self.shown(self.passage)),
            Route(f"{run}/sources", self.shown(self.sources)),
            Route(f"{run}/sources/{{source_id}}", self.shown(self.source)),
            Route(f"{run}/{{action}}", self.form(self.act), methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]

    def _user(self, request: Request) -> str | None:
        """Return the tenant whose runs alone are shown: the user that a proxy names, else that of this server."""
        user = self._access.user(request.headers)
        return self._desk.settings.tenant if user is None else user

    def _page(self, name: str, title: str, code: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(views.render(name, title=title, form_key=self._access.form_key, **values), code)

    def _problem(self, error: Exception, code: int = 400) -> HTMLResponse:
        return self._page("problem", "That did not work", code, text=str(error))

    def shown(self, handle: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that answers problems with a page."""

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except (CommandError, ClientError, ProviderError) as error:
                return self._problem(error, 404)

        return answer

    def form(self, handle: Callable[[Request, Form], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that reads a form of this page, and answers problems with a page."""

        async def answer(request: Request) -> Response:
            try:
                fields = await read_form(request)
            except ValueError as error:
                return self._problem(error)
            if not self._access.is_form_key(fields.get("form_key", "")):
                return self._problem(ValueError("this form is of another page: load the page again"), 403)
            try:
                return await handle(request, fields)
            except (CommandError, ClientError, ProviderError) as error:
                return self._problem(error)

        return answer

    # --- asking ----------------------------------------------------------------------------------------------------
    async def home(self, request: Request) -> Response:
        """Show the form of a question and the list of runs."""
        corpora = await self._desk.corpora()
        listed = await self._listed(request, self._desk.context())
        strategies, depths = self._desk.choices(self._user(request))
        query = urlencode(
            {name: request.query_params[name] for name in ("q", "status", "limit") if name in request.query_params}
        )
        return self._page(
            "home", "Research", corpora=corpora, knows_all=self._desk.knows_all_corpora, web=WEB,
            strategies=strategies, depths=depths,
            list=Markup(listed),  # noqa: S704  a template made it
            query=query, text=request.query_params.get("q", ""), status=request.query_params.get("status", ""),
            statuses=sorted(views.STATUS_SIGNS),
        )  # fmt: skip

    async def _listed(self, request: Request, context: CommandContext) -> str:
        text = request.query_params.get("q", "")[:500]
        status = request.query_params.get("status", "")
        given = request.query_params.get("limit", "")
        limit = min(int(given), MAX_LISTED) if given.isdecimal() and len(given) < 6 else PAGE_SIZE
        runs, has_more = await self._desk.listed(text, status, limit, self._user(request), context)
        more = urlencode({"q": text, "status": status, "limit": min(4 * limit, MAX_LISTED)}) if has_more else ""
        return views.render(
            "list", runs=runs, more=more if limit < MAX_LISTED else "", is_filtered=bool(text or status)
        )

    async def preview(self, request: Request, form: Form) -> Response:
        """Show what a run would do and cost, before it starts."""
        preview = await self._desk.preview(form, self._user(request))
        kept = {name: value for name, value in form.items() if name != "form_key"} | {
            "research_id": preview.research_id
        }
        resolved = preview.resolved
        engine = engine_text(resolved)
        searches = searches_of(resolved)
        return self._page(
            "preview",
            "Start this run?",
            preview=preview,
            resolved=resolved,
            engine=engine,
            searches=searches,
            kept=kept,
        )

    async def start(self, request: Request, form: Form) -> Response:
        """Start a run, and lead to it."""
        return to_run(await self._desk.start(form, self._user(request)))

    # --- one run ---------------------------------------------------------------------------------------------------
    async def run(self, request: Request) -> Response:
        """Show a run with everything that can be done with it."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        html, _ = await self._draw_run(run.research_id, Seen(self._desk.context()))
        question = await run.question() or ""
        thread: Sequence[ThreadAnswer] = ()
        if run.resolved is not None:  # else nothing of it is stored yet
            thread = (await self._desk.thread(run.research_id, self._user(request))).answers
        versions = [] if run.state is None else versions_of(run.state)
        return self._page(
            "run", question, research_id=run.research_id, question=question, thread=thread,
            lines=answer_lines,
            versions=versions,
            said=request.query_params.get("said", "")[:1_000], live=Markup(html),  # noqa: S704  a template made it
        )  # fmt: skip

    async def live_run(self, request: Request) -> Response:
        """Stream the changing part of a run."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        return self._stream(
            f"run {run.research_id}", partial(self._draw_run, run.research_id, Seen(self._desk.context()))
        )

    async def live_list(self, request: Request) -> Response:
        """Stream the list of runs."""
        context = self._desk.context()

        async def draw() -> tuple[str, bool]:
            nonlocal context
            await asyncio.sleep(LISTING_SECONDS)
            try:
                return await self._listed(request, context), False
            except (CommandError, ClientError, ProviderError) as error:
                context = self._desk.context()
                return views.render("notice", text=str(error)), False

        return self._stream(f"list {self._user(request) or ''}?{request.url.query}", draw)

    def _stream(self, name: str, draw: Callable[[], Awaitable[tuple[str, bool]]]) -> Response:
        if self.watches.watchers >= MAX_WATCHERS:
            return Response("Too many open pages: close one.", 503)
        return StreamingResponse(
            self.watches.follow(name, draw), media_type="text/event-stream", headers=STREAM_HEADERS
        )

    async def _draw_run(self, research_id: str, seen: Seen) -> tuple[str, bool]:
        """Return the changing part of a run, and true if it is over."""
        try:
            if seen.run is None or seen.run.state is None or not seen.run.running:
                seen.run = await seen.context.load_run(research_id)
            status, note = await find_status(seen.context, seen.run)
            if status.outcome is not None and seen.run.running:
                seen.run = await seen.context.load_run(research_id)
            view = await self._view(seen, seen.run, status, note)
        except (CommandError, ClientError, ProviderError) as error:
            seen.context = self._desk.context()  # a server that has moved is found
            seen.run = None
            return views.render("notice", text=str(error)), False
        until = "" if status.waiting is None else local_time(status.waiting.expires_at)
        form_key = self._access.form_key
        html = views.render("live", view=view, research_id=research_id, form_key=form_key, until=until)
        return html, not view.is_open

    async def _view(self, seen: Seen, run: RunInfo, status: ResearchStatus, note: str) -> views.RunView:
        is_open = run.open is not None and status.outcome is None
        await self._see_events(run, seen)
        plan, plan_text = await views.plan_of(run, run.open, status)
        result = None if is_open else await run.result()
        has_report = result is not None and bool(result.report)
        if not has_report:
            await self._see_draft(run, seen)
        await self._see_picture(run, seen)
        interrupted = not is_open and status.outcome is None
        now = datetime.now(tz=UTC)
        return views.RunView(
            status=status,
            word=INTERRUPTED if interrupted else status.status.value,
            note=note,
            facts=views.facts_of(status, now),
            work=views.work_of(status),
            waits=views.waits(status) if is_open else [],
            news=views.news_of(seen.events),
            plan=plan,
            plan_text=plan_text,
            asks=views.asks_of(status) if is_open else "",
            is_open=is_open,
            has_report=has_report,
            draft=None if has_report else seen.draft,
            picture=seen.picture,
            follows=views.follows(run),
        )

    @staticmethod
    async def _see_picture(run: RunInfo, seen: Seen) -> None:
        """Draw the picture beside the page, if it is old."""

        async def draw() -> None:
            begun = time.monotonic()
            seen.picture = await draw_picture(run.handle)
            ended = time.monotonic()
            seen.draw_again_at = ended + max(PICTURE_SECONDS, PICTURE_REST * (ended - begun))

        if seen.drawing is None and time.monotonic() >= seen.draw_again_at:
            seen.drawing = asyncio.create_task(draw())
            await asyncio.wait({seen.drawing}, timeout=PICTURE_WAIT_SECONDS if seen.picture is None else 0)
        if seen.drawing is not None and seen.drawing.done():
            drawing, seen.drawing = seen.drawing, None
            drawing.result()

    @staticmethod
    async def _see_events(run: RunInfo, seen: Seen) -> None:
        if run.open is None:
            seen.events = list(run.state.people.events) if run.state is not None else []
            return
        page: EventPage = await run.open.events(seen.cursor)
        while page.events:
            seen.events = [*seen.events, *page.events][-EVENTS_KEPT:]
            seen.cursor = page.next
            page = await run.open.events(seen.cursor)

    @staticmethod
    async def _see_draft(run: RunInfo, seen: Seen) -> None:
        """Render the newest text of an unfinished report, if there is another one than before."""
        draft = run.state.evidence.draft if run.state is not None else None
        if run.open is not None and isinstance(newest := await run.open.report(), ReportDraft):
            draft = newest
        if draft is None or draft.document.hash == seen.draft_hash:
            return
        try:
            text = await seen.context.stores.content.get(draft.document)
        except ContentMissing:  # it is on another machine
            return
        seen.draft = views.from_markdown(views.with_passages(text.decode(), run.research_id), below=2)
        seen.draft_hash = draft.document.hash

    # --- reading ---------------------------------------------------------------------------------------------------
    async def _documents(self, request: Request) -> tuple[RunInfo, dict[str, bytes]]:
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        return run, await load_documents(self._desk.context(), run)

    async def report(self, request: Request) -> Response:
        """Show the report of a run, in a page of its own that nothing can leave."""
        run, documents = await self._documents(request)
        if "html" not in documents:
            draft = views.from_markdown(views.with_passages(documents["md"].decode(), run.research_id))
            return self._page("draft", "Draft", research_id=run.research_id, draft=draft)
        evidence = json.loads(documents["json"])["evidence"] if "json" in documents else []
        sources = {passage["id"]: passage["source_id"] for passage in evidence}
        illustrated = await illustrate(documents, run.handle)
        html = views.with_places(illustrated["html"].decode(), run.research_id, sources).encode()
        return HTMLResponse(html, headers=REPORT_HEADERS | {"content-security-policy": report_policy(html)})

    async def report_file(self, request: Request) -> Response:
        """Send a report as Markdown or JSON."""
        form = request.path_params["form"]
        run, documents = await self._documents(request)
        if form not in FORMS or form not in documents:
            return self._problem(CommandError(f"this run has no report as {form[:20]}"), 404)
        name = quote(f"{run.research_id}.{form}")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(documents[form], media_type=FORMS[form], headers=headers)

    async def thread_file(self, request: Request) -> Response:
        """Send the whole thread of a run as one document, in a format of `research thread`."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        name = Path(f"thread-{run.research_id}.{request.path_params['form']}")
        form_of(name)
        loaded = await self._desk.thread(run.research_id, self._user(request), documents=True)
        data = await export_thread(self._desk.context(), loaded, name)
        headers = {"content-disposition": f'attachment; filename="{quote(name.name)}"'}
        return Response(data, media_type=guess_type(name.name)[0] or "application/octet-stream", headers=headers)

    async def sources(self, request: Request) -> Response:
        """List the sources of a run: cited, read, and passed over."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        state = await self._desk.context().full_state(run)
        numbers = {citation.source_id: citation.number for citation in state.evidence.citations}
        ordered = sorted(state.evidence.sources.values(), key=lambda each: (numbers.get(each.id, 10**6), each.title))
        return self._page("sources", "Sources", research_id=run.research_id, sources=ordered, numbers=numbers)

    async def source(self, request: Request) -> Response:
        """Show the archived text of a source, with the quoted passages in their places."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        context = self._desk.context()
        state = await context.full_state(run)
        source = find_source(state, request.path_params["source_id"])
        if source.text is None:
            raise CommandError(f"nothing of this source is archived: {source.status_reason or source.status.value}")
        text = (await context.stores.content.get(source.text)).decode()
        passages = [passage for passage in state.evidence.passages.values() if passage.source_id == source.id]
        pieces = views.pieces_of(text, passages)
        return self._page("source", source.title, research_id=run.research_id, source=source, pieces=pieces)

    async def passage(self, request: Request) -> Response:
        """Lead to a passage in its place in the archived text."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        state = await self._desk.context().full_state(run)
        passage = state.evidence.passages.get(request.path_params["evidence_id"])
        if passage is None:
            raise CommandError("the run has no such passage, or has not saved it yet: load the page again")
        return RedirectResponse(views.place_of(run.research_id, passage.source_id, passage.id), 303)

    async def compare(self, request: Request) -> Response:
        """Show two reports side by side."""
        if not all(request.query_params.get(name) for name in ("a", "b")):
            raise CommandError("two runs are compared: choose one in each column of the list")
        pair = []
        for name in ("a", "b"):
            run = await self._desk.find(request.query_params[name], self._user(request))
            version = request.query_params.get(f"{name}_version", "")
            pair.append((run.research_id, version, await self._text(run, version)))
        (left, left_version, left_text), (right, right_version, right_text) = pair
        lines = views.compare_texts(left_text, right_text)
        return self._page(
            "compare", "Two reports", left=left, left_version=left_version, right=right, right_version=right_version,
            lines=lines,
        )  # fmt: skip

    async def _text(self, run: RunInfo, version: str) -> str:
        """Return the Markdown of a report, or one of its earlier versions. Raises `CommandError`."""
        context = self._desk.context()
        if not version:
            return (await load_documents(context, run))["md"].decode()
        if run.state is None or version not in versions_of(run.state):
            raise CommandError(f"the run {run.research_id} has no such version of its report")
        return (await context.stores.content.get(DocumentRef(hash=version))).decode()

    # --- acting ----------------------------------------------------------------------------------------------------
    async def act(self, request: Request, form: Form) -> Response:
        """Do what a form of a run asks for, and lead back to the run."""
        run = await self._desk.find(request.path_params["research_id"], self._user(request))
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            return self._problem(CommandError("there is no such form"), 404)
        reply = await action(self._desk.context(), run, form)
        return to_run(run.research_id, reply)


async def _approve(context: CommandContext, run: RunInfo, form: Form) -> str:
    handle = await running_handle(context, run.research_id)
    version = form.get("version", "")
    if not version.isdecimal():
        raise CommandError("the form names no version of the plan: load the page again")
    overrule = {"overrule": True} if form.get("overrule") else {}
    return await handle.approve_plan(int(version), form.get("phrase") or None, **overrule)


async def _revise(context: CommandContext, run: RunInfo, form: Form) -> str:
    handle = await running_handle(context, run.research_id)
    version = form.get("version", "")
    return await handle.revise_plan(parse_plan(form.get("plan", "")), int(version) if version.isdecimal() else None)


async def _reject(context: CommandContext, run: RunInfo, form: Form) -> str:
    del form
    return await (await running_handle(context, run.research_id)).reject_plan()


async def _answer(context: CommandContext, run: RunInfo, form: Form) -> str:
    answers = [value for name, value in sorted(form.items()) if name.startswith("answer-")]
    round_ = form.get("round", "")
    handle = await running_handle(context, run.research_id)
    return await handle.answer(answers, int(round_) if round_.isdecimal() else None)


async def _steer(context: CommandContext, run: RunInfo, form: Form) -> str:
    text = form.get("text", "").strip()
    if not text:
        raise MessageRefused("the text is empty: write what the run should do")
    return await (await running_handle(context, run.research_id)).steer(text) or "noted for the next phase"


async def _stop(context: CommandContext, run: RunInfo, form: Form) -> str:
    del form
    handle = await running_handle(context, run.research_id)
    return await handle.stop_and_report() or "the report is being written from the findings so far"


async def _cancel(context: CommandContext, run: RunInfo, form: Form) -> str:
    del form
    await (await running_handle(context, run.research_id)).cancel()
    return "the run is being cancelled; its state is saved"


async def _resume(context: CommandContext, run: RunInfo, form: Form) -> str:
    del form
    if run.running:
        raise CommandError("the run is at work: there is nothing to resume")
    require_resumable(run, await run.result())
    requested = await request_again(run, RunOptions())
    await (await context.running_client()).resume(requested.request, run.research_id)
    return "the run goes on from its last checkpoint"


ACTIONS: Final[Mapping[str, Callable[[CommandContext, RunInfo, Form], Awaitable[str]]]] = {
    "approve": _approve,
    "plan": _revise,
    "reject": _reject,
    "answer": _answer,
    "steer": _steer,
    "stop": _stop,
    "cancel": _cancel,
    "resume": _resume,
}
"""Forms of a run, by the last part of their address."""


def to_run(research_id: str, reply: str = "") -> Response:
    """Lead to the page of a run, which shows its reaction."""
    said = f"?{urlencode({'said': reply})}" if reply else ""
    return RedirectResponse(f"/runs/{quote(research_id, safe='')}{said}", 303)


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises ValueError for one with too many."""
    body = await request.body()
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS))


def report_policy(html: bytes) -> str:
    """Return the policy of a report: its own style sheet, nothing else."""
    start = html.find(b"<style>")
    end = html.find(b"</style>", start)
    digest = hashlib.sha256(html[start + len(b"<style>") : end]).digest() if start >= 0 else b""
    return REPORT_POLICY.format(base64.b64encode(digest).decode())


def http_server(desk: Desk, listener: socket.socket, page_url: str = "", user_header: str = "") -> QuietServer:
    """Make the server of the page, which is also reached at `page_url` through a proxy that names users."""
    access = open_access(desk.settings.home, listener.getsockname()[1], page_url, user_header)
    page = PageHandlers(PageDesk(desk), access)
    server = make_server(Guarded(WholeRequests(Starlette(routes=page.routes())), access))
    page.watches.is_closing = lambda: server.should_exit
    return server
