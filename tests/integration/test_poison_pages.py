"""Hostile documents and texts in the children that work on them: each costs its deadline at most, and only itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from activities.reporting.render import RENDER
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.roles import SYNTHESIZER
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome
from providers.errors import SourceUnreadable
from providers.isolation.pool import START_GRACE_SECONDS, SubprocessPool
from providers.reading.egress.address_rules import host_and_port
from providers.reading.egress.client import Egress
from providers.reading.reader import WebReader
from providers.reading.robots import Robots
from tests.fakes.killers import WALL_SECONDS as KILLED_AFTER_SECONDS
from tests.fakes.killers import PoisonedCalls
from tests.fakes.pauses import pause_after
from tests.fakes.poison import POISON, READ, Poison
from tests.fakes.web import WebServer, page, reply
from tests.fakes.world import World
from tests.integration.runs import QUESTION
from workflows.phases.closing import close
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

pytestmark = pytest.mark.integration

CHILDREN = 2
CPU_SECONDS, WALL_SECONDS = 2.0, 8.0
MEMORY_BYTES = 1_000_000_000
FETCHING_SECONDS = 5.0
"""For what is no child's work: making the document, sending and receiving it, on a machine that others use too."""
LONGEST_TURN = CPU_SECONDS / 2
"""Processor seconds that the loop may use without a pause; with what parses foreign documents in it, it would use as many
as a child may. The machine's other work takes none of them."""
POISONED_WORDS = "Poisoned words."
GOOD = "Vacuum removes dead rows from a table and makes their space free for others."


@dataclass
class Results:
    """What became of each document, and how long it took."""

    outcomes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    good_reads: int = 0
    longest_turn: float = 0.0
    """Processor seconds of the loop's thread from one heartbeat to the next."""


@asynccontextmanager
async def reader_of(server: WebServer) -> AsyncIterator[WebReader]:
    """A reader with few children and tight limits."""
    egress = Egress("test", allow_hosts={host_and_port(server.host)})
    async with SubprocessPool(
        CHILDREN, cpu_seconds=CPU_SECONDS, wall_seconds=WALL_SECONDS, memory_bytes=MEMORY_BYTES
    ) as pool:
        yield WebReader(egress, pool, Robots(egress, "durable-research"))
    await egress.close()


@contextmanager
def ticking() -> Iterator[list[float]]:
    """Processor time of this thread at each heartbeat beside the reads."""
    beats = [time.thread_time()]

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.02)
            beats.append(time.thread_time())

    task = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        task.cancel()


async def read_all(names: list[str], server: WebServer, reader: WebReader, results: Results) -> None:
    """One reader's share of the documents, with a good page after each."""
    for name in names:
        poison = POISON[name]
        body = await asyncio.to_thread(poison.make)
        server.pages[f"/{name}"] = reply(body, content_type=poison.content_type)
        begun = time.monotonic()
        try:
            results.texts[name] = (await reader.read(server.url(f"/{name}"))).text
            results.outcomes[name] = READ
        except SourceUnreadable as error:
            results.outcomes[name] = error.kind
        results.seconds[name] = time.monotonic() - begun
        del server.pages[f"/{name}"]
        good = await reader.read(server.url("/good"))
        results.good_reads += GOOD in good.text


@pytest.fixture(scope="module")
def results() -> Results:
    """All documents, read once by as many readers as there are children."""

    async def work() -> Results:
        found = Results()
        names = list(POISON)
        async with WebServer({"/good": page(GOOD)}) as server, reader_of(server) as reader:
            with ticking() as beats:
                shares = (names[start::CHILDREN] for start in range(CHILDREN))
                await asyncio.gather(*(read_all(share, server, reader, found) for share in shares))
            found.longest_turn = max(later - earlier for earlier, later in pairwise(beats))
        return found

    return asyncio.run(work())


@pytest.mark.parametrize("name", POISON)
def test_each_document_ends_as_it_should(name: str, results: Results) -> None:
    """It is read, or it is refused with a typed reason; nothing else can come of it (S0-055)."""
    poison: Poison = POISON[name]
    assert results.outcomes[name] in poison.outcomes
    assert results.outcomes[name] != READ or poison.keeps in results.texts[name]


def test_each_costs_its_deadline_at_most(results: Results) -> None:
    """The time of a child, and what it takes to bring the document there and to start another child."""
    assert max(results.seconds.values()) < WALL_SECONDS + 1 + FETCHING_SECONDS < START_GRACE_SECONDS


def test_others_are_read_meanwhile(results: Results) -> None:
    """After each hostile document, and while another one is being read, a good page is read."""
    assert results.good_reads == len(POISON)


def test_the_loop_goes_on_meanwhile(results: Results) -> None:
    """No document is parsed in the loop, so heartbeats go out in time, whatever the children do."""
    assert results.longest_turn < LONGEST_TURN


def test_nothing_of_the_machine_comes_out(results: Results) -> None:
    """No entity, include or frame brought a file of this machine into a text."""
    assert not [name for name, text in results.texts.items() if "root:" in text]


async def test_a_text_of_the_model_that_cannot_be_laid_out_is_written_anew(tmp_path: Path) -> None:
    """The findings are set out without the model, and the report says that it is not what the model wrote."""

    def is_poison(function: str, arguments: tuple[Any, ...]) -> bool:
        return function == RENDER and arguments[1] is not None and POISONED_WORDS in arguments[1]

    world = World(tmp_path)
    async with SubprocessPool(1, wall_seconds=KILLED_AFTER_SECONDS) as pool:
        world.isolated = PoisonedCalls(pool, is_poison)
        host = world.host()
        request = ResearchRequest(query=QUESTION, corpus="manual")
        prepared = await host.implementations["prepare_research"](
            PrepareRequest(research_id="r-unit", request_json=request.model_dump_json())
        )
        now = host.now()
        state = ResearchState(
            resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=now.isoformat()
        )
        state.clock_started_at = now.timestamp()
        state.deadline_at = now.timestamp() + prepared.resolved.limits.deadline_seconds
        run, strategy = ResearchRun(state, Inbox(), host), SupervisorStrategy()
        while not isinstance(step := await strategy.advance(run), Finished):
            await pause_after(run, step.name, can_change=step.can_change)
        assert state.draft is not None
        words = await world.content.put_text(POISONED_WORDS, "text/markdown")
        state.draft = state.draft.model_copy(update={"document": words})
        state.engine_by_role[SYNTHESIZER.name] = EngineKind.MODEL.value
        outcome = await close(run, step.reason)
        assert state.result is not None
        assert state.result.files is not None
        report = await world.content.get_text(state.result.files.markdown)
    assert outcome is Outcome.PARTIAL
    assert POISONED_WORDS not in report
    assert "[1]" in report
    assert any("could not be laid out (crash)" in branch for branch in state.failed_branches)
    assert any("written anew without the model" in note for note in state.degraded)
