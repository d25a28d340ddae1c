"""Links and addresses in reports: those of sources alone are left, in whatever spelling and place others come."""

import json
import re
from html import unescape
from typing import Any

import pytest
from markdown_it import MarkdownIt

from activities.reporting.addresses import REMOVED, KnownAddresses
from activities.reporting.markdown import write
from activities.reporting.tree import parse
from contracts.evidence import Gap, Source
from contracts.outcome import AgentDecision
from contracts.vocabulary import AgentRole, GapStatus, Phase
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import Page, link_targets
from tests.unit.activities.reporting.sample import citing, make_source, rendered
from tests.unit.activities.reporting.whole import Whole, World

URL = "https://first.test/page?id=7"
BOTH = {URL, "https://b.test/"}
SPELLINGS = {
    "plain": "https://evil.test/?d=SECRET",
    "decimal entity": "http&#58;//evil.test/?d=SECRET",
    "named entity": "http&colon;//evil.test/?d=SECRET",
    "entities for slashes": "http:&#x2f;&sol;evil.test/?d=SECRET",
    "entity in the scheme": "h&#116;tp://evil.test/?d=SECRET",
    "entity in the host": "http://&#101;vil.test/?d=SECRET",
    "backslashes": "http:\\\\evil.test/?d=SECRET",
    "no slash": "https:evil.test/?d=SECRET",
    "escaped colon": "http\\://evil.test/?d=SECRET",
    "own host as user": "https://first.test:443@evil.test/?d=SECRET",
    "no scheme": "//evil.test/?d=SECRET",
    "no scheme, backslashes": "\\\\\\\\evil.test/?d=SECRET",
    "www": "www.evil.test/?d=SECRET",
    "bare host": "evil.com/?d=SECRET",
    "other scheme": "ftp://evil.test/?d=SECRET",
    "mail": "mailto:SECRET@evil.com",
    "bare mail": "SECRET@evil.com",
    "own page, another query": f"{URL}&d=SECRET",
    "own page, tracking": f"{URL}&utm_source=SECRET",
    "own page, session": "https://first.test/page;jsessionid=SECRET?id=7",
    "own page, user": "https://SECRET@first.test/page?id=7",
}
IN_CODE = ("bare host", "escaped colon", "no scheme, backslashes")
"""What is in code stays as it is written; a backslash in it makes no address."""
FORMS = (
    "See {} now.",
    "See [it]({}) now.",
    "See [it]({} 'SECRET') now.",
    "[![it]({})]({})",
    "See [it][ref] now.\n\n[ref]: {}",
    "See [ref] now.\n\n> [ref]: <{}>",
    '<a href="{}">it</a>',
    "See **{}** and _{}_ now.",
    "| a | b |\n|---|---|\n| {} | [it]({}) |",
    "## See {} and [it]({})",
    "- {}\n- [it]({})",
    "`{}`",
    "\\[it]({}) \\\\[it]({})",
    "[it\nit](\n{}\n)",
)
RENDERERS = [
    MarkdownIt("commonmark", {"html": False, "linkify": True}).enable(["table", "linkify"]),
    MarkdownIt("gfm-like", {"html": True}),
]
FOLLOWED = re.compile(r"(?:https?|ftps?|wss?):[/\\]*[\w\[]|(?<![:\w/\\])[/\\]{2}[\w-]+\.|\bwww\.", re.IGNORECASE)
"""What a browser would follow, however the slashes lie."""
QUOTED = re.compile(r"/(?:evidence/\d+/(?:quote|prefix|suffix)|effective_request|query)")


def targets(markdown: str) -> set[str]:
    """Where links and images of a Markdown text lead, by parsers that make links of bare addresses; it has no tag."""
    found = set()
    for renderer in RENDERERS:
        for token in renderer.parse(markdown):
            for child in token.children or []:
                # A sign of emphasis behind a bare address is taken for a part of it by some.
                found |= {str(value).rstrip("_*") for name, value in child.attrs.items() if name in ("href", "src")}
            assert token.type != "html_block"
            assert not any(child.type == "html_inline" for child in token.children or [])
    return found


def texts(value: Any, path: str = "") -> dict[str, str]:
    """Every text of a JSON value by its path."""
    if isinstance(value, str):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {key: text for name, item in items for key, text in texts(item, f"{path}/{name}").items()}


def outer_links(page: Page) -> set[str]:
    """Where links of the page lead, those to its own places apart. Nothing else of the page loads or sends anything."""
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "form", "object", "embed", "base", "link", "script"), tag
        assert not attributes.keys() & {"src", "action", "style"}
    return {link for link in page.links if not link.startswith("#")}


def check(whole: Whole) -> None:
    """No form of a report leads anywhere but to the registered addresses."""
    assert whole.audited.problems == []
    assert targets(whole.rendering.markdown) <= BOTH
    assert outer_links(Page(whole.rendering.html)) <= BOTH
    allowed = "|".join(map(re.escape, sorted(BOTH, key=len, reverse=True)))
    for path, text in texts(json.loads(whole.rendering.document)).items():
        left = re.sub(allowed, "", unescape(text.replace("\\&", "&amp;")))
        assert QUOTED.match(path) or not FOLLOWED.search(left), (path, text)


@pytest.mark.parametrize("name", SPELLINGS)
async def test_no_link_of_a_model_carries_anything_out(name: str) -> None:
    """Whatever a model writes, its report links to registered addresses in their own spelling, and says no SECRET."""
    world = World.of(
        "The first page says a true thing.", "The second page says another.", urls=(URL, "https://b.test/")
    )
    marker = world.marker(0)
    # A section for each form, and a fact behind it that ends what the form opens.
    parts = [
        f"## Part\n\n{form.replace('{}', SPELLINGS[name]).replace('[ref]', f'[ref{n}]')}\n\nAnother fact {marker}."
        for n, form in enumerate(FORMS)
    ]
    whole = await world.written("\n\n".join([f"# T\n\nA fact {marker}.", *parts]))
    assert whole.rendering.markdown.count("Another fact") >= len(FORMS)
    check(whole)
    if name not in IN_CODE:
        assert "SECRET" not in whole.rendering.markdown + whole.rendering.html


@pytest.mark.parametrize("name", SPELLINGS)
async def test_no_words_of_a_page_carry_anything_out(name: str) -> None:
    """An address in a quotation, a title, a heading, a gap, a reason, a limit or a decision is no link in any form."""
    spelled = SPELLINGS[name]
    both = f"{spelled} and [this]({spelled})"
    page = f"Vacuum prevents wraparound, see {both} in every table of it."
    world = World.of(
        page, "Vacuum freezes old rows of a table.", urls=(URL, "https://b.test/"), titles=(f"A {spelled}", "B")
    )
    source = world.sources[0].model_copy(update={"quality_reason": f"said {spelled}", "authors": [spelled]})
    evidence = world.evidence[0].model_copy(update={"heading": f"[Head]({spelled})"})
    world = World([source, world.sources[1]], [evidence, world.evidence[1]], world.texts)
    decision = AgentDecision(
        seq=1,
        agent=AgentRole.SUPERVISOR,
        action="proceed",
        phase=Phase.PLANNING,
        rationale=f"For {both}",
        timestamp="2026-11-21T20:15:05+00:00",
    )
    gap = Gap(id="gap-1", description=f"Ask {both}", status=GapStatus.OPEN)
    check(
        await world.extractive(
            gaps=[gap], limitations=[f"Not {spelled}"], degraded=[f"Lost {spelled}"], decisions=[decision]
        )
    )


# --- sources of the web ----------------------------------------------------------------------------------------------
TEXT = "Vacuuming marks old rows as frozen."
ODD_ADDRESSES = {
    "javascript": "javascript:alert(1)",
    "protocol relative": "//evil.test/x",
    "closes the attribute": 'https://good.test/"><script>alert(1)</script>',
    "closes the link": "https://good.test/)](https://evil.test/",
    "closes the autolink": "https://good.test/>[x](javascript:alert(1))<",
    "a tag": "https://good.test/<img src=x onerror=alert(1)>",
    "an image": "https://good.test/![x](https://evil.test/)",
    "a line end": "https://good.test/\n\n[1]: https://evil.test/",
    "user name": "https://good.test@evil.test/",
}


def links_of(source: Source, text: str, words: str = "") -> set[str]:
    """Where the links of a report lead that cites one source."""
    evidence, run = citing(source, text, text, heading=source.title)
    forms = rendered(f"# T\n\nTold [{evidence.id}]{words}.", **run)
    targets(forms.markdown)
    return outer_links(Page(forms.html)) | set(link_targets(forms.markdown))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(10)
def test_whatever_a_page_calls_itself_is_text(name: str) -> None:
    """Title, authors, publisher, heading and passage bring no link, image or tag; its own address is one."""
    words = HOSTILE[name].replace("\ud800", "")[:600]
    text = f"Start. {words} End."
    named = {"publisher": words, "authors": [words], "quality_reason": words, "source_type": "web"}
    assert links_of(make_source("https://good.test/page", words, text, **named), text) == {"https://good.test/page"}


@pytest.mark.parametrize("name", ODD_ADDRESSES)
def test_whatever_address_a_hit_has_leads_nowhere_else(name: str) -> None:
    """An address that is none of the web is no link; one with signs of markup in it stays within its own."""
    url = ODD_ADDRESSES[name]
    source = make_source(url, "A page", TEXT, source_type="web")
    for target in links_of(source, TEXT, " by [this](" + url.replace("\n", "") + ")"):
        assert re.match(r"https?://good\.test/", target), target


# --- addresses -------------------------------------------------------------------------------------------------------
REGISTRY = KnownAddresses.of(
    ["https://good.test/page", "https://good.test/a_(b)", "corpus:manual/my file.html"],
    "What is https://asked.test/x?",
    ["Write to someone@good.test."],
)


@pytest.mark.parametrize(
    ("draft", "text", "foreign"),
    [
        ("[a](<https://good.test/a_(b)>)", "[a](https://good.test/a_(b))", 0),
        ("<HTTPS://GOOD.test:443/page#x>", "<https://good.test/page>", 0),
        ("At https://good.test/page?utm_source=x.", "At <https://good.test/page>.", 0),
        ("(https://good.test/a_(b));", "(<https://good.test/a_(b)>);", 0),
        ("At https://asked.test/x they say", "At https://asked.test/x they say", 0),
        ("At corpus:manual/my file.html", "At corpus:manual/my file.html", 0),
        ("[a](https://asked.test/x)", "a", 1),
        ("[a](good.test/page) [b](https://[broken/)", "a b", 2),
        ("[a *b* `c`](https://evil.test/)", "a *b* `c`", 1),
        ("![a](https://evil.test/)", "a", 1),
        ("At https://evil.test/, they say", f"At {REMOVED}, they say", 1),
        ("At corpus:manual/other.html", f"At {REMOVED}", 1),
        ("[https://bank.test](https://good.test/page)", f"[{REMOVED}](https://good.test/page)", 1),
        ("[a][r]\n\n[r]: https://evil.test/", f"\\[a\\]\\[r\\]\n\n\\[r\\]: {REMOVED}", 1),
        ("`curl https://evil.test/`", f"`curl {REMOVED}`", 1),
        ("Ask someone@good.test or other@evil.test", f"Ask `someone@good.test` or {REMOVED}", 1),
    ],
)
def test_links_outside_the_registry_become_their_words(draft: str, text: str, foreign: int) -> None:
    """C.8: a link to a source stays in the form of its source; other links become words, other addresses are noted."""
    found: list[str] = []
    assert write(parse(draft, REGISTRY.filter(found))).text == text + "\n"
    assert len(set(found)) == foreign
