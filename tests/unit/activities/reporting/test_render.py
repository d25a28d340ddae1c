"""The activity that renders a report."""

import json
import re
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reporting.claims import find_claims
from activities.reporting.drafts import parse_draft
from activities.reporting.render import ReportingActivities, render
from contracts import failures
from contracts.addresses import digest
from contracts.checking import Correction
from contracts.evidence import CheckMethod, ClaimVerdict, ReportDraft, Verdict, VerdictsEntry
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, Citation
from contracts.request import Verify
from contracts.state import ResearchState
from contracts.vocabulary import Confidence
from providers.interfaces import SkippedFile
from providers.storage.sessions import RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import Records
from tests.fakes.killers import HereCalls
from tests.fakes.random_world import whole_change
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.reporting.sample import DOCUMENTS, RESEARCH_ID, SKIPPED, Sample

SAMPLE = Sample()
KEYS = (
    "schema_version product_version research_id query effective_request strategy engine_by_role models prompt_versions "
    "language corpus kind outcome stop_reason completeness iterations started_at ended_at forms report sources evidence "
    "findings gaps claims citations citations_count confidence_summary decisions decisions_dropped plan queries queries_failed "
    "usage fidelity verification degraded failed_branches limitations"
)
PARTS = {
    "corpus": "name digest files indexed_at",
    "report": "markdown sections word_count",
    "sources": "id url title authors publisher venue doi published_at source_type quality quality_reason "
    "content_hash text_hash retrieved_at status status_reason provider cited query_ids",
    "evidence": "id source_id quote prefix suffix heading start end page",
    "findings": "id statement confidence evidence_ids source_ids category",
    "gaps": "id description kind status severity priority",
    "claims": "id text start end section citation_numbers evidence_ids verdict method reason",
    "citations": "number source_id label",
    "decisions": "seq agent action phase iteration rationale inputs outputs timestamp",
    "queries": "id text origin status error provider result_count",
    "usage": "model_calls input_tokens output_tokens cached_tokens cost_usd searches reads active_seconds",
}


async def skipped_of(corpus: str) -> list[SkippedFile]:
    """The skipped files of the sample corpus."""
    assert corpus == "manual"
    return SKIPPED


async def run(
    state: ResearchState, draft: str | None, without: str = "", also: str = ""
) -> tuple[RenderedReport, MemoryStore]:
    """Run the activity over a store that holds the sample's documents, but for the one with the hash `without`."""
    store = MemoryStore()
    for _, text in DOCUMENTS.values():
        await store.put_text(text)
    await store.put_text(also)
    if draft is not None:
        reference = await store.put_text(draft, "text/markdown")
        assert state.draft is not None
        state.draft = state.draft.model_copy(update={"document": reference})
    store.documents.pop(without, None)
    activities = ReportingActivities(
        store, skipped_of, "0.1.0", HereCalls(), RecordSessionStore(Records(Path(), "sessions")), Notebooks(store)
    )
    request = RenderRequest(research_id=RESEARCH_ID, change=whole_change(state))
    return await ActivityEnvironment().run(activities.render_report, request), store


async def test_verdicts_of_the_run_stand_in_the_report() -> None:
    """What verification found for a claim of the draft is told of the claim in the report; the others are judged here."""
    claims = find_claims(parse_draft(SAMPLE.draft), uncited=False)
    said = ClaimVerdict(
        claim_id=claims[0].id, verdict=Verdict.PARTIAL, method=CheckMethod.MODEL, reason="It says more."
    )
    entry = VerdictsEntry(verdicts=[said])
    text = entry.model_dump_json(exclude_defaults=True)
    report, store = await run(SAMPLE.state(verdicts_entry=digest(text)), SAMPLE.draft, also=text)
    document = json.loads(await store.get_text(report.files.json_document))
    found = [(claim["verdict"], claim["method"], claim["reason"]) for claim in document["claims"]]
    assert found[0] == ("partial", "model", "It says more.")
    assert all(method in ("verbatim", "rules", "none") for _, method, _ in found[1:])
    assert document["verification"]["verdict_counts"]["partial"] == 1


async def test_three_forms_are_stored_and_agree() -> None:
    """The activity stores Markdown, HTML and JSON of one report and returns its text and numbers."""
    rendered, store = await run(SAMPLE.state(), SAMPLE.draft)
    expected = render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0")
    assert await store.get_text(rendered.files.markdown) == rendered.text == expected.markdown
    document = json.loads(await store.get_text(rendered.files.json_document))
    assert document["report"]["markdown"] == rendered.text
    assert (await store.get_text(rendered.files.html)).startswith("<!doctype html>")
    assert rendered.citations == [
        Citation(number=1, source_id=SAMPLE.rule.source_id),
        Citation(number=2, source_id=SAMPLE.forced.source_id),
    ]
    assert rendered.summary == "Every table must be vacuumed in time."
    assert not rendered.cut


def test_document_has_every_field() -> None:
    """report.json has every field of its schema, and every entry every field of its kind."""
    document = json.loads(render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0").document)
    assert list(document) == KEYS.split()
    assert document["schema_version"] == 1
    for name, fields in PARTS.items():
        entries = document[name] if isinstance(document[name], list) else [document[name]]
        assert entries
        for entry in entries:
            assert set(fields.split()) <= set(entry), name
    assert document["report"]["sections"][-2:] == ["Sources", "Method and limits"]
    assert document["citations_count"] == len(document["citations"]) > 0
    assert sum(document["confidence_summary"].values()) == len(document["findings"])
    assert list(document["confidence_summary"]) == [degree.value for degree in Confidence]
    failed = [query for query in document["queries"] if query["status"] == "failed"]
    assert document["queries_failed"] == len(failed)


def test_same_state_gives_the_same_bytes() -> None:
    """Rendering is a pure function of the state, the texts and the skipped files (invariant 13)."""
    one = render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0")
    packed = ResearchState.unpack(SAMPLE.state().pack())
    other = render(packed, SAMPLE.draft, dict(reversed(SAMPLE.texts.items())), SKIPPED, "0.1.0")
    assert (one.markdown, one.html, one.document) == (other.markdown, other.html, other.document)


def test_second_rendering_keeps_numbers() -> None:
    """With the numbers of the first rendering in the state, a draft in another order keeps them (invariant 4)."""
    first = render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, [], "0.1.0")
    state = SAMPLE.state(citations=first.citations)
    draft = f"# T\n\nOnly the second [{SAMPLE.forced.id}]."
    second = render(state, draft, SAMPLE.texts, [], "0.1.0")
    assert "Only the second [2]." in second.markdown
    assert second.citations == first.citations
    assert json.loads(second.document)["citations"] == [
        {"number": 2, "source_id": SAMPLE.forced.source_id, "label": ""}
    ]


async def test_text_that_differs_from_its_quote_is_never_written() -> None:
    """A stored text without the quoted words at their place ends the rendering as ContentCorrupt; nothing is stored."""
    wrong = SAMPLE.rule.model_copy(update={"start": SAMPLE.rule.start + 1, "end": SAMPLE.rule.end + 1})
    with pytest.raises(ApplicationError) as caught:
        await run(SAMPLE.state(evidence=SAMPLE.evidence | {wrong.id: wrong}), SAMPLE.draft)
    assert caught.value.type == failures.CONTENT_CORRUPT
    assert caught.value.non_retryable


async def test_state_without_an_ending_is_refused() -> None:
    """A report never guesses how its run ended."""
    with pytest.raises(ApplicationError):
        await run(SAMPLE.state(ending=None), SAMPLE.draft)


async def test_state_without_a_draft_is_rendered() -> None:
    """A run that wrote nothing still gets its three forms."""
    rendered, _ = await run(SAMPLE.state(draft=None), None)
    assert "No report text was written." in rendered.text
    assert (rendered.summary, rendered.citations) == ("", [])


def test_the_title_keeps_the_whole_question() -> None:
    """However long it is, in every form."""
    question = f"How does {'a very long name ' * 20}prevent wraparound?"
    draft = SAMPLE.draft.replace(SAMPLE.draft.splitlines()[0], f"# {question}", 1)
    rendered = render(SAMPLE.state(), draft, SAMPLE.texts, SKIPPED, "0.1.0")
    assert rendered.markdown.startswith(f"# {question}\n")
    assert f"<title>{question}</title>" in rendered.html


async def test_long_report_is_cut_inline_and_stored_whole() -> None:
    """Inline text ends at 128,000 characters with a flag; the stored document is whole."""
    draft = f"# T\n\nTold [{SAMPLE.rule.id}].\n\n" + "word " * 30_000
    rendered, store = await run(SAMPLE.state(), draft)
    assert (len(rendered.text), rendered.cut) == (INLINE_REPORT_CHARACTERS, True)
    assert len(await store.get_text(rendered.files.markdown)) > INLINE_REPORT_CHARACTERS
    start = f"# T\n\nTold [{SAMPLE.rule.id}].\n\nx"
    room = INLINE_REPORT_CHARACTERS - len((await run(SAMPLE.state(), start))[0].text)
    for more, cut in ((room, False), (room + 1, True)):
        rendered, _ = await run(SAMPLE.state(), start + "x" * more)
        assert (len(rendered.text), rendered.cut) == (INLINE_REPORT_CHARACTERS, cut)


def test_sources_of_the_draft_are_replaced_by_ours() -> None:
    """A list of sources that a draft brings along is replaced, and the report says so."""
    draft = f"# T\n\nTold [{SAMPLE.rule.id}].\n\n## References\n\n1. Smith, *Made up*, 2020.\n"
    markdown = render(SAMPLE.state(), draft, SAMPLE.texts, [], "0.1.0").markdown
    assert "Smith" not in markdown
    assert "The draft brought its own list of sources" in markdown


def test_what_was_removed_is_said() -> None:
    """Removed markers and addresses are counted among the limitations (X-7)."""
    draft = f"# T\n\nTold [{SAMPLE.rule.id}] [7]. See https://evil.test/.\n"
    markdown = render(
        SAMPLE.state(draft=ReportDraft(document=SAMPLE.state().draft.document)), draft, SAMPLE.texts, [], "1"
    ).markdown
    assert "Citation markers removed from the draft: 1;" in markdown
    assert "Addresses removed from the draft: 1;" in markdown


def test_a_sign_stands_behind_what_is_not_supported() -> None:
    """Markdown has at the sentence what HTML has there: a sign and its word; `off` says it under the title alone."""
    draft = (
        f"# T\n\nEvery table must be vacuumed every nine million transactions [{SAMPLE.rule.id}]. Whales sing. "
        f"*(✓ Supported)*\n\n> {SAMPLE.quote(SAMPLE.rule)} [{SAMPLE.rule.id}]\n"
    )
    text = render(SAMPLE.state(), draft, SAMPLE.texts, SKIPPED, "0.1.0").markdown
    assert re.search(r"nine million transactions \[1\]\. \*\([✗≠○] (Not supported|Contradicted|Not decided)\)\*", text)
    assert text.count("*(") == 1
    state = SAMPLE.state()
    assert state.resolved is not None
    state.resolved = state.resolved.model_copy(update={"verify": Verify.OFF})
    plain = render(state, draft, SAMPLE.texts, SKIPPED, "0.1.0").markdown
    assert "*(" not in plain
    assert "**Not verified:**" in plain


def test_what_was_removed_is_listed_with_its_place() -> None:
    """Section, words and reason of a statement that is gone; corrected ones with the words before and after."""
    made = [
        Correction(claim_id="c-1", section="Summary", action="remove", before="Whales sing.", reason="Nobody says so."),
        Correction(claim_id="c-2", action="rewrite", before="It is 9.", after="It is 8."),
    ]
    text = render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0", (), made).markdown
    assert "**Removed:**" in text
    assert "Summary: Whales sing. (Nobody says so.)" in text.replace("\\", "")
    assert "rewrite: It is 9. → It is 8." in text.replace("\\", "")
