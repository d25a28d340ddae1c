"""Sources of the web in a report: what they call themselves, and the addresses that they have."""

import re

import pytest

from activities.reporting.render import render
from contracts.addresses import digest
from contracts.evidence import Source
from contracts.vocabulary import SourceStatus
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import Page, link_targets
from tests.unit.activities.reporting.sample import Sample, make_evidence, make_source

SAMPLE = Sample()
GOOD = "https://good.test/page"
ODD_ADDRESSES = {
    "javascript": "javascript:alert(1)",
    "data": "data:text/html;base64,PHNjcmlwdD4=",
    "vbscript": "vbscript:x",
    "protocol relative": "//evil.test/x",
    "file": "file:///etc/passwd",
    "closes the attribute": 'https://good.test/"><script>alert(1)</script>',
    "closes the link": "https://good.test/)](https://evil.test/",
    "closes the autolink": "https://good.test/>[x](javascript:alert(1))<",
    "a tag": "https://good.test/<img src=x onerror=alert(1)>",
    "an image": "https://good.test/![x](https://evil.test/)",
    "a line end": "https://good.test/\n\n[1]: https://evil.test/",
    "user name": "https://good.test@evil.test/",
}
TEXT = "Vacuuming marks old rows as frozen."


def rendered(source: Source, text: str, draft: str = "# T\n\nTold {}.") -> tuple[Page, str, str]:
    """The page, its HTML and the Markdown of a report that cites one source."""
    evidence = make_evidence(source, text, text, heading=source.title)
    state = SAMPLE.state(sources={source.id: source}, evidence={evidence.id: evidence})
    result = render(state, draft.format(f"[{evidence.id}]"), {digest(text): text}, [], "0.1.0")
    return Page(result.html), result.html, result.markdown


def outer_links(page: Page) -> set[str]:
    """Where links of the page lead, those to its own places apart."""
    return {str(a.get("href")) for tag, a in page.tags if tag == "a" and not str(a.get("href", "")).startswith("#")}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(10)
def test_whatever_a_page_calls_itself_is_text(name: str) -> None:
    """Title, authors, publisher, snippet, heading and passage bring no link, image or tag; its own address is one."""
    words = HOSTILE[name].replace("\ud800", "")[:600]
    text = f"Start. {words} End."
    source = make_source(
        GOOD, words, text, publisher=words, authors=[words], snippet=words, quality_reason=words,
        provider="searxng", source_type="web",
    )  # fmt: skip
    page, _, markdown = rendered(source, text)
    assert outer_links(page) == {GOOD}
    assert set(link_targets(markdown)) <= {GOOD}
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "script", "object", "embed", "form", "base"}
    assert not re.search(r"(?<!\\)<(?:img|script|iframe|svg|object|form)", markdown)


@pytest.mark.parametrize("name", ODD_ADDRESSES)
@pytest.mark.parametrize("status", [SourceStatus.FULL, SourceStatus.FAILED])
def test_whatever_address_a_hit_has_leads_nowhere_else(name: str, status: SourceStatus) -> None:
    """An address that is none of the web is no link; one with signs of markup in it stays within its own."""
    url = ODD_ADDRESSES[name]
    source = make_source(url, "A page", TEXT, provider="searxng", source_type="web").model_copy(
        update={"status": status}
    )
    page, html, markdown = rendered(source, TEXT, "# T\n\nTold {} by [this](" + url.replace("\n", "") + ").")
    for target in outer_links(page) | set(link_targets(markdown)):
        assert re.match(r"https?://good\.test/", target), target
    assert not {tag for tag, _ in page.tags} & {"img", "script"}
    assert "<script" not in html.replace("\\<", "")
