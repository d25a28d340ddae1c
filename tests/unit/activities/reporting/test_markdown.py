"""The report as Markdown."""

import json

import pytest

from activities.reporting.render import render
from contracts.addresses import digest
from contracts.evidence import ReportDraft
from contracts.resolved import ProviderChoice
from contracts.vocabulary import Quality
from providers.interfaces import SkippedFile
from tests.fakes.states import finding
from tests.unit.activities.reporting.sample import (
    ENDING,
    SKIPPED,
    VACUUM,
    Sample,
    make_evidence,
    make_resolved,
    make_source,
)

SAMPLE = Sample()


def markdown(text: str | None = None, files: list[SkippedFile] = SKIPPED, **changes: object) -> str:
    """The Markdown of the sample run."""
    words = SAMPLE.draft if text is None else text
    return render(SAMPLE.state(**changes), words, SAMPLE.texts, files, "0.1.0").markdown


def test_sources_tell_title_section_quality_and_when_they_were_read() -> None:
    """A source is listed with number, title, section, quality with its reason, date of reading and address."""
    assert (
        "- [1] 25.1. Routine Vacuuming § 25.1.5. Preventing Transaction ID Wraparound Failures · your documents"
        " · read 2026-11-21 · `corpus:manual/routine-vacuuming.html`\n"
    ) in markdown()


@pytest.mark.parametrize(
    ("media_type", "pages", "words"),
    [
        ("application/pdf", [12], " · p. 12 · "),
        ("application/pdf", [7, 3], " · pp. 3, 7 · "),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", [3], " · slide 3 · "),
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
    state = SAMPLE.state(sources={found.id: found}, evidence={item.id: item for item in evidence}, citations=[])
    draft = "# A\n\n" + " ".join(f"Said [{item.id}]." for item in evidence)
    forms = render(state, draft, {digest(text): text}, [], "0.1.0")
    assert words in next(line for line in forms.markdown.split("\n") if line.startswith("- [1] A"))
    assert [item["page"] for item in json.loads(forms.document)["evidence"]] == pages
    for page in filter(None, pages):
        name = "slide" if "presentation" in media_type else "p."
        assert f'<p class="where">{name} {page}</p>' in forms.html


@pytest.mark.parametrize(
    ("url", "title", "start", "end"),
    [
        ("https://a.test/b", "", "- [1] Untitled · ", "· <https://a.test/b>"),
        ("https://a.test/a>b", "A", "- [1] A · ", "· `https://a.test/a>b`"),
        ("https://a.test/a b", "A", "- [1] A · ", "· `https://a.test/a b`"),
        ("https://a.test/a\u200bb", "A", "- [1] A · ", "· `https://a.test/ab`"),
    ],
)
def test_a_source_is_listed_whatever_its_title_and_address(url: str, title: str, start: str, end: str) -> None:
    """Without a title it is called untitled; an address that would end its link early is shown as code."""
    text = "The first thing is cited here."
    found = make_source(url, title, text)
    evidence = make_evidence(found, text, text)
    state = SAMPLE.state(sources={found.id: found}, evidence={evidence.id: evidence}, citations=[])
    written = render(state, f"# T\n\nIt is [{evidence.id}].\n", {**SAMPLE.texts, digest(text): text}, [], "0.1.0")
    (line,) = [line for line in written.markdown.splitlines() if line.startswith("- [1]")]
    assert line.startswith(start)
    assert line.endswith(end)


def test_foreign_words_are_shown_as_they_are() -> None:
    """A title with signs of Markdown, a number and an address stays a title."""
    title = "A *b* [7] `c` <d> | [e](https://evil.test/) a_b _f_"
    source = make_source("corpus:manual/we`ird _name_.html", title, VACUUM, quality=Quality.UNKNOWN, quality_reason="")
    evidence = make_evidence(source, VACUUM, "In short, catastrophic data loss.")
    state = {"sources": {source.id: source}, "evidence": {evidence.id: evidence}}
    assert (
        "- [1] A \\*b\\* \\[7\\] \\`c\\` \\<d\\> \\| \\[e\\]((link removed)) a_b \\_f\\_ · quality not assessed "
        "· read 2026-11-21 · ``corpus:manual/we`ird _name_.html``\n"
    ) in markdown(f"# T\n\nTold [{evidence.id}].", **state)


def test_skipped_files_are_counted_and_ten_are_named() -> None:
    """Skipped files: their number, and the first ten with their reasons."""
    skipped = [SkippedFile(f"{number}.pdf", "encrypted", "encrypted") for number in range(12)]
    text = markdown(files=skipped)
    assert "**Skipped files:** 12 files of the corpus could not be used." in text
    assert "  - 9.pdf: encrypted\n  - and 2 more\n" in text
    assert "10.pdf" not in text


def test_providers_that_could_not_be_asked_are_told() -> None:
    """Who was to be searched with and could not be reached is named with the reason (S0-102)."""
    silent = ProviderChoice(name="wikipedia", available=False, reason="en.wikipedia.org is not reachable at port 443")
    asked = [ProviderChoice(name="corpus", available=True), silent]
    text = markdown(resolved=make_resolved(providers=asked))
    assert (
        "**Not searched:** These were to be asked and could not be.\n  - wikipedia: en.wikipedia\\.org is not" in text
    )
    assert "Not searched" not in markdown()


@pytest.mark.parametrize(
    ("by_role", "words"),
    [
        (
            {"planner": "extractive", "synthesizer": "extractive"},
            "**Engine:** extractive: no language model: passages are selected and quoted word for word (planner, s",
        ),
        (
            {"planner": "model", "synthesizer": "extractive"},
            "word for word (synthesizer)\n  - model: a language model did the work (planner)\n",
        ),
    ],
)
def test_engine_is_told_by_role(by_role: dict[str, str], words: str) -> None:
    """A report says which engine did which role."""
    assert words in markdown(engine_by_role=by_role)


def test_what_sources_disagree_about_is_said() -> None:
    """Both sides of what an analysis linked are shown, once; a link to nothing is none."""
    first, second = list(SAMPLE.sources.values())[:2]
    findings = [
        finding("The store keeps 128 MB of pages.", source_ids=[first.id]),
        finding(
            "The store keeps 512 MB of pages.", source_ids=[second.id], contradicts=["f-The store ", "f-gone"]
        ).model_copy(update={"id": "f-2"}),
        finding("Locks are good.", source_ids=[first.id], contradicts=["f-Locks are ", "f-gone"]),
    ]
    (line,) = [line for line in markdown(findings=findings).splitlines() if "128 MB of pages" in line]
    assert f"“The store keeps 512 MB of pages.” ({second.title})" in line
    assert "512 MB of pages" not in markdown(findings=findings[:1])


def test_what_was_not_checked_is_said() -> None:
    """How many cited statements are quotations, and what the rules say of the others (invariant 15)."""
    assert (
        "Cited statements: 8; word for word the cited passage: 6. Of the others rules judged 2 and a model 0,"
        in markdown()
    )
    quote = f"# T\n\n> {SAMPLE.quote(SAMPLE.rule)} [{SAMPLE.rule.id}]\n"
    assert "Cited statements: 1, each of them word for word the cited passage." in markdown(quote)


def test_empty_brief_cites_nothing_and_says_so() -> None:
    """An empty report has no sources, and says so."""
    ending = ENDING | {"outcome": "empty", "stop_reason": "no_evidence", "completeness": "empty"}
    draft = ReportDraft(document=SAMPLE.state().draft.document, empty=True)
    text = markdown("# T\n\nNothing answers this.\n", draft=draft, ending=ending, evidence={}, findings=[])
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
    notice = markdown(failed_branches=failed, ending=ending).split("\n\n")[1]
    assert notice.startswith("> **Partial:**")
    assert words in notice
