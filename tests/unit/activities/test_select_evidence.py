"""The activity that chooses passages from whole stored texts."""

from temporalio.testing import ActivityEnvironment

from activities.select_evidence import SelectionActivities
from contracts.addresses import digest
from contracts.messages import SelectedEvidence, SelectionRequest
from contracts.notebooks import AnalysisEntry
from contracts.roles import SourceExtract
from providers.storage.stored_notebooks import Notebooks
from tests.unit.activities.reporting.memory_store import MemoryStore

TEXT = "## Height\r\n\r\nThe wall of the dam is 84 metres high, as measured from the bed of the river below it.\r\n"
SNIPPET = "A page that nobody could read says that the wall of the dam is 91 metres high."
QUESTIONS = ["How high is the wall of the dam?", "Do whales sing?"]


async def test_passages_are_stored_as_evidence() -> None:
    """The entry has each passage at its exact place; the snippet of an unread source is none."""
    store = MemoryStore()
    read = SourceExtract(id="src-1", title="Dam", text=await store.put_text(TEXT))
    unread = SourceExtract(id="src-2", title="Closed", snippet=SNIPPET)
    notebooks = Notebooks(store)
    request = SelectionRequest(research_id="r", questions=QUESTIONS, sources=[read, unread])
    chosen = await ActivityEnvironment().run(SelectionActivities(store, notebooks).select_evidence, request)
    assert isinstance(chosen, SelectedEvidence)
    ((evidence,), none) = chosen.evidence()
    assert evidence.source_id == "src-1"
    assert none == []
    assert TEXT[evidence.start : evidence.end].startswith("The wall of the dam is 84 metres high")
    assert chosen.entry is not None
    (kept,) = (await notebooks.read(chosen.entry, AnalysisEntry)).evidence
    assert (kept.id, kept.heading) == (evidence.id, "Height")
    assert kept.quote_hash == digest(TEXT[kept.start : kept.end])


async def test_nothing_found_leaves_no_entry() -> None:
    """Where no passage speaks of a question nothing is stored."""
    store = MemoryStore()
    source = SourceExtract(id="src-1", text=await store.put_text(TEXT))
    request = SelectionRequest(research_id="r", questions=QUESTIONS[1:], sources=[source])
    activities = SelectionActivities(store, Notebooks(store))
    assert await ActivityEnvironment().run(activities.select_evidence, request) == SelectedEvidence(places=[[]])
