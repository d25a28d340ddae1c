"""The report as one HTML file."""

import base64
import hashlib
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.render import RenderedForms, render
from contracts.addresses import digest
from contracts.evidence import Source
from contracts.request import Constraints, Output
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import ALLOWED, Page
from tests.unit.activities.reporting.sample import (
    SKIPPED,
    VACUUM,
    Sample,
    make_evidence,
    make_resolved,
    make_source,
)

SAMPLE = Sample()


def rendered(words: str | None = None, **changes: object) -> RenderedForms:
    """The sample run with another draft or another state."""
    return render(SAMPLE.state(**changes), SAMPLE.draft if words is None else words, SAMPLE.texts, SKIPPED, "0.1.0")


def harmless(html: str) -> Page:
    """The page, after the checks that every page must pass."""
    page = Page(html)
    assert not page.unbalanced
    assert {tag for tag, _ in page.tags} <= ALLOWED
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on") or name == "style"]
    assert not [
        name for _, attributes in page.tags for name in attributes if name in ("src", "srcset", "action", "data")
    ]
    assert len(page.ids) == len(set(page.ids))
    inner = [link.removeprefix("#") for link in page.links if link.startswith("#")]
    assert set(inner) <= set(page.ids)
    assert not [link for link in page.links if not link.startswith("#")]
    return page


def test_page_loads_nothing_and_runs_nothing() -> None:
    """No script, no handler, nothing loaded; the policy admits our style sheet by its hash and nothing else."""
    html = rendered().html
    page = harmless(html)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    style = re.search("<style>(.*?)</style>", html, re.DOTALL)
    assert style
    expected = base64.b64encode(hashlib.sha256(style.group(1).encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{expected}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", style.group(1))


def test_citation_opens_the_named_passage() -> None:
    """A citation links to the very passage, in its context, not only to its source."""
    page = harmless(rendered().html)
    cited = [link for link in page.links if link.startswith("#ev-")]
    assert cited == [
        f"#{item.id}"
        for item in (
            SAMPLE.rule,
            SAMPLE.forced,
            SAMPLE.problem,
            SAMPLE.freezing,
            SAMPLE.default,
            SAMPLE.default,
            SAMPLE.failure,
            SAMPLE.failure,
        )
    ]
    text = "".join(page.text)
    assert SAMPLE.quote(SAMPLE.failure) in text
    assert "catastrophic data loss. To avoid this" in text


def test_marker_with_several_passages_links_each() -> None:
    """Two passages of one source in one marker give one number with two links."""
    page = harmless(rendered(f"# T\n\nTold [{SAMPLE.rule.id}, {SAMPLE.problem.id}].").html)
    assert [link for link in page.links if link.startswith("#ev-")] == [f"#{SAMPLE.rule.id}", f"#{SAMPLE.problem.id}"]
    assert "[1b]" in "".join(page.text)


def test_language_of_the_page_is_the_language_of_the_report() -> None:
    """The page says in which language it is, and which parts of it are in ours."""
    german = rendered(resolved=make_resolved(language="de")).html
    assert '<html lang="de">' in german
    assert '<section class="apparatus" id="sources"><h2>Quellen</h2>' in german
    austrian = rendered(resolved=make_resolved(language="de-AT")).html
    assert '<html lang="de-AT">' in austrian
    assert '<section class="apparatus" id="sources"><h2>Quellen</h2>' in austrian
    russian = rendered(resolved=make_resolved(language="ru")).html
    assert '<section class="apparatus" id="sources" lang="en"><h2>Sources</h2>' in russian
    polish = rendered(resolved=make_resolved(output={"language": "pl"}), engine_by_role={"synthesizer": "model"}).html
    assert '<html lang="pl">' in polish
    assert '<html lang="en">' in rendered(resolved=make_resolved(language='"><script>')).html


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(10)
def test_hostile_draft_is_harmless(name: str) -> None:
    """No hostile draft brings a link, an address, a tag or an attribute of its own into any form of the report."""
    result = rendered(f"# T\n\nBefore [{SAMPLE.rule.id}].\n\n{HOSTILE[name]}\n\nAfter [{SAMPLE.forced.id}].\n")
    page = harmless(result.html)
    assert "evil.test/" not in result.html
    assert "SECRET" not in result.html + result.markdown
    assert not re.search(r"https?://", result.markdown)
    assert len(page.with_class("cite")) == len(re.findall(r'id="cite-', result.html))
    assert result.citations[0].source_id == SAMPLE.rule.source_id


def web_source(url: str, text: str) -> Source:
    """A source of the web."""
    return make_source(url, "A page", text, provider="tavily", source_type="web")


def test_links_lead_to_sources_only() -> None:
    """A link to a source stays and cannot leak where the reader comes from; a link elsewhere becomes its words."""
    url = "https://good.test/a_(b)?x=1&y=2"
    source = web_source(url, VACUUM)
    evidence = make_evidence(source, VACUUM, "In short, catastrophic data loss.")
    draft = f"# T\n\nSee [the page]({url}) and [that](https://evil.test/) [{evidence.id}]."
    state = SAMPLE.state(sources={source.id: source}, evidence={evidence.id: evidence})
    result = render(state, draft, {digest(VACUUM): VACUUM}, [], "0.1.0")
    page = Page(result.html)
    outer = [a for tag, a in page.tags if tag == "a" and not a["href"].startswith("#")]
    assert [a["href"] for a in outer] == [url, url]
    assert {a["rel"] for a in outer} == {"noopener noreferrer nofollow ugc"}
    assert f"[the page]({url}) and that [1]." in result.markdown
    assert f"<{url}>" in result.markdown
    assert json.loads(result.document)["verification"]["addresses_removed"] == 1


TEXT = st.text(
    alphabet=st.one_of(st.sampled_from("[]()<>`*_#|!\\&:/\"'\n $-1a"), st.characters(codec="utf-8")), max_size=120
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(TEXT)
def test_any_draft_gives_a_harmless_page(draft: str) -> None:
    """No draft whatever breaks the page."""
    harmless(rendered(f"{draft}\n\nTold [{SAMPLE.rule.id}].").html)


def test_the_report_says_which_wishes_were_not_applied() -> None:
    """Language, sections and readers are for a model; where none wrote the report, it says so."""
    plain = SAMPLE.state()
    assert plain.resolved is not None
    asked = plain.resolved.model_copy(
        update={"output": Output(language="de"), "constraints": Constraints(audience="nurses")}
    )
    for engine, said in (("model", False), ("extractive", True)):
        state = SAMPLE.state(resolved=asked, engine_by_role={"synthesizer": engine})
        text = render(state, SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0").markdown
        assert ("nurses" in text and "Not applied" in text) is said
    assert "Asked for" not in render(plain, SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0").markdown


def test_a_sentence_leads_to_verdict_method_reason_quote_source_and_date() -> None:
    """What a tap opens has all that a reader needs to judge the sentence; a second passage is shown, too."""
    words = "Tables may be vacuumed some day"
    html = rendered(f"# T\n\n{words} [{SAMPLE.rule.id}, {SAMPLE.forced.id}].").html
    page = harmless(html)
    assert {attributes["href"] for attributes in page.with_class("said")} == {"#claim-1"}
    sheet = html[html.index(f'id="{SAMPLE.rule.id}"') :]
    sheet = sheet[: sheet.index("Close</a>")]
    assert 'id="claim-1"' in sheet
    shown = " ".join(re.sub(r"<[^>]+>", " ", sheet).split())
    for part in ("judged by rules", f"{words}.", SAMPLE.quote(SAMPLE.rule), "read 2026-11-21", "catastrophic data loss.",
                 "[1] 25.1. Routine Vacuuming", "Specifies the maximum age", "20.10. Automatic Vacuuming"):  # fmt: skip
        assert part in shown


def test_signs_are_reached_by_keyboard_and_words_only_by_touch() -> None:
    """One stop for each sentence: its sign, with the verdict in words for those who cannot see it."""
    page = harmless(rendered().html)
    signs = page.with_class("sign")
    assert len(signs) == 8
    assert {attributes.get("tabindex") for attributes in signs} == {None}
    assert signs[0]["aria-label"] == "Supported, word for word"
    assert {attributes["tabindex"] for attributes in page.with_class("said")} == {"-1"}
    assert [attributes["id"] for attributes in signs] == [f"said-{number}" for number in range(1, 9)]


def test_the_filter_has_a_button_and_a_rule_for_each_verdict_of_the_report() -> None:
    """Radio buttons choose, the style sheet dims and hides; nothing runs, and paper has every verdict."""
    html = rendered().html
    buttons = [attributes for tag, attributes in Page(html).tags if tag == "input"]
    assert [(each["type"], each["name"], each["id"]) for each in buttons] == [
        ("radio", "verdict", name) for name in ("show-all", "show-supported", "show-not_enough_information")
    ]
    assert [each["id"] for each in buttons if "checked" in each] == ["show-all"]
    style = html[: html.index("</style>")]
    screen = style[style.index("@media screen {") : style.index("details.more")]
    for name in ("supported", "partial", "unsupported", "contradicted", "not_enough_information", "unverified"):
        assert f"main:has(#show-{name}:checked) .said:not(.v-{name})" in screen
        assert f"main:has(#show-{name}:checked) .check:not(:target, .v-{name})" in screen
    assert "All 8" in html
    paper = style.partition("@media print {")[2]
    hidden = re.findall(r"([^{}]+)\{[^{}]*display: none", paper)
    assert not [name for name in (".sign", ".check,", ".verdict ", ".reason") if any(name in each for each in hidden)]
    assert "show-supported" not in paper
    assert '<fieldset class="verdicts"' not in rendered("# T\n\nNothing.").html


def test_links_and_numbers_within_a_sentence_stay_and_the_words_around_them_lead() -> None:
    """No link is within another, and a sentence leads to its check also behind one."""
    url = "https://good.test/a"
    source = web_source(url, VACUUM)
    evidence = make_evidence(source, VACUUM, "In short, catastrophic data loss.")
    state = SAMPLE.state(sources={source.id: source}, evidence={evidence.id: evidence})
    draft = f"# T\n\nSee [it]({url}), they *say* [{evidence.id}], so it is."
    html = render(state, draft, {digest(VACUUM): VACUUM}, [], "0.1.0").html
    said = re.findall(r'<a class="said[^>]*>(.*?)</a>', html)
    assert said == ["See ", ", they ", "<em>say</em>", ", so it is."]
    assert f'<a href="{url}" rel="noopener noreferrer nofollow ugc">it</a>' in html
    assert f'<span class="cite" id="cite-1">[<a role="doc-noteref" href="#{evidence.id}"' in html


def test_a_statement_without_a_passage_leads_to_its_check_too() -> None:
    """What cites nothing is listed by itself, with the way back to the text."""
    made = rendered("# T\n\nNobody has ever known why it is so.\n", engine_by_role={"synthesizer": "model"})
    page = harmless(made.html)
    assert {each["href"] for each in page.with_class("said")} == {"#claim-1"}
    listed = made.html[made.html.index('id="statements"') :]
    assert 'id="claim-1"' in listed
    assert 'href="#said-1"' in listed
    assert "It cites no passage." in listed


@pytest.mark.parametrize(
    ("draft", "html"),
    [
        ("1. a\n2. b\n   - c", "<ol>\n<li>a\n</li>\n<li>b\n<ul>\n<li>c\n</li>\n</ul>\n</li>\n</ol>"),
        ("3. a\n\n   b", '<ol start="3">\n<li><p>a</p>\n<p>b</p>\n</li>'),
        ("a  \nb", "<p>a<br>\nb</p>"),
        ("|a|b|\n|-|-:|\n|c|d|", '<thead><tr><th>a</th><th class="right">b</th></tr></thead>\n<tbody><tr><td>c</td>'),
        ("```sql\nSELECT <1>\n```", "<pre><code>SELECT &lt;1&gt;</code></pre>"),
        ("***x*** `y`\n\n---", "<p><strong><em>x</em></strong> <code>y</code></p>\n<hr>"),
        ("# One\n\n# Two\n\n### Three", '<h2 id="section-1">Two</h2>\n<h3>Three</h3>'),
    ],
)
def test_blocks_are_those_of_the_text(draft: str, html: str) -> None:
    """Lists, tables, code and emphasis are what they are in the Markdown."""
    assert html in rendered(draft).html
