"""The page of `serve`: `python -m benchmarks.page [--runs 20] [--stored 2000]`, with the Chromium of this machine.

Ready, memory, and how soon an event is seen while runs are at work, with real processes and a model that always agrees;
then a stream of a hundred events a second, and a list of stored runs, in this process.
"""

import argparse
import asyncio
import os
import shutil
import signal
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2
from markupsafe import Markup
from playwright.async_api import Browser, Page, async_playwright
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from benchmarks.processes import cpu_seconds
from client.assistants.runs import Desk
from client.cli.context import Stores
from client.http_server import make_server
from client.page import views
from client.page.access import COOKIE, open_access
from client.page.app import STATIC, http_server
from client.page.watching import Watches
from client.view.words import event_lines
from contracts.outcome import Event, EventPage, ResearchStatus
from contracts.vocabulary import RunStatus
from tests.acceptance.topology import Topology, topology
from tests.fakes import states
from tests.integration.runs import QUESTION
from tests.unit.client.cli.command_line import store_run
from workers.settings.loading import load_settings

LATENCY: Final = 0.5
"""Seconds of an answer of the model."""
EVENTS_A_SECOND: Final = 100
STREAM_SECONDS: Final = 10.0
NOTE_LINES: Final = """
() => {
  window.seen = new Map();
  window.tasks = [];
  new PerformanceObserver((list) => list.getEntries().forEach((task) => window.tasks.push(task.duration)))
    .observe({ type: "longtask" });
  const note = () => {
    for (const line of document.querySelectorAll(".news li"))
      if (!window.seen.has(line.textContent)) window.seen.set(line.textContent, Date.now());
  };
  note();
  const everything = { subtree: true, childList: true, characterData: true };
  new MutationObserver(note).observe(document.getElementById("live"), everything);
}
"""
"""Notes when each line of news was first on the page, in milliseconds since the epoch, and tasks of more than 50 ms."""


def megabytes_of(pid: int) -> float:
    """Proportional memory of one process, without its children."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1_024


def spread(values: list[float], unit: str = "ms") -> str:
    """Return median, 95th percentile and maximum."""
    ordered = sorted(values)
    at_95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return f"median {statistics.median(ordered):.0f}, 95 % {at_95:.0f}, most {ordered[-1]:.0f} {unit} ({len(values)})"


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """The Chromium of this machine."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


async def opened(page: Page, address: str) -> float:
    """Open an address; milliseconds until its form can be used."""
    begun = time.monotonic()
    await page.goto(address, wait_until="domcontentloaded")
    await page.wait_for_selector("#query")
    return 1_000 * (time.monotonic() - begun)


async def ask(page: Page, address: str) -> None:
    """Ask a question through the forms."""
    await page.goto(address)
    await page.fill("#query", QUESTION)
    await page.click("form.ask button")
    await page.click("form[action='/start'] button")
    await page.wait_for_selector("#steer")


async def serve_page(made: Topology) -> tuple[asyncio.subprocess.Process, str]:
    """Begin `serve`; its process and the address of its page."""
    serving = await made.begin("serve", "--page-port", "0", "--no-mcp", "--no-chat")
    assert serving.stdout is not None
    while line := (await serving.stdout.readline()).decode():
        if line.startswith("page "):
            return serving, line.split()[1]
    raise RuntimeError("serve has ended")


async def at_work(runs: int) -> None:
    """Measure with `runs` runs at work and one open page."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), LATENCY) as made, browsing() as browser:
            serving, address = await serve_page(made)
            await asyncio.sleep(2)
            unused = megabytes_of(serving.pid)
            person = await browser.new_context()
            page = await person.new_page()
            print(f"ready, at the first visit of a serve:  {await opened(page, address):.0f} ms")
            print(f"ready, later visits:                   {spread([await opened(page, address) for _ in range(20)])}")
            entered = megabytes_of(serving.pid)
            print(f"memory of serve: unused {unused:.1f} MB; visited {entered:.1f} MB (+{entered - unused:.1f})")
            base = address.partition("/?")[0]
            cookies = {each["name"]: each["value"] for each in await person.cookies()}
            await ask(page, base + "/")
            await page.evaluate(NOTE_LINES)
            research_id = page.url.partition("?")[0].rpartition("/")[2]
            await start_others(page, base, cookies, runs - 1)
            used = cpu_seconds(serving.pid)
            begun = time.monotonic()
            await page.wait_for_selector("#report-frame", timeout=180_000)
            await asyncio.sleep(1)
            share = (cpu_seconds(serving.pid) - used) / (time.monotonic() - begun)
            delays = await delays_of(made, page, research_id)
            print(f"an event seen, with {runs} runs at work:  {spread(delays)}; serve used {share:.2f} processors")
            print(f"memory of serve, with {runs} runs made: {megabytes_of(serving.pid):.1f} MB")
            serving.send_signal(signal.SIGTERM)
            await serving.communicate()


async def start_others(page: Page, base: str, cookies: dict[str, str], count: int) -> None:
    """Start more runs at once by the form of the page."""
    form_key = await page.locator("input[name=form_key]").first.input_value()
    async with httpx2.AsyncClient(base_url=base, cookies=cookies, timeout=60) as client:
        form = {"form_key": form_key, "query": QUESTION}
        sent = await asyncio.gather(*(client.post("/start", data=form) for _ in range(count)))
        assert [answer.status_code for answer in sent] == [303] * count


async def delays_of(made: Topology, page: Page, research_id: str) -> list[float]:
    """Milliseconds between each event of a run and its line on the page, for those after the page was opened."""
    seen: dict[str, float] = await page.evaluate("() => Object.fromEntries(window.seen)")
    opened_at = min(seen.values())
    handle = (await made.client()).get_workflow_handle(research_id)
    events: list[Event] = []
    answer = EventPage(next=-1)
    while answer.events or answer.next < 0:
        answer = await handle.query("events", max(answer.next, 0), result_type=EventPage)
        events += answer.events
    delays = []
    for event in events:
        happened = 1_000 * datetime.fromisoformat(event.time).timestamp()
        lines = event_lines([event], in_terminal=False)
        delays += [seen[line] - happened for line in lines if seen.get(line, 0.0) > opened_at]
    return delays


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[str]:
    """An application at the yielded address."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    server = make_server(app)
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


def run_view(events: list[Event]) -> views.RunView:
    """A run at work with these events."""
    status = ResearchStatus(research_id="r-many", query="x", status=RunStatus.RUNNING)
    empty: dict[str, Any] = {
        "note": "",
        "facts": [],
        "work": [],
        "waits": [],
        "plan": None,
        "plan_text": "",
        "asks": "",
    }
    return views.RunView(
        status=status, word="running", news=views.news_of(events), is_open=True, has_report=False, draft=None,
        picture=None, follows="", **empty,
    )  # fmt: skip


async def many_events() -> None:
    """Measure a page that gets a hundred events a second."""
    made: list[float] = []
    stop_at = 0.0

    async def draw() -> tuple[str, bool]:
        first = max(0, len(made) - 400)
        events = [
            Event(
                seq=first + index,
                type="note",
                time=datetime.fromtimestamp(at, UTC).isoformat(),
                text=f"event {first + index}",
            )
            for index, at in enumerate(made[first:])
        ]
        return views.render("live", view=run_view(events), research_id="r-many", form_key="", until=""), False

    async def home(request: Request) -> Response:
        del request
        html, _ = await draw()
        values = {"title": "x", "question": "x", "said": "", "versions": [], "later": [], "research_id": "r-many"}
        return HTMLResponse(views.render("run", live=Markup(html), form_key="", **values))

    async def live(request: Request) -> Response:
        del request
        return StreamingResponse(watches.follow("x", draw), media_type="text/event-stream")

    watches = Watches()
    routes = [Route("/", home), Route("/runs/r-many/live", live), Mount("/static", StaticFiles(directory=STATIC))]
    async with served(Starlette(routes=routes)) as address, browsing() as browser:
        page = await browser.new_page()
        await page.goto(address)
        await page.evaluate(NOTE_LINES)
        used = cpu_seconds(os.getpid())
        stop_at = time.time() + STREAM_SECONDS
        while time.time() < stop_at:
            made.append(time.time())
            await asyncio.sleep(1 / EVENTS_A_SECOND)
        await asyncio.sleep(1)
        seen: dict[str, float] = await page.evaluate("() => Object.fromEntries(window.seen)")
        tasks = await page.evaluate("() => window.tasks")
        watches.is_closing = lambda: True
        happened = {f"event {number}": 1_000 * at for number, at in enumerate(made)}
        delays = [at - happened[name] for line, at in seen.items() if (name := " ".join(line.split()[1:])) in happened]
        rate = len(made) / STREAM_SECONDS
        print(
            f"{rate:.0f} events a second, the newest 40 shown: {spread(delays)}; "
            f"tasks of the browser above 50 ms: {len(tasks)}"
        )
        print(f"processor of page and browser: {(cpu_seconds(os.getpid()) - used) / (STREAM_SECONDS + 1):.2f}")


async def timed(step: Callable[[], Awaitable[Any]]) -> float:
    """Milliseconds of a step."""
    begun = time.monotonic()
    await step()
    return 1_000 * (time.monotonic() - begun)


async def stored_runs(count: int) -> None:
    """Measure the list of stored runs."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            resolved = states.resolved(query=f"Question {number} about the old rows of a table?")
            state = states.state(resolved=resolved, status=RunStatus.COMPLETED)
            await store_run(Path(folder), f"r-{number:05d}", state, closed=True)
        settings = load_settings(environment={"RESEARCH_HOME": folder, "RESEARCH_CONFIG": os.devnull})
        async with AsyncExitStack() as stack, browsing() as browser:
            listener = socket.create_server(("127.0.0.1", 0))
            listener.setblocking(False)
            port = listener.getsockname()[1]
            key = open_access(settings.home, port).key
            server = http_server(Desk(settings, Stores(settings, stack)), listener)
            task = asyncio.create_task(server.serve([listener]))
            address = f"http://127.0.0.1:{port}"
            async with httpx2.AsyncClient(
                base_url=address, headers={"cookie": f"{COOKIE}={key}"}, timeout=120
            ) as client:
                for limit in (50, count):
                    times = [await timed(partial(client.get, f"/?limit={limit}")) for _ in range(4)]
                    size = len((await client.get(f"/?limit={limit}")).content) / 1_000
                    print(
                        f"{limit} of {count} stored runs: "
                        f"first {times[0]:.0f} ms, then {min(times[1:]):.0f} ms, {size:.0f} kB"
                    )
                times = [await timed(partial(client.get, "/?q=Question+77")) for _ in range(3)]
                print(f"filtered: {min(times):.0f} ms")
            page = await browser.new_page()
            print(f"drawn by the browser: {await opened(page, f'{address}/?key={key}'):.0f} ms; ", end="")
            print(f"all {count}: {await opened(page, f'{address}/?limit={count}'):.0f} ms")
            server.should_exit = True
            await page.close()
            await task
            listener.close()


async def main() -> None:
    """Measure all, or what is named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--stored", type=int, default=2_000)
    parser.add_argument("--only", choices=("work", "events", "list"), default="")
    given = parser.parse_args()
    if given.only in ("", "events"):
        await many_events()
    if given.only in ("", "list"):
        await stored_runs(given.stored)
    if given.only in ("", "work"):
        await at_work(given.runs)


if __name__ == "__main__":
    asyncio.run(main())
