"""Records of runs: preparing, resuming, checkpoints, turns in the queue, documents, and which tenant they belong to."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.preparation import ResearchConfiguration
from contracts import failures
from contracts.addresses import digest, source_id
from contracts.ceilings import Budgets, Ceiling, Ceilings
from contracts.evidence import Artifact, DocumentRef, ReportDraft, list_artifacts
from contracts.messages import (
    DocumentPiece,
    DocumentPieceRequest,
    MetadataRequest,
    PrepareRequest,
    SaveRequest,
    StateChange,
)
from contracts.names import SCHEMA_VERSION
from contracts.outcome import ReportFiles, ResearchResult
from contracts.state import ResearchState
from contracts.state_changes import change_between, json_digest, pack_json
from contracts.tenants import TenantRules, proof
from contracts.vocabulary import Outcome, RunStatus, SourceStatus, StopReason
from providers.shared.day_budget import DayBudget
from providers.shared.run_queue import QueueLimits, RunQueue
from tests.fakes import states
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.world import OpenForEver, World, model_world, no_list_of_runs
from tests.unit.activities.scripted import environment

URL = "corpus:manual/a.md"
QUESTION = "How does the engine prevent wraparound?"
CANARY = "8fbddb3160f16a89af97bab4"


class Records:
    """The activities over one store."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def call(self, activity: str, request: Any, env: ActivityEnvironment | None = None) -> Any:
        [work] = [each for each in self.world.activities() if each.__name__ == activity]
        return await (env or environment()).run(work, request)

    async def failure(self, activity: str, request: Any, env: ActivityEnvironment | None = None) -> ApplicationError:
        with pytest.raises(ApplicationError) as caught:
            await self.call(activity, request, env)
        return caught.value

    async def keep(self, **changes: Any) -> ResearchState:
        """Store a session of `r-1`, which belongs to the tenant `acme`."""
        resolved = states.resolved(research_id="r-1", query=QUESTION, tenant="acme", canary=CANARY)
        state = states.state(**{"resolved": resolved, **changes})
        await self.world.sessions.save("r-1", state.model_dump_json(), closed=True)
        return state


def prepare(*, continued: bool = False, **fields: Any) -> PrepareRequest:
    asked = {"query": QUESTION, "corpus": "manual", "tenant": "acme", **fields}
    return PrepareRequest(research_id="r-1", request_json=json.dumps(asked), continued=continued)


def piece(name: str, **fields: Any) -> DocumentPieceRequest:
    given = {"research_id": "r-1", "tenant": "acme", "name": name, "offset": 0, "limit": 1_000_000, **fields}
    return DocumentPieceRequest.model_construct(**given)


@pytest_asyncio.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    world = World(tmp_path)
    yield Records(world)
    await world.close()


async def test_a_run_with_a_model_names_the_documents_that_fit_its_question(tmp_path: Path) -> None:
    """They come with the resolution, so each role that chooses searches has them; rules search by words and need none."""
    corpus = MemoryCorpus({"vacuum.md": "# Vacuum\n\nIt freezes.", "locks.md": "# Locks\n\nThey wait."})
    world = model_world(tmp_path, "http://127.0.0.1:9", corpus)
    try:
        for engine, closest in (("model", ["Vacuum [vacuum.md]"]), ("extractive", [])):
            asked = prepare(query="When does a vacuum freeze rows?", engine=engine)
            prepared = await Records(world).call("prepare_research", asked)
            assert prepared.resolved.corpus.overview.closest == closest
    finally:
        await world.close()


async def test_a_process_learns_when_its_first_run_waits_for_a_model(tmp_path: Path) -> None:
    """A run without a model waits for nothing, so that what comes later is not loaded beside it."""
    corpus = MemoryCorpus({"vacuum.md": "# Vacuum\n\nIt freezes."})
    world = model_world(tmp_path, "http://127.0.0.1:9", corpus)
    [work] = [each for each in world.activities() if each.__name__ == "prepare_research"]
    waits = getattr(work, "__self__").waits_for_models  # noqa: B009  mypy knows no owner of a callable
    try:
        for engine, is_set in (("extractive", False), ("model", True)):
            await environment().run(work, prepare(query="When does a vacuum freeze rows?", engine=engine))
            assert waits.is_set() is is_set
    finally:
        await world.close()


async def test_a_preview_counts_what_is_indexed(tmp_path: Path) -> None:
    """So its estimate follows the documents; a corpus without an index counts as one file of unknown size."""
    corpus = MemoryCorpus({"vacuum.md": "# Vacuum\n\nIt freezes.", "locks.md": "# Locks\n\nThey wait."})
    world = model_world(tmp_path, "http://127.0.0.1:9", corpus)
    previewed = await Records(world).call("preview_research", prepare())
    assert previewed.corpus.files == 2
    assert "less for what it searches" in previewed.estimate.source
    unknown = await Records(world).call("preview_research", prepare(corpus="another"))
    assert (unknown.corpus.files, unknown.corpus.size_bytes) == (1, 0)
    assert unknown.estimate.likely_calls > previewed.estimate.likely_calls
    await world.close()


async def test_the_settings_are_described_for_the_tenant_that_is_proven(records: Records) -> None:
    """A form of its values is within its own ceiling; who proves none gets those of the default tenant."""
    keys = {"acme": b"0123456789abcdef"}
    records.world.configuration = ResearchConfiguration(
        tenants=TenantRules(needs_proof=True, keys=keys),
        ceilings=Ceilings(ceiling=Ceiling(max_cost_usd=1.5), tenants={"acme": Ceiling(max_cost_usd=0.5)}),
    )
    asking = environment()
    forged = proof({"acme": b"another-key-of-16"}, asking.info.workflow_id or "", "acme")
    for given, usd in ((proof(keys, asking.info.workflow_id or "", "acme"), 0.5), (forged, 1.5), ("", 1.5)):
        described = await records.call("describe_research", MetadataRequest(tenant_proof=given), asking)
        limits = described.research_settings_schema["properties"]["limits"]["properties"]
        assert (limits["max_cost_usd"]["default"], limits["max_cost_usd"]["maximum"]) == (usd, usd)


async def test_a_run_reserves_the_money_of_the_day_before_its_first_call(tmp_path: Path) -> None:
    """It is refused in one line, or gets what is left and says so; its last checkpoint frees what it did not spend."""
    world = model_world(tmp_path, "http://127.0.0.1:9")
    world.budget = DayBudget(world.shared, Budgets(usd_per_day=5.0, tenants={"acme": 3.0}), "default", no_list_of_runs)
    records = Records(world)
    assert (await records.call("preview_research", prepare())).limits.max_cost_usd == 2.0
    assert (await world.budget.look())[0].reserved == 0.0
    prepared = await records.call("prepare_research", prepare())
    assert (await world.budget.look())[0].reserved == prepared.resolved.limits.max_cost_usd == 2.0
    other = prepare().with_fields(research_id="r-2")
    refused = await records.failure("preview_research", other)
    assert (await world.budget.look())[0].reserved == 2.0
    assert (await records.failure("prepare_research", other)).message == refused.message
    assert re.fullmatch(
        r"budget: this run may cost 2\.00 US dollars, and 1\.00 of 3\.00 are left today \(the operator's "
        r"budgets\.tenants\.acme; 0\.00 spent, 2\.00 reserved by 1 run\): name at most that in limits\.max_cost_usd, or "
        r"start it again after 00:00 UTC, in \d+ h \d+ min",
        refused.message,
    )
    world.configuration = replace(world.configuration, ceilings=Ceilings(beyond="cut"))
    cut = (await records.call("prepare_research", other)).resolved
    again = other.with_fields(request_json=json.dumps({"query": QUESTION, "corpus": "manual", "tenant": "acme"}))
    assert (await records.call("preview_research", again)).cuts == cut.cuts
    assert cut.limits.max_cost_usd == cut.estimate.cap_usd == 1.0
    assert cut.cuts == ["limits.max_cost_usd: 1.00 in place of 2.00, as no more of the day's money is left"]
    state = states.state(resolved=cut).snapshot()
    change = StateChange(digest=json_digest(state), packed=pack_json(change_between({}, state)))
    await records.call("save_session", SaveRequest(research_id="r-2", tenant="acme", change=change, closed=True))
    assert (await world.budget.look())[0].reserved == 2.0
    await world.close()


async def test_the_tenant_of_a_run_is_proven_where_the_operator_wants_it(records: Records) -> None:
    """A name without proof is nobody's or refused, in a preview as well; after continue-as-new it is the session's."""
    keys = {"acme": b"the key of acme"}
    records.world.configuration = ResearchConfiguration(tenants=TenantRules(needs_proof=True, keys=keys))
    given = proof(keys, "r-1", "acme")
    previews = [
        await records.call("preview_research", prepare().with_fields(tenant_proof=text)) for text in (given, "")
    ]
    assert [preview.tenant for preview in previews] == ["acme", "default"]
    assert (await records.call("prepare_research", prepare().with_fields(tenant_proof=given))).resolved.tenant == "acme"
    assert "cannot be used" in (await records.failure("prepare_research", prepare())).message
    planned = prepare(tenant="other").with_fields(tenant_proof=proof(keys, "plan-1", "acme"), started_by="plan-1")
    assert (await records.call("preview_research", planned)).tenant == "acme"
    await records.keep()
    continued = prepare(continued=True, continue_from="r-1")
    assert (await records.call("prepare_research", continued)).resolved.tenant == "acme"
    records.world.configuration = ResearchConfiguration(tenants=TenantRules(needs_proof=True, refuses=True))
    refused = await records.failure("prepare_research", prepare())
    assert refused.message.startswith("tenant: the start proves none")


# --- documents --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("size", "offset", "limit", "expected"),
    [
        (10, 4, 5, ("45678", 9)),
        (10, 4, 6, ("456789", None)),
        (10, 10, 5, ("", None)),
        (1_000_010, 0, 2_000_000, ("0123456789" * 100_000, 1_000_000)),
    ],
)
async def test_a_document_comes_in_pieces(records: Records, size: int, offset: int, limit: int, expected: Any) -> None:
    """Each names the offset of the next one, and none is larger than a payload, however much is requested."""
    text = await records.world.content.put_text("0123456789" * (size // 10))
    source = states.source(URL, text=text)
    await records.keep(sources={source.id: source})
    found = await records.call("read_document", piece(source.id, offset=offset, limit=limit))
    assert found == DocumentPiece(text=expected[0], next_offset=expected[1], size=size)


async def test_documents_belong_to_the_tenant_of_the_run(records: Records) -> None:
    """Another tenant gets, word for word, the answer for a run that does not exist; no document is read by its hash."""
    source = states.source(URL, text=await records.world.content.put_text("The words of acme."))
    await records.keep(sources={source.id: source})
    session = json.loads((await records.call("read_document", piece("session.json"))).text)
    assert session["resolved"]["tenant"] == "acme"
    assert (await records.call("read_document", piece(source.id))).text == "The words of acme."
    missing = await records.failure("read_document", piece("session.json", research_id="r-2"))
    assert missing.type == failures.CONTENT_MISSING
    for name in ("session.json", source_id(URL), "report.md", "src-0000000000"):
        refused = await records.failure("read_document", piece(name, tenant="other"))
        assert (refused.type, str(refused), refused.details) == (missing.type, str(missing), missing.details)
    stored = session["sources"][source_id(URL)]["text"]["hash"]
    assert (await records.failure("read_document", piece(stored))).type == failures.CONTENT_MISSING


async def test_documents_are_read_by_the_tenant_that_is_proven(records: Records) -> None:
    """A tenant in the argument counts for nothing where proofs are needed, and neither does a proof for another run."""
    await records.keep()
    keys = {"acme": b"a-key-of-sixteen-bytes", "other": b"another-of-sixteen-bytes"}
    records.world.configuration = ResearchConfiguration(tenants=TenantRules(needs_proof=True, keys=keys))
    own = piece("session.json", tenant="other", tenant_proof=proof(keys, "r-1", "acme"))
    assert json.loads((await records.call("read_document", own)).text)["resolved"]["tenant"] == "acme"
    forged = [proof(keys, "r-2", "acme"), proof(keys, "r-1", "other"), '{"tenant": "acme"}', ""]
    for given in forged:
        refused = await records.failure("read_document", piece("session.json", tenant_proof=given))
        assert refused.type == failures.CONTENT_MISSING
    records.world.configuration = ResearchConfiguration(tenants=TenantRules(needs_proof=True, refuses=True, keys=keys))
    assert (await records.failure("read_document", piece("session.json"))).type == failures.REFUSED


async def test_the_canary_stays_with_the_run(records: Records) -> None:
    """Neither the session as a document nor a preview of how the run goes on has the mark that no text may repeat."""
    await records.keep()
    document = await records.call("read_document", piece("session.json"))
    request = {"query": QUESTION, "tenant": "acme", "continue_from": "r-1"}
    asked = PrepareRequest(research_id="r-1", request_json=json.dumps(request))
    preview = await records.call("preview_research", asked)
    assert preview.query == QUESTION
    assert CANARY not in f"{document.text}{preview.model_dump_json()}"


@pytest.mark.parametrize("activity", ["prepare_research", "preview_research"])
async def test_a_request_that_is_none_is_refused_once(records: Records, activity: str) -> None:
    """No attempt can use it, so none follows the first one."""
    failure = await records.failure(activity, PrepareRequest(research_id="r-9", request_json="x"))
    assert (failure.type, failure.non_retryable) == (failures.REFUSED, True)


async def test_texts_of_a_report_in_progress_are_served(records: Records) -> None:
    """The newest draft by name, and each text that the record names by hash, to its tenant alone (S2-022)."""
    first, newest, other = [await records.world.content.put_text(f"# Report\n\n{word}\n") for word in ("a", "b", "c")]
    await records.keep(draft=states.draft(document=newest), revisions=[first.hash, newest.hash])
    for name, word in (("draft.md", "b"), (newest.hash, "b"), (first.hash, "a")):
        assert (await records.call("read_document", piece(name))).text == f"# Report\n\n{word}\n"
        assert (await records.failure("read_document", piece(name, tenant="other"))).type == failures.CONTENT_MISSING
    assert (await records.failure("read_document", piece(other.hash))).type == failures.CONTENT_MISSING


async def test_a_session_lists_its_files(records: Records) -> None:
    """Original and text of each source by hash, kind, address and time of reading; a text that is its own original
    is one file, and a page that was not read has none. A session that is read again gives the same view, with all
    fields of a source (S2-004, S2-008, S2-011, S2-012, S2-035, S2-044).
    """
    content, read_at = records.world.content, "2026-11-21T12:00:00+00:00"
    page, plain = await content.put(b"<p>Page", "text/html"), await content.put_text("Words.")
    paper = await content.put(b"%PDF", "application/pdf")
    made = [
        ("a/page", page.hash, "text/html"),
        ("a/words.md", plain.hash, "text/plain"),
        ("b", paper.hash, paper.media_type),
    ]
    sources = [
        states.source(f"https://e.org/{name}", content_hash=raw, text=plain, media_type=kind, retrieved_at=read_at)
        for name, raw, kind in made
    ]
    unread = states.source("https://e.org/unread", status=SourceStatus.NOT_FETCHED)
    finding = states.finding("Words.", source_ids=[sources[0].id])
    await records.keep(sources=states.sources(*sources, unread), findings=[finding])
    session = json.loads((await records.call("read_document", piece("session.json"))).text)
    files = session["artifacts"]
    assert [(one["file_id"], one["kind"], one["source_url"]) for one in files] == [
        (page.hash, "html", "https://e.org/a/page"),
        (plain.hash, "text", "https://e.org/a/page"),
        (plain.hash, "text", "https://e.org/a/words.md"),
        (paper.hash, "pdf", "https://e.org/b"),
        (plain.hash, "text", "https://e.org/b"),
    ]
    assert {one["retrieved_at"] for one in files} == {read_at}
    assert files[0]["name"] == "page"
    fields = {"url", "title", "retrieved_at", "snippet", "file_id", "notes"}
    assert all(fields <= source.keys() for source in session["sources"].values())
    assert {"resolved", "status", "plan", "sources", "artifacts", "draft", "event_count"} <= session.keys()
    first = session["sources"][sources[0].id]
    assert (first["file_id"], first["retrieved_at"], first["notes"]) == (page.hash, read_at, ["Words."])
    again = ResearchState.model_validate(session)
    shown = [artifact for source in again.evidence.sources.values() for artifact in list_artifacts(source)]
    assert shown == [Artifact.model_validate(one) for one in files]


# --- preparing and resuming -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("session", "fields", "words"),
    [
        (None, {"continue_from": "r-2"}, "continue_from: a run goes on under its own id: start it as r-2"),
        (None, {"continue_from": "r-1"}, "there is no session r-1 to go on from: see `research list`"),
        ({"resolved": None}, {"continue_from": "r-1"}, "session r-1 was never started: ask again"),
        ({}, {"continue_from": "r-1", "tenant": "other"}, "there is no session r-1 to go on from: see `research list`"),
        ({}, {"tenant": "other"}, "the id r-1 cannot be used: choose another one"),
        (None, {"follow_up_of": "r-0"}, "follow_up_of: there is no stored run r-0: see `research list`"),
        (None, {"corpus": "nowhere"}, "; add it with `research corpus add`"),
    ],
)
async def test_a_run_that_cannot_be_prepared_is_refused(
    records: Records, session: Any, fields: Any, words: str
) -> None:
    """Another id, no session, one that never began, one of another tenant, whose session would be overwritten."""
    if session is not None:
        await records.keep(**session)
    before = await records.world.sessions.load("r-1")
    refused = await records.failure("prepare_research", prepare(**fields))
    assert (refused.type, list(refused.details)) == (failures.REFUSED, [{"stop_reason": "invalid_input"}])
    assert refused.message.endswith(words)
    assert await records.world.sessions.load("r-1") == before


async def test_a_run_that_may_begin_has_a_session(records: Records) -> None:
    """It names its resolution as a document that is in use; a run that waits for its turn has none yet."""
    records.world.queue = RunQueue(records.world.shared, QueueLimits(at_once=1), OpenForEver())
    begun = await records.call("prepare_research", prepare())
    stored = ResearchState.model_validate_json(await records.world.sessions.load("r-1") or "")
    assert begun.has_turn
    assert (stored.work.status, stored.work.resolved, stored.evidence.notebook) == (
        RunStatus.RUNNING,
        begun.resolved,
        [begun.resolved_entry],
    )
    waits = await records.call("prepare_research", prepare().model_copy(update={"research_id": "r-2"}))
    assert not waits.has_turn
    assert (waits.turn.place, bool(waits.turn.ticket)) == (1, True)
    assert await records.world.sessions.load("r-2") is None


async def test_a_run_that_may_not_wait_is_refused(records: Records) -> None:
    """It names the queue and the remedy, and has no session; a run that has begun is prepared again."""
    records.world.queue = RunQueue(records.world.shared, QueueLimits(at_once=1, queued=0), OpenForEver())
    await records.call("prepare_research", prepare())
    refused = await records.failure("prepare_research", prepare().model_copy(update={"research_id": "r-2"}))
    assert (refused.type, refused.message.split(":")[0]) == (failures.REFUSED, "the queue is full")
    assert await records.world.sessions.load("r-2") is None
    assert (await records.call("prepare_research", prepare())).has_turn


async def test_a_history_that_continues_changes_nothing(records: Records) -> None:
    """The next history of a run gets the stored resolution, whatever the request says; a resumption resolves again."""
    stored = await records.keep(phase="analysis")
    more = {"continue_from": "r-1", "limits": {"max_iterations": 7}}
    again = await records.call("prepare_research", prepare(continued=True, **more))
    assert (again.resolved, again.resolved_entry) == (stored.work.resolved, stored.work.resolved_entry)
    assert ResearchState.unpack(again.packed_state).work.phase == "analysis"
    resumed = await records.call("prepare_research", prepare(**more))
    assert (resumed.resolved.limits.max_iterations, resumed.resolved.canary) == (7, CANARY)
    assert resumed.resolved_entry.startswith("sha256:")


async def test_a_run_that_is_started_again_has_the_mark_of_before(records: Records) -> None:
    """Its prompts, and so its paid answers, are the same; a damaged session gives a new one, another run its own."""
    await records.keep()
    again = await records.call("prepare_research", prepare())
    other = await records.call("prepare_research", prepare().model_copy(update={"research_id": "r-2"}))
    await records.world.sessions.save("r-1", "{}", closed=True)
    damaged = await records.call("prepare_research", prepare())
    assert again.resolved.canary == CANARY
    assert len({CANARY, other.resolved.canary, damaged.resolved.canary}) == 3


async def test_only_a_completed_run_is_over(records: Records) -> None:
    """Its result is returned again; any other run goes on from its state."""
    for outcome, over in ((Outcome.COMPLETED, True), (Outcome.PARTIAL, False)):
        result = ResearchResult(research_id="r-1", outcome=outcome, stop_reason=StopReason.MAX_ITERATIONS)
        await records.keep(phase="closing", result=result)
        again = await records.call("prepare_research", prepare(continue_from="r-1"))
        assert again.stored_result == (result if over else None)
        assert over or ResearchState.unpack(again.packed_state).work.phase == "closing"


@pytest.mark.parametrize(
    ("strategy", "session", "words"),
    [
        ("supervisor", {}, "cannot be refreshed, only those of living can: start a new run instead"),
        ("living", {}, "the run has no finished report: `research resume r-1`"),
        ("living", {"files": True}, "the stored report is gone, so nothing can be compared with it: start a new run"),
    ],
)
async def test_only_a_finished_live_report_can_be_refreshed(
    records: Records, strategy: str, session: dict[str, Any], words: str
) -> None:
    """Another strategy, a run without a report, and a report that nothing can be compared with are refused by name."""
    before = (await records.keep()).work.resolved.model_copy(update={"strategy": strategy})
    kept: dict[str, Any] = {"resolved": before}
    if session:
        lost = DocumentRef(hash=digest("lost"))
        files = ReportFiles(markdown=lost, html=lost, json_document=lost)
        result = {"research_id": "r-1", "outcome": Outcome.COMPLETED, "stop_reason": StopReason.NO_OPEN_GAPS}
        kept |= {"result": ResearchResult(**result, files=files), "draft": ReportDraft(document=lost)}
    await records.keep(**kept)
    refused = await records.failure("prepare_research", prepare(continue_from="r-1", refresh=True, strategy=strategy))
    assert refused.type == failures.REFUSED
    assert refused.message.startswith("refresh: ")
    assert refused.message.endswith(words)


async def test_a_change_is_made_once(records: Records) -> None:
    """The same change again changes nothing; one of another state, or one that leads elsewhere, is refused by type."""
    first, second = ({"schema_version": SCHEMA_VERSION, "phase": phase} for phase in ("planning", "gathering"))
    whole = StateChange(digest=json_digest(first), packed=pack_json(change_between({}, first)))
    step = pack_json(change_between(first, second))
    change = StateChange(base=json_digest(first), digest=json_digest(second), packed=step)
    for sent in (whole, change, change):
        await records.call("save_session", SaveRequest(research_id="r-1", change=sent))
    assert json.loads(await records.world.sessions.load("r-1") or "")["phase"] == "gathering"
    for wrong in (
        change.model_copy(update={"digest": "0" * 32}),
        StateChange(base="1" * 32, digest="2" * 32, packed=change.packed),
        StateChange(digest="0" * 32, packed=whole.packed),
    ):
        failure = await records.failure("save_session", SaveRequest(research_id="r-1", change=wrong))
        assert (failure.type, failure.non_retryable) == (failures.SESSION_CHANGED, True)


async def test_a_change_is_made_to_what_another_version_has_written(records: Records) -> None:
    """A run that keeps to its version of the workflow code saves that version's form by the activities of any other."""
    other = SCHEMA_VERSION + 1
    first, second = ({"schema_version": other, "phase": phase} for phase in ("planning", "gathering"))
    whole = StateChange(digest=json_digest(first), packed=pack_json(change_between({}, first)))
    step = pack_json(change_between(first, second))
    change = StateChange(base=json_digest(first), digest=json_digest(second), packed=step)
    for sent in (whole, change):
        await records.call("save_session", SaveRequest(research_id="r-1", change=sent))
    stored = json.loads(await records.world.sessions.load("r-1", as_written=True) or "")
    assert (stored["schema_version"], stored["phase"]) == (other, "gathering")
    refused = await records.failure("prepare_research", prepare(continue_from="r-1"))
    assert (f"has the schema {other}" in refused.message, refused.non_retryable) == (True, False)


async def test_a_change_that_follows_one_in_flight_fits_before_and_after_that_is_stored(records: Records) -> None:
    """Either is the newest state; where the store has a third one, or the change in flight leads elsewhere, it is refused
    by type.
    """
    first, second, third = ({"schema_version": SCHEMA_VERSION, "iteration": number} for number in (1, 2, 3))

    def step(old: dict[str, Any], new: dict[str, Any], **fields: Any) -> StateChange:
        base = json_digest(old) if old else ""
        return StateChange(base=base, digest=json_digest(new), packed=pack_json(change_between(old, new)), **fields)

    async def save(change: StateChange) -> None:
        await records.call("save_session", SaveRequest(research_id="r-1", change=change))

    async def stored() -> int:
        return int(json.loads(await records.world.sessions.load("r-1") or "")["iteration"])

    saving = step(first, second)
    newest = step(second, third, in_flight=saving)
    for earlier in ([], [saving]):
        for change in [step({}, first), *earlier, newest]:
            await save(change)
        assert await stored() == 3
    await save(step({}, first))
    elsewhere = saving.model_copy(update={"packed": pack_json(change_between(first, third))})
    for wrong in (step(second, third), newest.with_fields(in_flight=elsewhere), newest.with_fields(in_flight=newest)):
        failure = await records.failure("save_session", SaveRequest(research_id="r-1", change=wrong))
        assert failure.type == failures.SESSION_CHANGED
    assert await stored() == 1
