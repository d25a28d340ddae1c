"""Links and addresses in reports: those of sources alone are left, in whatever spelling and place others come."""

import json
import re
from html import unescape
from typing import Any

import pytest
from markdown_it import MarkdownIt

from activities.reporting.references import REMOVED, KnownAddresses
from activities.reporting.render import RenderedForms
from activities.reporting.tree import parse, write
from contracts.evidence import Gap
from contracts.vocabulary import GapStatus
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import Page, link_targets
from tests.unit.activities.reporting.sample import SAMPLE, citing, make_source, rendered
from tests.unit.activities.reporting.whole import World

URL = "https://first.test/page?id=7"
BOTH = {URL, "https://b.test/"}
SPELLINGS = {
    "plain": "https://evil.test/?d=SECRET",
    "decimal entity": "http&#58;//evil.test/?d=SECRET",
    "named entity": "http&colon;//evil.test/?d=SECRET",
    "entities for slashes": "http:&#x2f;&sol;evil.test/?d=SECRET",
    "entity in the scheme": "h&#116;tp://evil.test/?d=SECRET",
    "backslashes": "http:\\\\evil.test/?d=SECRET",
    "no slash": "https:evil.test/?d=SECRET",
    "escaped colon": "http\\://evil.test/?d=SECRET",
    "own host as user": "https://first.test:443@evil.test/?d=SECRET",
    "no scheme": "//evil.test/?d=SECRET",
    "no scheme, backslashes": "\\\\\\\\evil.test/?d=SECRET",
    "bare host": "evil.com/?d=SECRET",
    "other scheme": "ftp://evil.test/?d=SECRET",
    "mail": "mailto:SECRET@evil.com",
    "bare mail": "SECRET@evil.com",
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
    if isinstance(value, str):
        return {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return {key: text for name, item in items for key, text in texts(item, f"{path}/{name}").items()}


def leads_to(forms: RenderedForms) -> set[str]:
    """Where links of the page and of the Markdown lead. Nothing else of the page loads or sends anything."""
    page = Page(forms.html)
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "form", "object", "embed", "base", "link", "script"), tag
        assert not attributes.keys() & {"src", "action", "style"}
    return {link for link in page.links if not link.startswith("#")} | targets(forms.markdown)


def check(forms: RenderedForms) -> None:
    """No form of a report leads anywhere but to the registered addresses, nor would a text of `report.json`."""
    assert leads_to(forms) <= BOTH
    allowed = "|".join(map(re.escape, sorted(BOTH, key=len, reverse=True)))
    for path, text in texts(json.loads(forms.document)).items():
        left = re.sub(allowed, "", unescape(text.replace("\\&", "&amp;")))
        assert QUOTED.match(path) or not FOLLOWED.search(left), (path, text)


@pytest.mark.one_in(4)
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
    assert whole.audited.problems == []
    check(whole.rendering)
    if name not in IN_CODE:
        assert "SECRET" not in whole.rendering.markdown + whole.rendering.html


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


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", HOSTILE | SPELLINGS)
@pytest.mark.timeout(60)
def test_no_words_of_a_page_are_a_link(name: str) -> None:
    """Title, authors, quotation, heading, reason, gap, limit and decision bring no link, image or tag of their own."""
    words = (HOSTILE | SPELLINGS)[name].replace("\ud800", "")[:600]
    both = f"{words} and [this]({words})"
    text = f"Start. {both} End."
    named = {"publisher": words, "authors": [words], "quality_reason": words, "source_type": "web"}
    evidence, run = citing(make_source(URL, words, text, **named), text, text, heading=both)
    decision = SAMPLE.state().people.decisions[0].model_copy(update={"rationale": both})
    gap = Gap(id="gap-1", description=both[:400], status=GapStatus.OPEN)
    run |= {"gaps": [gap], "limitations": [both], "degraded": [both], "decisions": [decision]}
    forms = rendered(f"# T\n\nTold [{evidence.id}].", **run)
    check(forms)
    assert set(link_targets(forms.markdown)) == {URL}


@pytest.mark.parametrize("name", ODD_ADDRESSES)
def test_whatever_address_a_hit_has_leads_nowhere_else(name: str) -> None:
    """An address that is none of the web is no link; one with signs of markup in it stays within its own."""
    url = ODD_ADDRESSES[name]
    evidence, run = citing(make_source(url, "A page", TEXT, source_type="web"), TEXT, TEXT)
    forms = rendered(f"# T\n\nTold [{evidence.id}] by [this]({url.replace(chr(10), '')}).", **run)
    for target in leads_to(forms) | set(link_targets(forms.markdown)):
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
        ("[a](good.test/page) [b](https://[broken/)", "a b", 2),
        ("[a *b* `c`](https://evil.test/)", "a *b* `c`", 1),
        ("At https://evil.test/, they say", f"At {REMOVED}, they say", 1),
        ("[https://bank.test](https://good.test/page)", f"[{REMOVED}](https://good.test/page)", 1),
        ("Ask someone@good.test or other@evil.test", f"Ask `someone@good.test` or {REMOVED}", 1),
    ],
)
def test_links_outside_the_registry_become_their_words(draft: str, text: str, foreign: int) -> None:
    """C.8: a link to a source stays in the form of its source; other links become words, other addresses are noted."""
    found: list[str] = []
    assert write(parse(draft, REGISTRY.filter(found))).text == text + "\n"
    assert len(set(found)) == foreign
