"""The activity that renders a report, and the report as data."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.reporting.inputs import RenderMaterial, cut_passages, gather_inputs
from activities.reporting.render import ReportingActivities, render, write_html
from activities.reporting.report_text import Fact
from activities.reporting.report_tree import build_report, write_markdown
from contracts import failures
from contracts.addresses import digest
from contracts.messages import RenderedReport, RenderRequest
from contracts.outcome import INLINE_REPORT_CHARACTERS, Citation
from contracts.report import Report
from contracts.resolved import SkippedFile
from contracts.state import ResearchState
from contracts.vocabulary import Confidence
from providers.storage.sessions import RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import Records
from tests.fakes.killers import HereCalls
from tests.fakes.random_world import whole_change
from tests.unit.activities.reporting.sample import (
    RESEARCH_ID,
    SAMPLE,
    SKIPPED,
    make_evidence,
    make_resolved,
    make_source,
    rendered,
    store_of,
)
from tests.unit.activities.scripted import MemoryStore


def test_the_forms_are_walks_over_one_tree() -> None:
    """What the tree of a report has is in both texts, and neither renderer looks anywhere else for it."""
    state = SAMPLE.state()
    inputs = gather_inputs(
        RenderMaterial(state=state, draft=SAMPLE.draft, texts=SAMPLE.texts, skipped=SKIPPED, product_version="0.1.0")
    )
    tree = build_report(inputs)
    fact = Fact("A label", "a sentence", ["an item"])
    source = replace(tree.sources[0], name="Another title")
    changed = replace(tree, facts=[fact], sources=[source, *tree.sources[1:]], checking="How it was checked.")
    for text in (write_markdown(changed).text, write_html(changed)):
        for words in ("A label", "a sentence", "an item", "Another title", "How it was checked."):
            assert words in text
        assert tree.facts[0].value not in text


async def list_skipped(corpus: str) -> list[SkippedFile]:
    assert corpus == "manual"
    return SKIPPED


async def run(
    state: ResearchState, draft: str | None, texts: dict[str, str] | None = None
) -> tuple[RenderedReport, MemoryStore]:
    """Run the activity over a store that has the sample's documents, or others."""
    store = await store_of(SAMPLE.texts if texts is None else texts)
    if draft is not None:
        reference = await store.put_text(draft, "text/markdown")
        assert state.evidence.draft is not None
        state.evidence.draft = state.evidence.draft.model_copy(update={"document": reference})
    sessions = RecordSessionStore(Records(Path(), "sessions"))
    activities = ReportingActivities(store, list_skipped, "0.1.0", HereCalls(), sessions, Notebooks(store))
    request = RenderRequest(research_id=RESEARCH_ID, change=whole_change(state))
    return await ActivityEnvironment().run(activities.render_report, request), store


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
    turned = dict(reversed(SAMPLE.texts.items()))
    material = RenderMaterial(state=packed, draft=SAMPLE.draft, texts=turned, skipped=SKIPPED, product_version="0.1.0")
    assert first == render(material)
    assert first == render(RenderMaterial.model_validate_json(material.to_json()))
    second = rendered(f"# T\n\nOnly the second [{SAMPLE.forced.id}].", citations=first.citations)
    assert "Only the second [2]." in second.markdown
    assert second.citations == first.citations


async def test_what_cannot_be_rendered_truly_is_a_failure() -> None:
    """A quote that is not at its place, a text that is gone, and a run without an end are never written (invariant 3)."""
    wrong = SAMPLE.rule.model_copy(update={"start": SAMPLE.rule.start + 1, "end": SAMPLE.rule.end + 1})
    for changes, texts, kind in (
        ({"evidence": SAMPLE.evidence | {wrong.id: wrong}}, None, failures.CONTENT_CORRUPT),
        ({}, {}, failures.CONTENT_MISSING),
        ({"ending": None}, None, failures.REFUSED),
    ):
        with pytest.raises(ApplicationError) as caught:
            await run(SAMPLE.state(**changes), SAMPLE.draft, texts=texts)
        assert (caught.value.type, caught.value.non_retryable) == (kind, True)


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
@pytest.mark.parametrize("text", ["", "é🐘é" * 3, "a\r\nb\u0301c", "one two " * 100])
def test_offsets_are_code_points_of_the_stored_text(text: str) -> None:
    """C.8: offsets count characters of the stored text as it is; prefix and suffix have 32 at most (invariant 10)."""
    whole = f"{text}QUOTE{text}"
    source = make_source("corpus:c/a", "A", whole)
    evidence = make_evidence(source, whole, "QUOTE")
    passage = cut_passages({"ev": evidence}, {source.id: source}, {digest(whole): whole})["ev"]
    assert (passage.quote, passage.prefix, passage.suffix) == ("QUOTE", text[-32:], text[:32])
