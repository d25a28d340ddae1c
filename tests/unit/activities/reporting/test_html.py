"""The report as one HTML file."""

import base64
import hashlib
import json
import re

import pytest

from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import ALLOWED, Page
from tests.unit.activities.reporting.sample import SAMPLE, VACUUM, citing, make_resolved, make_source, rendered

LOSS = "In short, catastrophic data loss."


def harmless(html: str) -> Page:
    """The page, after the checks that every page must pass."""
    page = Page(html)
    assert not page.unbalanced
    assert {tag for tag, _ in page.tags} <= ALLOWED
    names = {name for _, attributes in page.tags for name in attributes}
    assert not names & {"style", "src", "srcset", "action", "data"}
    assert not [name for name in names if name.startswith("on")]
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert all(link.startswith("#") for link in page.links)
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
    """A citation links to the very passage in its context; several passages of one source get one number."""
    page = harmless(rendered().html)
    cited = (SAMPLE.rule, SAMPLE.forced, SAMPLE.problem, SAMPLE.freezing, SAMPLE.default, SAMPLE.default)
    places = [f"#{item.id}" for item in (*cited, SAMPLE.failure, SAMPLE.failure)]
    assert [link for link in page.links if link.startswith("#ev-")] == places
    text = "".join(page.text)
    assert SAMPLE.quote(SAMPLE.failure) in text
    assert "catastrophic data loss. To avoid this" in text
    page = harmless(rendered(f"# T\n\nTold [{SAMPLE.rule.id}, {SAMPLE.problem.id}].").html)
    assert [link for link in page.links if link.startswith("#ev-")] == [f"#{SAMPLE.rule.id}", f"#{SAMPLE.problem.id}"]
    assert "[1b]" in "".join(page.text)


@pytest.mark.parametrize(
    ("language", "stated", "heading"),
    [
        ("de-AT", "de-AT", '<section class="apparatus" id="sources"><h2>Quellen</h2>'),
        ("ru", "ru", '<section class="apparatus" id="sources" lang="en"><h2>Sources</h2>'),
        ('"><script>', "en", '<section class="apparatus" id="sources"><h2>Sources</h2>'),
    ],
)
def test_language_of_the_page_is_the_language_of_the_report(language: str, stated: str, heading: str) -> None:
    """The page says in which language it is, and which parts of it are in ours."""
    html = rendered(resolved=make_resolved(language=language)).html
    assert f'<html lang="{stated}">' in html
    assert heading in html
    polish = rendered(resolved=make_resolved(output={"language": "pl"}), engine_by_role={"synthesizer": "model"}).html
    assert '<html lang="pl">' in polish


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.timeout(60)
def test_hostile_draft_is_harmless(name: str) -> None:
    """No hostile draft brings a link, an address, a tag or an attribute of its own into any form of the report."""
    result = rendered(f"# T\n\nBefore [{SAMPLE.rule.id}].\n\n{HOSTILE[name]}\n\nAfter [{SAMPLE.forced.id}].\n")
    page = harmless(result.html)
    assert "evil.test/" not in result.html
    assert "SECRET" not in result.html + result.markdown
    assert not re.search(r"https?://", result.markdown)
    assert len(page.with_class("cite")) == len(re.findall(r'id="cite-', result.html))
    assert result.citations[0].source_id == SAMPLE.rule.source_id


def test_links_lead_to_sources_only() -> None:
    """A link to a source stays, leaks no referrer and is within no other one; a link elsewhere becomes its words."""
    url = "https://good.test/a_(b)?x=1&y=2"
    evidence, run = citing(make_source(url, "A page", VACUUM, source_type="web"), VACUUM, LOSS)
    draft = f"# T\n\nSee [it]({url}), they *say* [{evidence.id}], so it is, as [that](https://evil.test/) is."
    result = rendered(draft, **run)
    outer = [a for tag, a in Page(result.html).tags if tag == "a" and not a["href"].startswith("#")]
    assert [(a["href"], a["rel"]) for a in outer] == [(url, "noopener noreferrer nofollow ugc")] * 2
    assert f"See [it]({url}), they *say* [1], so it is, as that is." in result.markdown
    assert f"<{url}>" in result.markdown
    assert json.loads(result.document)["verification"]["addresses_removed"] == 1
    said = re.findall(r'<a class="said[^>]*>(.*?)</a>', result.html)
    assert said == ["See ", ", they ", "<em>say</em>", ", so it is, as that is."]
    assert f'<span class="cite" id="cite-1">[<a role="doc-noteref" href="#{evidence.id}"' in result.html


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


def test_the_filter_has_a_button_and_a_rule_for_each_verdict_of_the_report() -> None:
    """The style sheet dims and hides, nothing runs, paper has every verdict; a sign says it to those who cannot see."""
    html = rendered().html
    assert Page(html).with_class("sign")[0]["aria-label"] == "Supported, word for word"
    buttons = [attributes["id"] for tag, attributes in Page(html).tags if tag == "input"]
    assert buttons == ["show-all", "show-supported", "show-not_enough_information"]
    screen, _, paper = html[: html.index("</style>")].partition("@media print {")
    for name in ("supported", "partial", "unsupported", "contradicted", "not_enough_information", "unverified"):
        assert f"main:has(#show-{name}:checked) .said:not(.v-{name})" in screen
    assert "show-supported" not in paper
    assert '<fieldset class="verdicts"' not in rendered("# T\n\nNothing.").html


@pytest.mark.parametrize(
    ("draft", "html"),
    [
        ("1. a\n2. b\n   - c", "<ol>\n<li>a\n</li>\n<li>b\n<ul>\n<li>c\n</li>\n</ul>\n</li>\n</ol>"),
        ("|a|b|\n|-|-:|\n|c|d|", '<thead><tr><th>a</th><th class="right">b</th></tr></thead>\n<tbody><tr><td>c</td>'),
        ("```sql\nSELECT <1>\n```", "<pre><code>SELECT &lt;1&gt;</code></pre>"),
        (
            "`git  diff --staged  -p`",
            '<p><code>git  diff <span class="whole">--staged</span>  <span class="whole">-p</span></code></p>',
        ),
        ("***x*** `y`\n\n---", "<p><strong><em>x</em></strong> <code>y</code></p>\n<hr>"),
        ("# One\n\n# Two\n\n### Three", '<h2 id="section-1">Two</h2>\n<h3>Three</h3>'),
    ],
)
def test_blocks_are_those_of_the_text(draft: str, html: str) -> None:
    """Lists, tables, code and emphasis are what they are in the Markdown."""
    assert html in rendered(draft).html
