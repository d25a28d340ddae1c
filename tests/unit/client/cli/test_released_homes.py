"""Homes of released versions: whatever this version writes, it reads what they left."""

import json
import tarfile
from pathlib import Path

import pytest

from contracts.messages import PrepareRequest
from contracts.names import SCHEMA_VERSION
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_records import Records
from tests.fakes.world import model_world
from tests.homes import record
from tests.unit.activities.scripted import environment
from tests.unit.client.cli.command_line import research

KEPT = sorted(record.FOLDER.glob("*.tar.gz"))


@pytest.fixture(params=KEPT, ids=lambda path: path.name.removesuffix(".tar.gz"))
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A home of a released version, as it was left."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_a_stored_home_is_listed_and_shown(kept: Path) -> None:
    """Each run with its outcome, its steps and its report."""
    variables = {"RESEARCH_HOME": str(kept)}
    listed = json.loads(research("list", "--json", **variables).stdout)
    statuses = {row["research_id"]: row["status"] for row in listed}
    completed = dict.fromkeys(record.ENDED, Outcome.COMPLETED.value)
    assert statuses == completed | {record.CANCELLED: RunStatus.CANCELLED.value}
    for name in record.ENDED:
        assert "5 findings" in research("status", name, **variables).stdout
        assert "## " in research("report", name, **variables).stdout


@pytest.mark.soak
def test_reports_of_a_stored_home_are_audited(kept: Path) -> None:
    """Every stored text, passage, citation and verdict is found again."""
    variables = {"RESEARCH_HOME": str(kept)}
    for name in record.ENDED:
        audited = research("audit", name, **variables)
        assert (audited.exit_code, "no difference" in audited.stdout) == (0, True), audited.output


async def test_a_run_of_a_stored_home_is_resumed(kept: Path) -> None:
    """A resumption gets its state with findings and sources; saved again, it is a session of this version."""
    world = model_world(kept, "http://127.0.0.1:9")
    [prepare] = [each for each in world.activities() if each.__name__ == "prepare_research"]
    request = json.dumps(record.REQUEST | {"continue_from": record.CANCELLED})
    prepared = await environment().run(prepare, PrepareRequest(research_id=record.CANCELLED, request_json=request))
    state = ResearchState.unpack(prepared.packed_state)
    assert state.evidence.sources
    assert state.work.plan.nodes
    sessions = RecordSessionStore(Records(kept, SESSIONS))
    before = await sessions.load(record.CANCELLED) or ""
    await sessions.save(record.CANCELLED, before, closed=False)
    after = json.loads(await sessions.load(record.CANCELLED) or "")
    assert (after["schema_version"], after) == (SCHEMA_VERSION, json.loads(before))
    await world.close()
