"""The JSON of a run's state does not show that it has parts."""

from contracts.evidence import Evidence
from contracts.outcome import Event
from contracts.state import JSON_NAMES, PARTS, EvidenceState, ResearchState, WorkState
from contracts.vocabulary import RunStatus
from tests.fakes import states

PASSAGE = Evidence(id="ev-1", source_id="src-1", start=0, end=4)


def test_the_json_of_a_state_has_the_fields_of_all_parts_side_by_side() -> None:
    """Sessions, the query `session` and `session.json` have one object, whose fields clients read by name."""
    state = ResearchState(work=WorkState(status=RunStatus.RUNNING), evidence=EvidenceState(passages={"ev-1": PASSAGE}))
    names = [name for fields in JSON_NAMES.values() for name in fields.values()]
    written = state.model_dump(mode="json")
    assert len(names) == len(set(names)), "no field is in two parts"
    assert set(written) == {"schema_version", *names}
    assert (written["status"], written["evidence"]) == ("running", {"ev-1": PASSAGE.model_dump(mode="json")})
    assert state.snapshot() == {
        "schema_version": 3,
        "status": "running",
        "evidence": {"ev-1": {"id": "ev-1", "source_id": "src-1", "start": 0, "end": 4}},
    }


def test_a_stored_state_is_read_into_its_parts() -> None:
    """A session of an earlier version is read, and what is written is read as it was."""
    read = ResearchState.model_validate({"schema_version": 3, "status": "running", "evidence": {}, "iteration": 2})
    assert (read.work.status, read.work.iteration, read.evidence.passages) == (RunStatus.RUNNING, 2, {})
    full = states.state(findings=[states.finding("Pages are frozen.")], evidence={"ev-1": PASSAGE}, phase="analysis")
    assert ResearchState.model_validate_json(full.model_dump_json()) == full
    assert ResearchState.unpack(full.pack()) == full
    assert all(getattr(ResearchState(), part) == kind() for part, kind in PARTS.items())


def test_a_snapshot_leaves_the_state_as_it_is() -> None:
    """The report's text and the older events are left out of what is stored, not of the state."""
    state = states.state(events=[Event(seq=number, type="note", time="") for number in range(3)])
    assert [event["seq"] for event in state.snapshot(2)["events"]] == [1, 2]
    assert "events" not in state.snapshot()
    assert len(state.people.events) == 3
