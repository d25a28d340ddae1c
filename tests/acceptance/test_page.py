"""The page of `serve` in a real browser: ask, approve, watch, a server that is killed, the report, what follows."""

import asyncio
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.acceptance.test_assistants import printed
from tests.acceptance.topology import Topology, topology
from tests.integration.runs import QUESTION

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(180),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

LATENCY: Final = 0.5
SLOW: Final = 60_000
"""Milliseconds until a run is over on a loaded machine."""
expect.set_options(timeout=SLOW)
HOSTILE: Final = "<script>window.taken = 1</script><img src=x onerror='window.taken = 2'>"


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """The Chromium of this machine."""
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def serving_page(made: Topology) -> AsyncIterator[str]:
    """The address of the page of a `serve` that ends with the block."""
    serving = await made.begin("serve", "--page-port", "0", "--no-mcp", "--no-chat")
    try:
        yield await printed(serving, "page")
    finally:
        serving.kill()
        await serving.communicate()


async def enter(person: BrowserContext, address: str) -> tuple[Page, list[str]]:
    """A page that a person has opened at the printed address, and what its browser complains about."""
    page = await person.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("console", lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None)
    await page.goto(address)
    return page, problems


async def ask(page: Page, question: str, *, approval: bool = False) -> None:
    """Ask a question, look at what it would cost, and start it."""
    await page.fill("#query", question)
    if approval:
        await page.check("input[name=approve]")
    await page.click("form.ask button")
    await expect(page.locator("dl.facts")).to_contain_text("Limit of costs")
    await page.click("form[action='/start'] button")


def hostile_document(made: Topology) -> None:
    """Put a page with scripts into the corpus, before anything indexes it."""
    text = f"# {HOSTILE}\n\nTransaction ID wraparound {HOSTILE} is prevented by vacuum, which freezes old rows.\n"
    (made.documents / "hostile.md").write_text(text, encoding="utf-8")


async def test_a_run_is_asked_for_approved_and_read_through_a_killed_server(tmp_path: Path) -> None:
    """The page goes on by itself when the server is back, with the same run; nothing is paid twice.

    The report has its passages beside the sentences and in their places, and a question that follows is a run of its
    own below it. A script in the question and in a document is text in all of them.
    """
    async with topology(tmp_path, LATENCY) as made, browsing() as browser:
        hostile_document(made)
        serving = await made.begin("serve", "--page-port", "0", "--no-mcp", "--no-chat")
        address = await printed(serving, "page")
        page, problems = await enter(await browser.new_context(), address)
        assert "key=" not in page.url
        await ask(page, f"{HOSTILE} {QUESTION}", approval=True)
        await expect(page.locator("#plan-text")).to_have_value(re.compile("^- ", re.MULTILINE))
        await page.fill("#steer", "not sent yet")
        await page.click("#approve-form button")
        await expect(page.locator(".said")).to_contain_text("plan version 1")
        await expect(page.locator(".news")).to_contain_text("search:")
        await made.quiet_moment()
        serving.send_signal(signal.SIGKILL)
        await serving.communicate()
        await expect(page.locator("#connection")).to_be_visible()
        port = urlsplit(address).port
        again = await made.begin("serve", "--page-port", str(port), "--no-mcp", "--no-chat")
        assert await printed(again, "page") == address
        report = page.frame_locator("#report-frame")
        await expect(report.locator("h1")).to_contain_text(QUESTION)
        await expect(page.locator("#connection")).to_be_hidden()
        await expect(page.locator(".state")).to_contain_text("completed")
        assert await report.locator("h1").evaluate("() => window.taken") is None
        await page.locator("#report-frame").evaluate("frame => frame.scrollIntoView()")
        await report.locator(".cite a").first.click()
        await report.locator(".passage:target").get_by_text("In its place").click()
        await expect(page.locator(".archived mark:target")).to_be_visible()
        await page.go_back()
        await page.fill("#next", "And which settings control it?")
        await page.click("#follow-up button")
        await page.click("form[action='/start'] button")
        await expect(page.get_by_text("A question that follows")).to_be_visible()
        await expect(page.locator("#report-frame")).to_be_visible()
        await page.get_by_role("link", name=re.compile("^r-")).click()
        await expect(page.locator("#thread + ol")).to_contain_text("And which settings control it?")
        await page.click("#picture summary")
        await expect(page.locator("svg.calls rect.done").first).to_be_visible()
        await expect(report.locator("#method figure.run svg")).to_have_count(1)
        written = page.locator("a[download]", has_text="html")
        whole = await page.request.get(urljoin(address, await written.get_attribute("href")))
        thread = await whole.text()
        assert (whole.status, thread.count('<figure class="run" lang="en">')) == (200, 2)
        assert thread.index(QUESTION) < thread.index("And which settings control it?")
        assert await page.evaluate("window.taken") is None
        assert problems == []
        again.send_signal(signal.SIGTERM)
        _, log = await again.communicate()
        assert (again.returncode, b"Traceback" in log) == (0, False), log.decode()
        assert made.answered_twice() == []


@pytest.mark.soak
async def test_two_people_approve_at_once(tmp_path: Path) -> None:
    """One approval counts; the other person reads that the run has begun, and both see the same run go on."""
    async with topology(tmp_path) as made, serving_page(made) as address, browsing() as browser:
        one, problems = await enter(await browser.new_context(), address)
        await ask(one, QUESTION, approval=True)
        await expect(one.locator("#approve-form")).to_be_visible()
        two, more_problems = await enter(await browser.new_context(), address)
        await two.goto(one.url)
        await expect(two.locator("#approve-form")).to_be_visible()
        await asyncio.gather(*(page.click("#approve-form button") for page in (one, two)))
        run = f"/runs/{urlsplit(one.url).path.split('/')[2]}"
        for page in (one, two):
            await page.goto(address.partition("/?")[0] + run)
            await expect(page.locator("#report-frame")).to_be_visible()
        assert problems + more_problems == []
        assert made.answered_twice() == []


@pytest.mark.soak
async def test_a_hostile_question_and_hostile_documents_run_nothing(tmp_path: Path) -> None:
    """Scripts in a question, a title, a page and a report are text: in the list, the run, its sources and its report.

    On a narrow screen nothing is wider than the screen; the keyboard alone leads from the question to the run.
    """
    async with topology(tmp_path) as made, AsyncExitStack() as stack:
        hostile_document(made)
        address = await stack.enter_async_context(serving_page(made))
        browser = await stack.enter_async_context(browsing())
        person = await browser.new_context(viewport={"width": 360, "height": 740})
        page, problems = await enter(person, address)
        await page.keyboard.type(f"{HOSTILE} {QUESTION}")
        for _ in range(6):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Start")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#report-frame")).to_be_visible()
        run = page.url
        source = "hostile.md"
        for path in ("", "/report", "/sources", f"/sources/{source}"):
            await page.goto(run.partition("?")[0] + path)
            assert await page.evaluate("window.taken") is None
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await page.goto(address)
        await expect(page.locator(".runs")).to_contain_text("<script>")
        assert await page.evaluate("window.taken") is None
        assert problems == []
