"""The activity that renders a report, and the report as data."""

import json
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import QuotedPassage, cut_passages, find_claims
from activities.reporting.render import ReportingActivities, render
from contracts import failures
from contracts.addresses import digest
from contracts.checking import Verification
from contracts.evidence import CheckMethod, ClaimVerdict, Verdict, VerdictsEntry
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, Citation
from contracts.report import Report
from contracts.resolved import SkippedFile
from contracts.state import ResearchState
from contracts.vocabulary import Confidence
from providers.errors import ContentCorrupt, ContentMissing
from providers.storage.sessions import RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import Records
from tests.fakes.killers import HereCalls
from tests.fakes.random_world import whole_change
from tests.unit.activities.reporting.sample import (
    RESEARCH_ID,
    SAMPLE,
    SKIPPED,
    VACUUM,
    make_evidence,
    make_resolved,
    make_source,
    rendered,
    store_of,
)
from tests.unit.activities.scripted import MemoryStore


async def skipped_of(corpus: str) -> list[SkippedFile]:
    assert corpus == "manual"
    return SKIPPED


async def run(state: ResearchState, draft: str | None, also: str = "") -> tuple[RenderedReport, MemoryStore]:
    """Run the activity over a store that has the sample's documents."""
    store = await store_of(SAMPLE.texts)
    await store.put_text(also)
    if draft is not None:
        reference = await store.put_text(draft, "text/markdown")
        assert state.draft is not None
        state.draft = state.draft.model_copy(update={"document": reference})
    sessions = RecordSessionStore(Records(Path(), "sessions"))
    activities = ReportingActivities(store, skipped_of, "0.1.0", HereCalls(), sessions, Notebooks(store))
    request = RenderRequest(research_id=RESEARCH_ID, change=whole_change(state))
    return await ActivityEnvironment().run(activities.render_report, request), store


async def test_verdicts_of_the_run_stand_in_the_report() -> None:
    """What verification found for a claim of the draft is told of the claim in the report; the others are judged here."""
    claims = find_claims(parse_draft(SAMPLE.draft), uncited=False)
    said = ClaimVerdict(
        claim_id=claims[0].id, verdict=Verdict.PARTIAL, method=CheckMethod.MODEL, reason="It says more."
    )
    text = VerdictsEntry(items=[said]).model_dump_json(exclude_defaults=True)
    state = SAMPLE.state(verification=Verification(verdicts_entry=digest(text)))
    report, store = await run(state, SAMPLE.draft, also=text)
    document = json.loads(await store.get_text(report.files.json_document))
    found = [(claim["verdict"], claim["method"], claim["reason"]) for claim in document["claims"]]
    assert found[0] == ("partial", "model", "It says more.")
    assert all(method in ("verbatim", "rules", "none") for _, method, _ in found[1:])
    assert document["verification"]["verdict_counts"]["partial"] == 1


async def test_three_forms_are_stored_and_agree() -> None:
    """The activity stores Markdown, HTML and JSON of one report and returns its text and numbers."""
    made, store = await run(SAMPLE.state(), SAMPLE.draft)
    assert await store.get_text(made.files.markdown) == made.text == rendered().markdown
    assert json.loads(await store.get_text(made.files.json_document))["report"]["markdown"] == made.text
    assert (await store.get_text(made.files.html)).startswith("<!doctype html>")
    assert made.citations == [
        Citation(number=1, source_id=SAMPLE.rule.source_id),
        Citation(number=2, source_id=SAMPLE.forced.source_id),
    ]
    assert made.summary == "Every table must be vacuumed in time."


def test_document_has_every_field() -> None:
    """report.json has every field of its schema, and every entry every field of its kind; the canary is in no form."""
    canary = "8fbddb3160f16a89af97bab4"
    forms = rendered(resolved=make_resolved(canary=canary))
    assert canary not in forms.markdown + forms.html + forms.document
    document = json.loads(forms.document)
    assert Report.model_validate(document).model_dump(mode="json") == document
    assert document["schema_version"] == 1
    assert document["report"]["sections"][-2:] == ["Sources", "Method and limits"]
    assert document["citations_count"] == len(document["citations"]) > 0
    assert sum(document["confidence_summary"].values()) == len(document["findings"])
    assert list(document["confidence_summary"]) == [degree.value for degree in Confidence]
    assert document["queries_failed"] == 1


def test_same_state_gives_the_same_bytes() -> None:
    """Rendering is a pure function of state, texts and skipped files; numbers stay (invariant 4, invariant 13)."""
    packed = ResearchState.unpack(SAMPLE.state().pack())
    first = rendered()
    assert first == render(packed, SAMPLE.draft, dict(reversed(SAMPLE.texts.items())), SKIPPED, "0.1.0")
    second = rendered(f"# T\n\nOnly the second [{SAMPLE.forced.id}].", citations=first.citations)
    assert "Only the second [2]." in second.markdown
    assert second.citations == first.citations


async def test_what_cannot_be_rendered_truly_is_a_failure() -> None:
    """A stored text without the quoted words at their place, and a state that does not say how its run ended."""
    wrong = SAMPLE.rule.model_copy(update={"start": SAMPLE.rule.start + 1, "end": SAMPLE.rule.end + 1})
    with pytest.raises(ApplicationError) as caught:
        await run(SAMPLE.state(evidence=SAMPLE.evidence | {wrong.id: wrong}), SAMPLE.draft)
    assert (caught.value.type, caught.value.non_retryable) == (failures.CONTENT_CORRUPT, True)
    with pytest.raises(ApplicationError):
        await run(SAMPLE.state(ending=None), SAMPLE.draft)


async def test_state_without_a_draft_is_rendered() -> None:
    """A run that wrote nothing still gets its three forms."""
    made, _ = await run(SAMPLE.state(draft=None), None)
    assert "No report text was written." in made.text
    assert (made.summary, made.citations) == ("", [])


async def test_long_report_is_cut_inline_and_stored_whole() -> None:
    """Inline text ends at 128,000 characters with a flag; the stored document is whole."""
    start = f"# T\n\nTold [{SAMPLE.rule.id}].\n\nx"
    room = INLINE_REPORT_CHARACTERS - len((await run(SAMPLE.state(), start))[0].text)
    for more, cut in ((room, False), (room + 1, True)):
        made, store = await run(SAMPLE.state(), start + "x" * more)
        assert (len(made.text), made.cut) == (INLINE_REPORT_CHARACTERS, cut)
        assert len(await store.get_text(made.files.markdown)) == INLINE_REPORT_CHARACTERS + cut


# --- passages --------------------------------------------------------------------------------------------------------
def cut(text: str, quote: str) -> QuotedPassage:
    source = make_source("corpus:c/a", "A", text)
    evidence = make_evidence(source, text, quote)
    return cut_passages({"ev": evidence}, {source.id: source}, {digest(text): text})["ev"]


@pytest.mark.parametrize("text", ["", "é🐘é" * 3, "a\r\nb\u0301c", "one two " * 100])
def test_offsets_are_code_points_of_the_stored_text(text: str) -> None:
    """C.8: offsets count characters of the stored text as it is; prefix and suffix have 32 at most (invariant 10)."""
    passage = cut(f"{text}QUOTE{text}", "QUOTE")
    assert (passage.quote, passage.prefix, passage.suffix) == ("QUOTE", text[-32:], text[:32])


def test_other_words_and_missing_texts_are_refused() -> None:
    """A quote that the stored text does not have at its place is never written (invariant 3)."""
    sources = {source.id: source for source in SAMPLE.sources.values()}
    for changed in (VACUUM.replace("two billion", "ten billion"), "\n" + VACUUM, ""):
        with pytest.raises(ContentCorrupt):
            cut_passages(SAMPLE.evidence, sources, SAMPLE.texts | {digest(VACUUM): changed})
    for known, texts in ((sources, {}), ({}, SAMPLE.texts)):
        with pytest.raises(ContentMissing):
            cut_passages(SAMPLE.evidence, known, texts)
