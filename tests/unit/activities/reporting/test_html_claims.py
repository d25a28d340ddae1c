"""Sentences of the HTML report: each leads to its check, and a filter works without a script."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting import markdown_report
from activities.reporting.citations import CitationMark
from activities.reporting.html_body import render_body
from activities.reporting.html_claims import MARK, LinkedClaim, filter_by_verdict, place_claims
from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.links import Registry
from activities.reporting.render import render
from activities.reporting.report_words import ReportWords
from tests.unit.activities.reporting.page import Page
from tests.unit.activities.reporting.sample import SKIPPED, Sample
from tests.unit.activities.reporting.test_html import harmless, rendered

SAMPLE = Sample()
NOWHERE = Registry.of([])
ENGLISH = ReportWords("en")


def claim(text: str, *, verdict: str) -> PlacedClaim:
    """A claim with these words."""
    return PlacedClaim("c-1", text, 0, len(text), "general", "", [], [], [], verdict, "rules", "So it is.")


def linked(text: str, *stretches: str) -> str:
    """The body of a text of which these words are claims."""
    placed = [
        LinkedClaim(index, claim(words, verdict="partial"), text.index(words), text.index(words) + len(words))
        for index, words in enumerate(stretches, start=1)
    ]
    return render_body(text, [], NOWHERE, ENGLISH, placed).html


def test_a_sentence_leads_to_verdict_method_reason_quote_source_and_date() -> None:
    """What a tap opens has all that a reader needs to judge the sentence."""
    words = "Tables may be vacuumed some day"
    html = rendered(f"# T\n\n{words} [{SAMPLE.rule.id}].").html
    page = harmless(html)
    said = page.with_class("said")
    assert {attributes["href"] for attributes in said} == {"#claim-1"}
    sheet = html[html.index(f'id="{SAMPLE.rule.id}"') :]
    sheet = sheet[: sheet.index("Close</a>")]
    assert 'id="claim-1"' in sheet
    shown = " ".join(re.sub(r"<[^>]+>", " ", sheet).split())
    for part in ("Not decided", "judged by rules", f"{words} [1].", SAMPLE.quote(SAMPLE.rule), "read 2026-11-21"):
        assert part in shown
    assert "[1] 25.1. Routine Vacuuming" in shown
    assert "catastrophic data loss. To avoid" in shown


def test_a_sentence_with_two_passages_shows_both() -> None:
    """The second passage is shown with its source and its date, too."""
    html = rendered(f"# T\n\nThis is told [{SAMPLE.rule.id}, {SAMPLE.forced.id}].").html
    check = html[html.index('id="claim-1"') :].split('class="check')[0]
    assert "Specifies the maximum age" in check
    assert "20.10. Automatic Vacuuming" in check
    assert "read 2026-11-21" in check
    harmless(html)


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
    """Radio buttons choose, the style sheet dims and hides: there is nothing to run."""
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
    assert filter_by_verdict([], ENGLISH, "") == ""


def test_paper_keeps_the_verdicts() -> None:
    """What is printed has the signs, their legend and the checks, whatever the filter is set to."""
    style = rendered().html.partition("@media print {")[2].partition("</style>")[0]
    hidden = re.findall(r"([^{}]+)\{[^{}]*display: none", style)
    assert not [name for name in (".sign", ".check,", ".verdict ", ".reason") if any(name in each for each in hidden)]
    assert "show-supported" not in style


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("**Bold begins.** More.", "**Bold begins.**"),
        ("_It is so._ More.", "_It is so._"),
        ("One. (Two) three.", "(Two) three."),
        ("`code` is *it*, says [x].", "`code` is *it*, says [x]."),
        ("> - item one\n> - item two", "item one\n> - item two"),
        ("1. First thing.\n2. Second.", "First thing."),
        ("| a | b |\n|---|--:|\n| c | d |", "c | d"),
        ("Line one\nline two. After.", "Line one\nline two."),
    ],
)
def test_marks_of_a_claim_change_nothing_else(text: str, words: str) -> None:
    """Whatever Markdown a claim begins or ends with, the text reads as it does without claims."""
    html = linked(text, words)
    assert 'class="said v-partial"' in html
    plain = re.sub(r'<a class="sign.*?</a>', "", html)
    plain = re.sub(r'<a class="said[^>]*>(.*?)</a>', r"\1", plain, flags=re.DOTALL)
    assert plain == render_body(text, [], NOWHERE, ENGLISH).html
    assert not Page(html).unbalanced


def test_a_claim_that_begins_with_the_sign_of_a_list_begins_behind_it() -> None:
    """A mark before the sign would make prose of the item."""
    body = "> - one\n> - two\n"
    placed = place_claims([replace(claim("- two", verdict="partial"), start=10, end=15)], body, 0)
    assert body[placed[0].start : placed[0].end].strip() == "two"


def test_a_claim_whose_marks_would_change_the_text_is_left_alone() -> None:
    """A mark inside an address would make another address of it; the other claims keep their links."""
    url = "https://good.test/a.b"
    text = f"See [it]({url}). Next."
    inside = text.index(".b)")
    broken = LinkedClaim(1, claim("x", verdict="partial"), inside, inside + 1)
    whole = LinkedClaim(2, claim("Next.", verdict="partial"), text.index("Next."), len(text))
    body = render_body(text, [], Registry.of([url]), ENGLISH, [broken, whole])
    assert f'href="{url}"' in body.html
    assert body.claims == {2}
    assert not MARK.search(body.html)


def test_links_and_numbers_within_a_sentence_stay_and_the_words_around_them_lead() -> None:
    """No link lies within another, and a sentence leads to its check also behind one."""
    url = "https://good.test/a"
    text = f"See [it]({url}), they say [1], so it is."
    mark = CitationMark(text.index("[1]"), text.index("[1]") + 3, 1, (SAMPLE.rule.id,))
    placed = [LinkedClaim(1, claim(text, verdict="partial"), 0, len(text))]
    html = render_body(text, [mark], Registry.of([url]), ENGLISH, placed).html
    assert re.findall(r'<a class="said[^>]*>(.*?)</a>', html) == ["See", ", they say", ", so it is."]
    assert f'<a href="{url}" rel="noopener noreferrer nofollow ugc">it</a>' in html
    assert f'<span class="cite" id="cite-1">[<a role="doc-noteref" href="#{SAMPLE.rule.id}"' in html


def test_a_statement_without_a_passage_leads_to_its_check_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cites nothing is listed by itself, with the way back to the text."""
    words = "Nobody knows why."
    uncited = replace(claim(words, verdict="unsupported"), start=5, end=5 + len(words), method="none")
    monkeypatch.setattr(markdown_report, "judge_claims", lambda *_, **__: [uncited])
    made = render(SAMPLE.state(), f"# T\n\n{words}\n", SAMPLE.texts, SKIPPED, "0.1.0")
    page = harmless(made.html)
    assert {each["href"] for each in page.with_class("said")} == {"#claim-1"}
    listed = made.html[made.html.index('id="statements"') :]
    assert 'id="claim-1"' in listed
    assert 'href="#said-1"' in listed
    assert "So it is." in listed


def test_claims_that_share_words_each_have_a_sign() -> None:
    """Two parts of one sentence: both lead from it."""
    made = render(SAMPLE.state(), f"# T\n\nA is so [{SAMPLE.rule.id}]. B is.", SAMPLE.texts, SKIPPED, "0.1.0")
    assert made.html.count('class="sign ') == 1
    text = "One and two."
    both = [
        LinkedClaim(1, claim(text, verdict="supported"), 0, 12),
        LinkedClaim(2, claim(text, verdict="partial"), 12, 12),
    ]
    assert render_body(text, [], NOWHERE, ENGLISH, both).html.count('class="sign ') == 2


@given(st.text(alphabet="ab *_`[]()|>#-1.\n~!<&", max_size=60), st.data())
@settings(max_examples=150, deadline=None)
def test_any_stretch_of_any_text_gives_balanced_html(text: str, data: st.DataObject) -> None:
    """Wherever a claim begins and ends, every tag is closed and no mark of ours is left."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    html = render_body(text, [], NOWHERE, ENGLISH, [LinkedClaim(1, claim("x", verdict="partial"), start, end)]).html
    assert not Page(html).unbalanced
    assert not re.search("[\ue100-\ue106‖]", html)
