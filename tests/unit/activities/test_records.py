"""Whose a session is: ids, documents and canaries belong to one tenant."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import source_id
from contracts.messages import DocumentPieceRequest, PrepareRequest
from tests.fakes import states
from tests.fakes.world import World
from tests.unit.activities.scripted import environment

URL = "corpus:manual/a.md"


class Records:
    """The activities over a session of the tenant `acme`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_name = {work.__name__: work for work in world.activities()}

    async def prepare(self, tenant: str, **fields: Any) -> Any:
        """Prepare the run `r-1` for a tenant."""
        asked = {"query": "How does the engine prevent wraparound?", "corpus": "manual", "tenant": tenant, **fields}
        request = PrepareRequest(research_id="r-1", request_json=json.dumps(asked))
        return await environment().run(self._by_name["prepare_research"], request)

    async def read(self, name: str, research_id: str = "r-1", **fields: Any) -> str:
        """The first piece of a document."""
        request = DocumentPieceRequest(research_id=research_id, name=name, **fields)
        piece = await environment().run(self._by_name["read_document"], request)
        return str(piece.text)

    async def failure(self, work: Any) -> ApplicationError:
        """How it fails."""
        with pytest.raises(ApplicationError) as caught:
            await work
        return caught.value


@pytest_asyncio.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    world = World(tmp_path)
    text = await world.content.put_text("The words of acme.")
    source = states.source(URL, text=text)
    state = states.state(
        resolved=states.resolved(research_id="r-1", tenant="acme", canary="8fbddb3160f16a89af97bab4"),
        sources={source.id: source},
    )
    await world.sessions.save("r-1", state.model_dump_json(), closed=True)
    yield Records(world)
    await world.close()


@pytest.mark.parametrize("name", ["session.json", source_id(URL), "report.md", "src-0000000000"])
async def test_documents_of_another_tenant_are_not_there(records: Records, name: str) -> None:
    """Whoever is not the run's tenant is told what is told of a run that does not exist, word for word."""
    missing = await records.failure(records.read(name, "r-2", tenant="acme"))
    for fields in ({}, {"tenant": "other"}):
        refused = await records.failure(records.read(name, **fields))
        assert (refused.type, str(refused), refused.details) == (missing.type, str(missing), missing.details)
    assert missing.type == failures.CONTENT_MISSING


async def test_a_tenant_reads_what_its_run_has(records: Records) -> None:
    """The session and the texts of its sources, and no document by its hash."""
    assert json.loads(await records.read("session.json", tenant="acme"))["resolved"]["tenant"] == "acme"
    assert await records.read(source_id(URL), tenant="acme") == "The words of acme."
    stored = json.loads(await records.read("session.json", tenant="acme"))["sources"][source_id(URL)]["text"]["hash"]
    assert (await records.failure(records.read(stored, tenant="acme"))).type == failures.CONTENT_MISSING


async def test_an_id_of_another_tenant_starts_no_run(records: Records) -> None:
    """It would overwrite the session and learn the canary; the refusal tells nothing of the run."""
    before = await records.read("session.json", tenant="acme")
    refused = await records.failure(records.prepare("other"))
    assert refused.type == failures.REFUSED
    assert str(refused.message) == "the id r-1 cannot be used: choose another one"
    assert await records.read("session.json", tenant="acme") == before
    assert (await records.prepare("acme")).resolved.canary == "8fbddb3160f16a89af97bab4"


async def test_nobody_goes_on_with_the_run_of_another_tenant(records: Records) -> None:
    """Going on with it ends as with a run that never was."""
    refused = await records.failure(records.prepare("other", continue_from="r-1"))
    assert str(refused.message) == "there is no session r-1 to go on from: see `research list`"
    assert (await records.prepare("acme", continue_from="r-1")).packed_state
