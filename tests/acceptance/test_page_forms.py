"""Forms of the page without its script, decisions of people by it, and how it reads for those who see or hear it otherwise."""

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from tests.acceptance.test_page import CHROMIUM, SLOW, ask, browsing, enter, serving_page
from tests.acceptance.topology import topology
from tests.integration.runs import QUESTION

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

LATENCY: Final = 0.3
expect.set_options(timeout=SLOW)
AUDIT: Final = """
() => {
  const problems = [];
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((each) => +each.tagName[1]);
  if (levels.filter((level) => level === 1).length !== 1) problems.push(`headings of level 1: ${levels}`);
  levels.forEach((level, index) => {
    if (level > (levels[index - 1] || 0) + 1) problems.push(`a heading of level ${level} follows: ${levels}`);
  });
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => problems.push(`twice: ${id}`));
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, summary")) {
    const words = field.getAttribute("aria-label") || [...(field.labels || [])].map((each) => each.innerText).join("");
    if (!(words || field.textContent || "").trim()) problems.push(`without a name: ${field.outerHTML.slice(0, 90)}`);
  }
  const light = ([r, g, b]) => {
    const part = (value) => ((value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const parent = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !parent.checkVisibility() || parent.closest("svg, script, noscript")) continue;
    const [a, b] = [numbers(getComputedStyle(parent).color), behind(parent)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) problems.push(`contrast ${ratio.toFixed(1)}: ${texts.currentNode.data.slice(0, 40)}`);
  }
  return problems;
}
"""
"""What a page lacks for those who cannot see it, or see it badly: names, order of headings, contrast of text."""


async def until(page: Page, selector: str) -> None:
    """Load a page that has no script again until it has this."""
    async with asyncio.timeout(SLOW / 1_000):
        while not await page.locator(selector).count():
            await asyncio.sleep(0.3)
            await page.goto(page.url.partition("?")[0])


@pytest.mark.soak
async def test_everything_can_be_done_without_the_script(tmp_path: Path) -> None:
    """Answers, a plan in other words, its approval, guidance and an early report: forms and redirects alone."""
    async with topology(tmp_path, LATENCY) as made, serving_page(made) as address, browsing() as browser:
        page, _ = await enter(await browser.new_context(java_script_enabled=False), address)
        await ask(page, QUESTION, approval=True)
        rejected = page.url.partition("?")[0]
        words = ("--corpus", "documents", "--clarify", "required", "--approve", "plan", "--id", "asked")
        code, _, errors = await made.ask("start", QUESTION, *words)
        assert code == 0, errors
        await page.goto(rejected.rpartition("/")[0] + "/asked")
        await until(page, "#answers")
        await page.get_by_label("Which part of").fill("How it is prevented.")
        await page.click("#answers button")
        await until(page, "#approve-form")
        await page.fill("#plan-text", "Only this.\n- freezing of old rows\n- autovacuum and wraparound")
        await page.click("#plan-form button")
        await until(page, "#approve-form")
        await expect(page.locator("#plan-text")).to_have_value(re.compile("freezing of old rows"))
        assert await page.locator("#approve-form [name=version]").input_value() == "2"
        await page.click("#approve-form button")
        await expect(page.locator(".said")).to_contain_text("plan version 2")
        await page.fill("#steer", "Leave out costs.")
        await page.click("#steer-form button")
        await expect(page.locator(".said")).to_be_visible()
        if await page.get_by_role("button", name="Write the report now").count():
            await page.get_by_role("button", name="Write the report now").click()
        await until(page, "#report-frame")
        await page.goto(rejected)
        await until(page, "#approve-form")
        await page.get_by_role("button", name="Reject the plan").click()
        await until(page, ".s-cancelled, .s-empty, .s-refused")
        assert made.answered_twice() == []


@pytest.mark.soak
async def test_a_phrase_begins_a_tree_that_is_cancelled_and_resumed(tmp_path: Path) -> None:
    """Other words than the phrase begin nothing; a cancellation is asked about first, and a resumed run goes on."""
    async with topology(tmp_path, LATENCY) as made, serving_page(made) as address, browsing() as browser:
        page = await (await browser.new_context()).new_page()
        questions: list[str] = []

        async def agree(dialog: Any) -> None:
            questions.append(dialog.message)
            await dialog.accept()

        page.on("dialog", agree)
        await page.goto(address)
        await page.select_option("#strategy", "recursive")
        await ask(page, QUESTION)
        await page.fill("#phrase", "Please begin")
        await page.click("#approve-form button")
        await expect(page.locator("main")).to_contain_text("Authorized to execute")
        await page.go_back()
        await page.fill("#phrase", "Authorized to execute")
        await page.click("#approve-form button")
        await expect(page.locator(".work li.l-1").first).to_be_visible()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator(".state")).to_contain_text("cancelled")
        assert len(questions) == 1
        await page.get_by_role("button", name="Resume").click()
        await expect(page.locator(".said")).to_contain_text("goes on")
        await expect(page.locator("#report-frame")).to_be_visible()
        assert made.answered_twice() == []


@pytest.mark.soak
async def test_a_page_outlives_the_server_of_runs_and_shows_versions(tmp_path: Path) -> None:
    """The Temporal server alone is killed: the page says so, goes on, and shows two versions of a living report.

    A run that was refused is in the list with its reason.
    """
    async with topology(tmp_path, LATENCY) as made, serving_page(made) as address, browsing() as browser:
        page, problems = await enter(await browser.new_context(), address)
        await page.select_option("#strategy", "living")
        await ask(page, QUESTION)
        await page.click("#approve-form button")
        await expect(page.locator(".news")).to_contain_text("search:")
        made.kill_server()
        await expect(page.locator("#report-frame")).to_be_visible()
        await page.reload()
        await page.click("#versions summary")
        await page.locator("#versions a").last.click()
        await expect(page.locator(".compare .differs").first).to_be_visible()
        refused = {"query": QUESTION, "corpus": "gone"}
        client = await made.client()
        await client.start_workflow("deep-research", refused, id="r-refused", task_queue="research-workflows")
        await page.goto(page.url.partition("/compare")[0])
        await expect(page.locator("#row-r-refused .state")).to_contain_text("refused")
        await expect(page.locator("#row-r-refused")).to_contain_text("no corpus of that name")
        await page.click("#row-r-refused a")
        await expect(page.locator(".facts")).to_contain_text("no corpus of that name")
        assert problems == []
        assert made.answered_twice() == []


@pytest.mark.soak
async def test_the_page_can_be_read_in_the_dark_and_by_a_screen_reader(tmp_path: Path) -> None:
    """Names of fields, order of headings, unique ids and contrast, on every page and in both colour schemes."""
    async with topology(tmp_path, LATENCY) as made, serving_page(made) as address, browsing() as browser:
        page, problems = await enter(await browser.new_context(), address)
        base = page.url.rstrip("/")
        found = {"home": await audit(page)}
        await page.fill("#query", QUESTION)
        await page.check("input[name=approve]")
        await page.click("form.ask button")
        found["preview"] = await audit(page)
        await page.click("form[action='/start'] button")
        await expect(page.locator("#approve-form")).to_be_visible()
        run = page.url.partition("?")[0]
        found["approval"] = await audit(page)
        outline = await page.locator("main").aria_snapshot()
        assert 'textbox "The plan, version 1' in outline
        assert 'heading "Begin with this plan?" [level=2]' in outline
        assert re.search("listitem:\n.*strong: gather\n.*waiting", outline), outline
        await page.click("#approve-form button")
        await expect(page.locator("article.draft")).to_be_visible()
        await expect(page.locator("article.draft a[href*='/passages/']").first).to_have_text("[1]")
        found["draft"] = await audit(page)
        await expect(page.locator("#report-frame")).to_be_visible()
        await page.locator("details").evaluate_all("all => all.forEach((each) => (each.open = true))")
        await expect(page.locator("#longest li").first).to_be_visible()
        found["over"] = await audit(page)
        identity = run.rpartition("/")[2]
        for path in (f"{run}/sources", f"{run}/report.txt", f"{base}/compare?a={identity}&b={identity}", base):
            await page.goto(path)
            found[path] = await audit(page)
        await page.goto(f"{run}/sources")
        await page.locator(".sources a").first.click()
        await expect(page.locator(".archived mark").first).to_be_visible()
        await page.wait_for_load_state()
        found["source"] = await audit(page)
        assert {name: lacks for name, lacks in found.items() if lacks} == {}
        assert problems == []


async def audit(page: Page) -> list[str]:
    """What a page lacks, in light and in dark."""
    lacks = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        lacks += [f"{scheme}: {each}" for each in await page.evaluate(AUDIT)]
    return lacks


@pytest.mark.soak
async def test_many_pages_can_be_open(tmp_path: Path) -> None:
    """A browser has six connections to an address: pages that nobody looks at use none, and go on when looked at."""
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    async with topology(tmp_path, LATENCY) as made, serving_page(made) as address, browsing() as browser:
        person = await browser.new_context()
        pages = []
        for _ in range(9):
            page, _ = await enter(person, address)
            await expect(page.locator("#query")).to_be_visible()
            await page.evaluate(hide, True)
            pages.append(page)
        await ask(pages[0], QUESTION)
        await pages[1].evaluate(hide, False)
        await expect(pages[1].locator(".runs")).to_contain_text(QUESTION)
