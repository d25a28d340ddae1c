"""What is done with stored sessions: pieces of documents, going on, resolving, sessions of an older form."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from activities.configuration import ResearchConfiguration
from contracts import failures
from contracts.messages import DocumentPiece, DocumentPieceRequest, PrepareRequest, SaveRequest, StateChange
from contracts.notebooks import AnalysisEntry
from contracts.outcome import ResearchResult
from contracts.state import SCHEMA_VERSION, ResearchState
from contracts.state_changes import change_between, digest_of, pack_json
from contracts.vocabulary import Outcome, Quality, StopReason
from tests.fakes import states
from tests.fakes.world import World
from tests.unit.activities.scripted import environment

URL = "corpus:manual/a.md"
QUESTION = "How does the engine prevent wraparound?"


class Records:
    """The activities over one store."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_name = {work.__name__: work for work in world.activities()}

    async def call(self, activity: str, request: Any) -> Any:
        """What an activity answers."""
        return await environment().run(self._by_name[activity], request)

    async def prepare(self, *, continued: bool = False, **fields: Any) -> Any:
        """Prepare the run `r-1`."""
        asked = {"query": QUESTION, "corpus": "manual", **fields}
        request = PrepareRequest(research_id="r-1", request_json=json.dumps(asked), continued=continued)
        return await self.call("prepare_research", request)

    async def refusal(self, **fields: Any) -> tuple[str, str | None, Any]:
        """How preparing fails: words, type, details."""
        with pytest.raises(ApplicationError) as caught:
            await self.prepare(**fields)
        return caught.value.message, caught.value.type, list(caught.value.details)

    async def keep(self, **changes: Any) -> ResearchState:
        """Store a session of `r-1`."""
        state = states.state(**{"resolved": states.resolved(research_id="r-1", query=QUESTION), **changes})
        await self.world.sessions.save("r-1", state.model_dump_json(), closed=True)
        return state


@pytest_asyncio.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    world = World(tmp_path)
    yield Records(world)
    await world.close()


@pytest.mark.parametrize(
    ("offset", "limit", "piece"),
    [
        (0, 4, DocumentPiece(text="0123", next_offset=4, size=10)),
        (4, 5, DocumentPiece(text="45678", next_offset=9, size=10)),
        (4, 6, DocumentPiece(text="456789", next_offset=None, size=10)),
        (0, 1_000_001, DocumentPiece(text="0123456789", next_offset=None, size=10)),
        (10, 5, DocumentPiece(text="", next_offset=None, size=10)),
    ],
)
async def test_a_document_comes_in_pieces(records: Records, offset: int, limit: int, piece: DocumentPiece) -> None:
    """Each says where the next one begins; the last one says that there is none."""
    source = states.source(URL, text=await records.world.content.put_text("0123456789"))
    await records.keep(sources={source.id: source})
    asked = DocumentPieceRequest.model_construct(
        research_id="r-1", tenant="default", name=source.id, offset=offset, limit=limit
    )
    assert await records.call("read_document", asked) == piece


async def test_no_piece_is_larger_than_a_payload(records: Records) -> None:
    """However much is asked for, a million characters come."""
    source = states.source(URL, text=await records.world.content.put_text("a" * 1_000_001))
    await records.keep(sources={source.id: source})
    asked = DocumentPieceRequest.model_construct(
        research_id="r-1", tenant="default", name=source.id, offset=0, limit=2_000_000
    )
    piece = await records.call("read_document", asked)
    assert (len(piece.text), piece.next_offset, piece.size) == (1_000_000, 1_000_000, 1_000_001)


async def test_what_cannot_be_gone_on_with_is_refused_by_its_reason(records: Records) -> None:
    """Another id, no session, one that never began: each in its own words."""
    invalid = [{"stop_reason": "invalid_input"}]
    words, kind, details = await records.refusal(continue_from="r-2")
    assert (words, kind) == ("continue_from: a run goes on under its own id: start it as r-2", failures.REFUSED)
    assert details == invalid
    words, _, details = await records.refusal(continue_from="r-1")
    assert (words, details) == ("there is no session r-1 to go on from: see `research list`", invalid)
    await records.keep(resolved=None)
    words, _, details = await records.refusal(continue_from="r-1")
    assert (words, details) == ("session r-1 was never started: ask again", invalid)
    words, _, details = await records.refusal(corpus="nowhere")
    assert words.startswith("corpus: ")
    assert words.endswith("; add it with `research corpus add`")
    assert details == invalid


async def test_a_history_that_goes_on_changes_nothing(records: Records) -> None:
    """The next history of a run gets the stored resolution, whatever the request says; another start resolves anew."""
    stored = await records.keep(phase="analysis")
    again = await records.prepare(continue_from="r-1", continued=True, limits={"max_iterations": 7})
    assert (again.resolved, again.resolved_entry) == (stored.resolved, stored.resolved_entry)
    assert ResearchState.unpack(again.packed_state).phase == "analysis"
    anew = await records.prepare(continue_from="r-1", limits={"max_iterations": 7})
    assert anew.resolved.limits.max_iterations == 7
    assert anew.resolved.canary
    assert anew.resolved_entry.startswith("sha256:")
    assert anew.stored_result is None


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.PARTIAL])
async def test_only_a_completed_run_is_over(records: Records, outcome: Outcome) -> None:
    """Its result is handed out again; any other run goes on from its state."""
    result = ResearchResult(research_id="r-1", outcome=outcome, stop_reason=StopReason.MAX_ITERATIONS)
    await records.keep(phase="closing", result=result)
    again = await records.prepare(continue_from="r-1")
    if outcome is Outcome.COMPLETED:
        assert (again.stored_result, again.packed_state) == (result, None)
    else:
        assert again.stored_result is None
        assert ResearchState.unpack(again.packed_state).phase == "closing"


async def test_a_session_of_the_first_form_gets_a_notebook(records: Records) -> None:
    """What it held itself is an entry that findings, evidence and sources name; nothing of it is lost."""
    cited = states.source(URL, quality=Quality.HIGH, title="A")
    other = states.source("corpus:manual/b.md", title="B")
    finding = states.finding("an answer", source_ids=[cited.id], evidence_ids=["ev-1"])
    evidence = {"ev-1": {"id": "ev-1", "source_id": cited.id, "start": 0, "end": 3, "quote_hash": "sha256:" + "0" * 64}}
    before = ResearchState.model_validate(
        states.state(
            resolved=states.resolved(research_id="r-1", query=QUESTION),
            sources={cited.id: cited, other.id: other},
            findings=[finding],
        ).model_dump(mode="json")
        | {"evidence": evidence, "schema_version": SCHEMA_VERSION - 1}
    )
    await records.world.sessions.save("r-1", before.model_dump_json(), closed=True)
    prepared = await records.prepare(continue_from="r-1")
    state = ResearchState.unpack(prepared.packed_state)
    [entry] = state.notebook
    assert state.schema_version == SCHEMA_VERSION
    assert {item.entry for item in (*state.findings, *state.evidence.values())} == {entry}
    kept = await records.world.notebooks.read(entry, AnalysisEntry)
    assert [one.statement for one in kept.findings] == ["an answer"]
    assert [one.id for one in kept.evidence] == ["ev-1"]
    assert [one.id for one in kept.sources] == [cited.id]
    assert [source.best_quality for source in state.sources.values()] == [Quality.HIGH, Quality.HIGH]


async def test_a_server_that_does_not_tell_its_attributes_is_asked_again(tmp_path: Path) -> None:
    """It is a failure that passes, and no reason to go without."""

    async def ask() -> bool:
        raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    world = World(tmp_path, configuration=ResearchConfiguration(search_attributes=ask, product_version="0.1.0"))
    with pytest.raises(ApplicationError, match=r"does not tell its search attributes \(unavailable\)") as caught:
        await Records(world).prepare()
    assert not caught.value.non_retryable
    await world.close()


async def test_a_change_is_made_once(records: Records) -> None:
    """The same change again changes nothing; one of another state, or one that leads elsewhere, is refused by type."""
    first, second = {"schema_version": 2, "phase": "planning"}, {"schema_version": 2, "phase": "gathering"}
    whole = StateChange(digest=digest_of(first), packed=pack_json(change_between({}, first)))
    step = pack_json(change_between(first, second))
    change = StateChange(base=digest_of(first), digest=digest_of(second), packed=step)
    for sent in (whole, change, change):
        await records.call("save_session", SaveRequest(research_id="r-1", change=sent))
    assert json.loads(await records.world.sessions.load("r-1") or "")["phase"] == "gathering"
    for wrong in (
        change.model_copy(update={"digest": "0" * 32}),
        StateChange(base="1" * 32, digest="2" * 32, packed=change.packed),
        StateChange(digest="0" * 32, packed=whole.packed),
    ):
        with pytest.raises(ApplicationError) as caught:
            await records.call("save_session", SaveRequest(research_id="r-1", change=wrong))
        assert (caught.value.type, caught.value.non_retryable) == (failures.SESSION_CHANGED, True)
