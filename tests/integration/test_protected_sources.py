"""Sources that a request protects, in whole runs on a server: over the web, and with a window that is too small."""

import re
from pathlib import Path

import pytest
from temporalio.client import Client

from client.cli.errors import exit_code
from contracts import names
from contracts.evidence import Source
from contracts.outcome import ResearchResult
from contracts.vocabulary import Quality, SourceStatus
from tests.fakes.corpus import MANUAL, MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_tokens import TokenBook
from tests.fakes.web_world import Site, WebWorld, manual_sites, page
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from tests.integration.web_pools import over_the_web, web_workers

pytestmark = pytest.mark.integration


async def test_a_page_is_read_through_the_guard(client: Client, tmp_path: Path) -> None:
    """No search finds it, and it is read first and judged; one on a private host is refused, and named (S0-150)."""
    kettle = Site(9, "/kettle", "Kettle", page("Kettle", "A kettle boils at a hundred degrees. " * 9))
    async with WebWorld([*manual_sites(), kettle]) as world, web_workers(client, tmp_path, world):
        private = f"http://127.0.7.7:{world.port}/secret"
        handle = await start(client, over_the_web(protected_sources=[world.url(kettle), private]))
        result: ResearchResult = await handle.result()
        sources = {source.url: source for source in await handle.query(names.SOURCES, result_type=list[Source])}
        pages = [entry for entry in world.asked if not entry.startswith("search") and "robots" not in entry]
    assert pages[0] == f"{world.host_of(kettle)} /kettle"
    assert pages.count(pages[0]) == 1
    assert sources[world.url(kettle)].analyzed
    assert sources[world.url(kettle)].quality is not Quality.UNKNOWN
    assert sources[private].status is SourceStatus.FAILED
    assert [private in line for line in result.limitations if "protected source" in line] == [True]


async def test_what_fits_no_window_is_not_paid_for(client: Client, tmp_path: Path) -> None:
    """Need and room are named, the report is written without the model, and the run is partial (S0-099, C0-10)."""
    words = "To prevent transaction ID wraparound the engine must vacuum every table. "
    notes = {f"note-{number}.md": f"# Note {number}\n\n{words * 40}" for number in range(25)}
    async with MessagesApi(book=TokenBook(window=8_192)) as api:
        world = model_world(tmp_path, api.base_url, MemoryCorpus({**MANUAL, **notes}), window=8_192)
        async with running_workers(client, world):
            request = {"query": QUESTION, "corpus": "manual", "protected_sources": list(notes)}
            result = await (await start(client, request)).result()
    assert exit_code(result.outcome, result.stop_reason) == 3
    assert not {"analyzer", "synthesizer", "refiner"} & set(api.counts())
    why = r"needs about \d+ tokens and .* has with a margin of 15% room for \d+ .* or protect fewer sources"
    assert re.search(why, "\n".join(result.failed_branches))
    assert result.files is not None
    assert "[1]" in result.report
