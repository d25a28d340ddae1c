"""The report as Markdown: its sources, and what it says of method, limits and use."""

import json
import re

import pytest

from activities.reporting.drafts import parse_draft
from activities.reporting.tree import write
from contracts.addresses import digest
from contracts.checking import Correction
from contracts.evidence import ReportDraft
from contracts.outcome import Usage
from contracts.request import Constraints, Output, Verify
from contracts.resolved import ProviderChoice, SkippedFile
from contracts.sentences import Message
from contracts.vocabulary import Quality
from tests.fakes.states import EMPTY_REF, finding
from tests.unit.activities.reporting.sample import (
    ENDING,
    SAMPLE,
    VACUUM,
    citing,
    make_evidence,
    make_resolved,
    make_source,
    rendered,
)

SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


# --- sources ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("media_type", "pages", "words"),
    [
        ("application/pdf", [12], " · p. 12 · "),
        ("application/pdf", [7, 3], " · pp. 3, 7 · "),
        (SLIDES, [3], " · slide 3 · "),
        ("text/html", [None], " · your documents "),
    ],
)
def test_a_citation_names_the_pages_of_its_passages(media_type: str, pages: list[int | None], words: str) -> None:
    """All three forms of the report say on which pages, or slides, the cited words stand."""
    text = "The first thing is cited here. The second thing is cited there."
    found = make_source("corpus:manual/a", "A", text)
    assert found.raw is not None
    found = found.model_copy(update={"raw": found.raw.model_copy(update={"media_type": media_type})})
    evidence = [
        make_evidence(found, text, quote).model_copy(update={"page": page})
        for quote, page in zip((text[:30], text[31:]), pages, strict=False)
    ]
    known = {"sources": {found.id: found}, "evidence": {item.id: item for item in evidence}}
    forms = rendered(
        "# A\n\n" + " ".join(f"Said [{item.id}]." for item in evidence), texts={digest(text): text}, **known
    )
    assert words in next(line for line in forms.markdown.split("\n") if line.startswith("- [1] A"))
    assert [item["page"] for item in json.loads(forms.document)["evidence"]] == pages
    for page in filter(None, pages):
        assert f'<p class="where">{"slide" if media_type == SLIDES else "p."} {page}</p>' in forms.html


def test_a_citation_says_where_two_readers_differ() -> None:
    """All passages are quoted as one reader has them; those whose words another one reads otherwise are marked."""
    text = "The first thing is cited here. The second thing is cited there."
    found = make_source("corpus:manual/a", "A", text)
    for uncertain in (True, False):
        item = make_evidence(found, text, text[:30]).model_copy(update={"uncertain": uncertain})
        known = {"sources": {found.id: found}, "evidence": {item.id: item}}
        shown = rendered(f"# A\n\nSaid [{item.id}].", texts={digest(text): text}, **known).markdown
        assert (
            " · reading uncertain · " in next(line for line in shown.split("\n") if line.startswith("- [1] A"))
        ) is uncertain


def test_method_names_the_parts_of_sources_that_were_not_read() -> None:
    """The share and the kinds, for each cited source that lacks words; nothing where no source does."""
    found = make_source("corpus:manual/a.html", "A page", VACUUM)
    found = found.model_copy(update={"warnings": ["92% of the words are read; not read: footers (7)"]})
    evidence, run = citing(found, VACUUM, "In short, catastrophic data loss.")
    text = rendered(f"# T\n\nIt is [{evidence.id}].\n", **run).markdown
    method = text.partition("## Method and limits")[2]
    assert "**Parts not read:**" in method
    assert "\n  - A page: 92% of the words are read; not read: footers (7)\n" in method
    run["sources"] = {found.id: found.model_copy(update={"warnings": []})}
    assert "Parts not read" not in rendered(f"# T\n\nIt is [{evidence.id}].\n", **run).markdown


def test_method_lists_what_an_operator_made_smaller() -> None:
    """A report with less than was asked for says so, in its language, with both values."""
    note = Message("cut_to_ceiling", setting="limits.max_cost_usd", asked="5.00", allowed="0.50")
    for language, line in (("en", "0.50 in place of 5.00, as"), ("de", "0.50 statt 5.00, mehr")):
        text = rendered(resolved=make_resolved(cuts=[note], language=language)).markdown
        assert f"\n  - limits.max_cost_usd: {line}" in text.partition("## Method")[2] + text.partition("## Vorgehen")[2]
    assert "operator" not in rendered(resolved=make_resolved()).markdown


def test_method_names_the_pages_that_a_browser_has_read() -> None:
    """With the host of the service, and apart from parts that were not read."""
    found = make_source("https://shop.test/", "Chairs", VACUUM)
    note = Message("read_in_browser", host="browser.test")
    found = found.model_copy(update={"warnings": [note, "92% of the words are read; not read: footers (7)"]})
    evidence, run = citing(found, VACUUM, "In short, catastrophic data loss.")
    method = rendered(f"# T\n\nIt is [{evidence.id}].\n", **run).markdown.partition("## Method and limits")[2]
    browser, _, others = method.partition("**Read in a browser:** A service opened 1 source in a browser")[2].partition(
        "**"
    )
    assert "\n  - Chairs: read in a browser of the service at browser" in browser
    assert "92%" not in browser
    assert "browser" not in others.partition("Parts not read:**")[2].partition("**")[0]


ODD_TITLE = "A *b* [7] `c` <d> | [e](https://evil.test/) a_b _f_"
SHOWN = "A \\*b\\* \\[7\\] \\`c\\` \\<d> | \\[e\\]((link removed)) a_b \\_f\\_"


@pytest.mark.parametrize(
    ("url", "title", "start", "end"),
    [
        ("https://a.test/b", "", "Untitled", "<https://a.test/b>"),
        ("https://a.test/a>b", "A", "A", "`https://a.test/a>b`"),
        ("https://a.test/a b", "A", "A", "`https://a.test/a b`"),
        ("https://a.test/a\u200bb", "A", "A", "`https://a.test/ab`"),
        ("corpus:manual/we`ird _name_.html", ODD_TITLE, SHOWN, "``corpus:manual/we`ird _name_.html``"),
    ],
)
def test_a_source_is_listed_whatever_its_title_and_address(url: str, title: str, start: str, end: str) -> None:
    """Number, title, section, quality with its reason, day and address; signs of Markdown in them are shown as words."""
    found = make_source(url, title, VACUUM)
    evidence, run = citing(found, VACUUM, "In short, catastrophic data loss.", heading="25.1.5. Wraparound")
    assert (
        f"- [1] {start} § 25.1.5. Wraparound · your documents · read 2026-11-21 · {end}"
        in rendered(f"# T\n\nIt is [{evidence.id}].\n", **run).markdown.splitlines()
    )
    plain = found.model_copy(update={"quality": Quality.UNKNOWN, "quality_reason": ""})
    run["sources"] = {found.id: plain}
    assert " · quality not assessed · " in rendered(f"# T\n\nIt is [{evidence.id}].\n", **run).markdown


def test_a_heading_is_listed_as_it_reads() -> None:
    """It comes from a stored text, which is Markdown: its code is code, other signs are words."""
    evidence, run = citing(
        make_source("https://a.test/b", "A", VACUUM),
        VACUUM,
        "In short, catastrophic data loss.",
        heading="8.4. `a*b` *c*",
    )
    shown = rendered(f"# T\n\nIt is [{evidence.id}].\n", **run)
    assert "- [1] A § 8.4. `a*b` \\*c\\* · your documents" in shown.markdown
    assert "§ 8.4. <code>a*b</code> *c*" in shown.html


# --- method and limits -----------------------------------------------------------------------------------------------
def test_what_was_not_searched_is_named() -> None:
    """Skipped files: their number and the first ten; providers that could not be reached, with the reason (S0-102)."""
    skipped = [SkippedFile(path=f"{number}.pdf", kind="encrypted", reason="encrypted") for number in range(12)]
    silent = ProviderChoice(name="wikipedia", available=False, reason="en.wikipedia.org is not reachable at port 443")
    asked = [ProviderChoice(name="corpus", available=True), silent]
    text = rendered(skipped=skipped, resolved=make_resolved(providers=asked)).markdown
    assert "**Skipped files:** 12 files of the corpus could not be used." in text
    assert "  - 9.pdf: encrypted\n  - and 2 more\n" in text
    assert "10.pdf" not in text
    assert (
        "**Not searched:** These were to be asked and could not be.\n  - wikipedia: en.wikipedia\\.org is not" in text
    )
    assert "Not searched" not in rendered().markdown


def test_method_says_how_passages_were_ranked() -> None:
    """By words, or by closeness of meaning, too, with the name of the table; nothing where a model wrote the report."""
    rules, model = ({"synthesizer": engine} for engine in ("extractive", "model"))
    both = rendered(resolved=make_resolved(semantic=True), engine_by_role=rules).markdown
    assert "**Ranking:** By the words that passages share with the question and by closeness of meaning" in both
    assert "(token table l2_supercat_256, no language model)" in both
    assert (
        "**Ranking:** By the words that passages share with the question.\n" in rendered(engine_by_role=rules).markdown
    )
    assert "Ranking" not in rendered(resolved=make_resolved(semantic=True), engine_by_role=model).markdown


def test_the_engine_is_listed_by_role() -> None:
    """A report says which engine did which role, and which wishes only a writing model could have met."""
    wishes = {"output": Output(language="de"), "constraints": Constraints(audience="nurses")}
    asked = make_resolved().model_copy(update=wishes)
    text = rendered(resolved=asked, engine_by_role={"planner": "model", "synthesizer": "extractive"}).markdown
    assert "  - model: a language model did the work (planner)\n" in text
    assert "passages are selected and quoted word for word (synthesizer)\n" in text
    assert "nurses" in text.partition("Not applied")[2]
    assert "Not applied" not in rendered(resolved=asked, engine_by_role={"synthesizer": "model"}).markdown


def test_disagreement_of_sources_is_stated() -> None:
    """Both sides of what an analysis linked are shown, once; a link to nothing is none."""
    first, second = list(SAMPLE.sources.values())[:2]
    findings = [
        finding("The store keeps 128 MB of pages.", source_ids=[first.id]),
        finding(
            "The store keeps 512 MB of pages.", source_ids=[second.id], contradicts=["f-The store ", "f-gone"]
        ).model_copy(update={"id": "f-2"}),
        finding("Locks are good.", source_ids=[first.id], contradicts=["f-Locks are ", "f-gone"]),
    ]
    lines = rendered(findings=findings).markdown.splitlines()
    (line,) = [line for line in lines if "128 MB of pages" in line]
    assert f"“The store keeps 512 MB of pages.” ({second.title})" in line


def test_unchecked_claims_are_stated() -> None:
    """How many cited statements are quotations, and what the rules say of the others (invariant 15)."""
    expected = "Cited statements: 10; word for word the cited passage: 6. Of the others rules judged 4 and a model 0,"
    assert expected in rendered().markdown
    quote = rendered(f"# T\n\n> {SAMPLE.quote(SAMPLE.rule)} [{SAMPLE.rule.id}]\n").markdown
    assert "Cited statements: 1, each of them word for word the cited passage." in quote
    unchecked = rendered(resolved=make_resolved(verify=Verify.OFF)).markdown
    assert "**Not verified:**" in unchecked
    assert "*(" not in unchecked


def test_corrections_are_listed_with_their_places() -> None:
    """Section, words and reason of a statement that is gone; corrected ones with the words before and after."""
    made = [
        Correction(claim_id="c-1", section="Summary", action="remove", before="Whales sing.", reason="Nobody says so."),
        Correction(claim_id="c-2", action="correct", before="It is 9.", after="It is 8.", dropped="9"),
    ]
    text = rendered(corrections=made).markdown.replace("\\", "")
    assert "**Removed:**" in text
    assert "Summary: Whales sing. (Nobody says so.)" in text
    assert "correct: It is 9. → It is 8. (no longer said: 9)" in text


def test_text_removed_from_the_draft_is_listed() -> None:
    """Markers, addresses and lists of sources of the writer's own are gone, and counted among the limitations (X-7)."""
    draft = f"# T\n\nTold [{SAMPLE.rule.id}] [7]. See https://evil.test/.\n\n## References\n\n1. Smith, *Made up*.\n"
    text = rendered(draft).markdown
    assert "Citation markers removed from the draft: 1;" in text
    assert "Addresses removed from the draft: 1;" in text
    assert "Smith" not in text


def test_empty_brief_cites_nothing_and_says_so() -> None:
    """An empty report has no sources, and says so."""
    ending = ENDING | {"outcome": "empty", "stop_reason": "no_evidence", "completeness": "empty"}
    empty = ReportDraft(document=EMPTY_REF, empty=True)
    text = rendered("# T\n\nNothing answers this.\n", draft=empty, ending=ending, evidence={}, findings=[]).markdown
    assert "> **Nothing found:** no passage was found" in text
    assert "This report cites nothing." in text
    assert "## Sources" not in text


@pytest.mark.parametrize(
    ("reason", "failed", "complete", "words"),
    [
        ("no_open_gaps", ["planner: the model declined to answer"], "partial", "parts of the work failed"),
        ("no_open_gaps", [], "partial", "parts of the plan are not answered"),
        ("no_open_gaps", [], "full", "the text of the report has faults"),
        ("budget_time", ["planner: the model declined to answer"], "partial", "the time limit was reached"),
    ],
)
def test_a_partial_report_says_why_it_is_partial(reason: str, failed: list[str], complete: str, words: str) -> None:
    """How the work happened to stop explains nothing when a part of it had failed (C0-24)."""
    ending = ENDING | {"outcome": "partial", "stop_reason": reason, "completeness": complete}
    notice = rendered(failed_branches=failed, ending=ending).markdown.split("\n\n")[1]
    assert notice.startswith("> **Partial:**")
    assert words in notice


@pytest.mark.parametrize(
    ("unanswered", "failed", "reason"),
    [
        (0, ["analyzer: no answer"], "parts of the work failed"),
        (0, [], "parts of the work failed"),
        (2, [], "parts of the plan are not answered"),
        (None, [], "parts of the plan are not answered"),
    ],
)
def test_a_plan_whose_parts_are_answered_is_not_called_unanswered(
    unanswered: int | None, failed: list[str], reason: str
) -> None:
    """Sources that could not be read make a run partial, and so do failed parts; neither leaves a query unanswered."""
    ending = ENDING | {"outcome": "partial", "stop_reason": "no_open_gaps", "completeness": "partial"}
    text = rendered(failed_branches=failed, ending=ending | {"unanswered": unanswered}).markdown
    assert reason in text.split("\n\n")[1]
    assert ("parts of the plan are not answered" in text) is (unanswered != 0)
    assert ("every part of the plan is answered or its gap is stated" in text) is (unanswered == 0)


def test_doubtful_statements_are_listed_with_their_reasons() -> None:
    """What is not borne out is listed, the contradicted first; what is undecided is counted alone."""
    rule = SAMPLE.quote(SAMPLE.rule)
    facts = ("Oracle has 8 of them.", rule.replace("two billion", "nine billion"), rule)
    text = rendered("# T\n\n" + "\n\n".join(f"{fact} [{SAMPLE.rule.id}]" for fact in facts)).markdown
    listed = text.partition("**Doubtful statements:**")[2].partition("\n- **")[0]
    found = re.findall(r"  - (.*): .* \((.*)\)", listed)
    assert found == [
        ("Contradicted", "The claim says “nine billion”; the cited passages say “two billion”."),
        ("Not supported", "“8” is in no cited passage."),
    ]
    undecided = rendered(f"# T\n\n{rule} [{SAMPLE.rule.id}]\n\nTables are vacuumed. [{SAMPLE.rule.id}]").markdown
    assert "**Doubtful statements:**" not in undecided
    assert "1 not decided" in undecided


def test_what_is_marked_is_counted_under_the_title() -> None:
    """A completed report with a doubtful sentence says so at once; one without has no such line."""
    true = "".join(f"{SAMPLE.quote(item)} [{item.id}]\n\n" for item in [SAMPLE.rule, SAMPLE.problem] * 3)
    text = f"# T\n\n{true}## Users\n\n{{}} [{SAMPLE.rule.id}]\n"
    doubtful = rendered(text.format("Oracle has 8 of them.")).markdown.split("\n\n")[1]
    assert doubtful.startswith("> **Checked:** Marked in the text as wrong or doubtful: 1 of 7 cited statements.")
    assert (
        rendered(text.format(SAMPLE.quote(SAMPLE.rule))).markdown.split("\n\n")[1].startswith(SAMPLE.quote(SAMPLE.rule))
    )


def test_a_report_with_another_title_has_the_question_that_was_asked() -> None:
    """A title that a writer gave, or that is cut, leaves the person's own words to the method; equal words stay alone."""
    question = make_resolved().query
    assert f"- **Question:** {question}\n" in rendered("# Vacuum\n\nText.\n").markdown
    assert "**Question:**" not in rendered(f"# {question}\n\nText.\n").markdown


# --- use and time ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cost", "known", "total"), [(0.0323, 0.0, "0.0323 USD."), (None, 0.02, "cost unknown, 0.0200 USD of it known.")]
)
def test_the_report_names_what_was_used(cost: float | None, known: float, total: str) -> None:
    """Calls, tokens, cache and cost, in total; an unknown cost is never 0, a run without any has no fact."""
    spent = Usage(model_calls=3, input_tokens=2_000, output_tokens=200, cached_tokens=300, cost_usd=cost)
    usage = spent.model_copy(update={"searches": 2, "reads": 3, "partial_cost_usd": known})
    words = f"3 model calls, 2,200 tokens, 15% of the input from a cache, 2 searches, 3 reads, {total}"
    assert f"**Use:** {words}" in rendered(usage=usage).markdown
    assert "**Use:**" not in rendered(usage=Usage()).markdown


def test_only_what_is_doubtful_is_marked_and_the_rest_is_counted_once() -> None:
    """A paraphrase that rules cannot decide has no sign; the line under the title and Method count it."""
    rule, problem = SAMPLE.rule.id, SAMPLE.problem.id
    draft = f"# T\n\nEach table needs it now and then, whoever owns it [{rule}]. It takes 77 minutes [{problem}].\n"
    text = rendered(draft, engine_by_role={"synthesizer": "model"}).markdown
    body, _, method = text.partition("## Sources")
    assert body.count("*(") == 1
    assert re.search(r"77 minutes \[\d\]\. \*\(✗ Not supported\)\*", body)
    assert "Of 2 cited statements 1 could not be decided and 0 were not checked" in body
    assert "1 not decided" in method
    assert "could not be decided" not in rendered(draft, resolved=make_resolved(verify=Verify.OFF)).markdown


def test_the_engine_of_a_role_follows_from_its_answers() -> None:
    """A role that a model did is not called its opposite for one answer without it; their number is named."""
    text = rendered(
        engine_by_role={"analyzer": "model", "planner": "extractive"}, rule_answers={"analyzer": 2}
    ).markdown
    assert "a language model did the work (analyzer: 2 answers without it)" in text
    assert "word for word (planner)" in text


def test_code_within_emphasis_does_not_cut_it() -> None:
    """A reader who opens the Markdown sees one emphasis, and the tree is the same."""
    text = "*Risk of `--hard`:* it loses **all `changes` at once**.\n"
    assert write(parse_draft(text)).text == text
