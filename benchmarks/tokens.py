"""What models are shown, and what it brings: `python -m benchmarks.tokens [--windows 8 16 32 200] [--depths medium]`.

Whole runs in one process over 28 made-up pages in which facts are planted, by a fake model that finds exactly the facts
that it is shown. With `--cost`: processor time, history and memory that the management of tokens adds to a call.
"""

import argparse
import asyncio
import gc
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from activities.preparation import ResearchConfiguration
from activities.roles.run_role import RoleActivities, task_of
from benchmarks.planted_facts import (
    PROVIDER,
    PlantedPage,
    PlantedSources,
    is_in_its_words,
    planted_pages,
    reading,
    visible,
)
from contracts import roles
from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.messages import PrepareRequest
from contracts.plan import PlanNode
from contracts.request import ResearchRequest
from contracts.resolved import ModelPrice, ProviderChoice
from contracts.state import ClockState, ResearchState, WorkState
from contracts.tokens import RATIOS, Level, TokenSettings, sum_totals
from contracts.vocabulary import EngineKind, Tier
from providers.interfaces import EngineAnswer, EngineTask
from providers.models.endpoints import EndpointCapabilities, ModelCandidate, ModelEndpoint, PriceTable
from providers.models.fitting import fit_request
from providers.tokens.allotment import ContentItem, Rank, allot
from tests.fakes.many_pages import QUESTION, paragraph
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.model_scenarios import SCENARIOS
from tests.fakes.model_tokens import TokenBook
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

MODEL: Final = "test-model"
PRICE: Final = ModelPrice(input=3.0, output=15.0)
"""US dollars for a million tokens."""
WINDOWS: Final = (8_000, 16_000, 32_000, 200_000)
SOURCES, ITERATIONS = 28, 3
SHORTEST_KEPT: Final = 64
"""Tokens of a beginning that the endpoint keeps at least."""
SCENARIO: Final = "reads planted facts"
SHOWN_ROLES: Final = ("analyzer", "synthesizer", "checker")


# --- whole runs -------------------------------------------------------------------------------------------------------
@dataclass
class Measured:
    """One run."""

    state: ResearchState
    book: TokenBook
    shown: set[str]
    """Facts that an analysis showed."""
    found: set[str]
    """Facts in the evidence of the report."""
    wall: float
    cpu: float
    tokens: Counter[str] = field(default_factory=Counter)
    read: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for charge in self.book.charges:
            self.tokens[charge.role] += charge.prompt + charge.output
            self.tokens[f"input of {charge.role}"] += charge.prompt
            self.read[charge.role] += charge.read

    def cached(self, *names: str) -> str:
        """Share of the input of some roles that the endpoint had kept."""
        asked = sum(self.tokens[f"input of {name}"] for name in names)
        return f"{sum(self.read[name] for name in names) / asked:.0%}" if asked else "–"


def world_of(folder: Path, api: MessagesApi, pages: Sequence[PlantedPage], window: int, *, managed: bool) -> World:
    """A world over the pages whose model has this window."""
    own = EndpointCapabilities(window=window, caching=True, reasoning_tokens=0)
    engine = engine_over({"default": api.base_url}, own={"default": own}, prices=PriceTable({MODEL: PRICE}))
    web = PlantedSources(pages)
    configuration = ResearchConfiguration(
        models={tier.value: [MODEL] for tier in Tier},
        model_host=lambda _: "127.0.0.1",
        choose_providers=lambda _, __: [
            ProviderChoice(name=PROVIDER, available=True, reason="configured", host="search.example.org")
        ],
        tokens=TokenSettings(token_management_enabled=managed),
        product_version="0.1.0",
    )
    return World(folder, None, {EngineKind.MODEL: engine}, configuration, {PROVIDER: web}, web)


async def run_once(
    folder: Path, window: int, depth: str, iterations: int = ITERATIONS, characters: int | None = None, *, managed: bool
) -> Measured:
    """One run in this process; `characters` of each source are considered, if not as many as the depth has."""
    pages = planted_pages(SOURCES)
    facts = [fact for page in pages for fact in page.facts]
    SCENARIOS[SCENARIO] = reading(facts)
    book = TokenBook(window=window, cacheable=SHORTEST_KEPT)
    began, cpu = time.perf_counter(), time.process_time()
    async with MessagesApi(SCENARIO, by_role={"checker": "believing"}, book=book) as api:
        world = world_of(folder, api, pages, window, managed=managed)
        try:
            host = world.host()
            limits: dict[str, Any] = {"max_iterations": iterations, "max_sources": SOURCES, "max_cost_usd": 20}
            limits |= {"deadline_seconds": 1_800} | ({"max_source_characters": characters} if characters else {})
            fields = {"query": QUESTION, "depth": depth, "verify": "full", "limits": limits}
            request = ResearchRequest.model_validate(fields)
            prepared = await host.implementations["prepare_research"](
                PrepareRequest(research_id="r-measured", request_json=request.model_dump_json(exclude_unset=True))
            )
            state = ResearchState(
                work=WorkState(resolved=prepared.resolved, resolved_entry=prepared.resolved_entry),
                clock=ClockState(started_at=host.now().isoformat()),
            )
            state.clock.clock_started_at = host.now().timestamp()
            state.clock.deadline_at = state.clock.clock_started_at + prepared.resolved.limits.deadline_seconds
            await Driver(ResearchRun(state, Inbox(), host), load_strategy("supervisor")).conduct()
        finally:
            await world.close()
        analyses = [request.prompt for request in api.requests if request.role == "analyzer"]
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    shown = {fact for prompt in analyses for _, fact in visible(prompt, facts)}
    return Measured(state, book, shown, await _found(state, world, facts), wall, used)


async def _found(state: ResearchState, world: World, facts: Sequence[str]) -> set[str]:
    texts = {
        source.id: await world.content.get_text(source.text)
        for source in state.evidence.sources.values()
        if source.text
    }
    quotes = [texts[item.source_id][item.start : item.end] for item in state.evidence.passages.values()]
    return {fact for fact in facts if any(fact in quote for quote in quotes)}


async def compare(
    windows: Iterable[int], depths: Sequence[str], iterations: int, sizes: Sequence[int | None] = (None,)
) -> None:
    """One row for each window and depth, off and on."""
    facts = [fact for page in planted_pages(SOURCES) for fact in page.facts]
    print(f"{len(facts)} facts in {SOURCES} pages, {sum(map(is_in_its_words, facts))} in words of the question\n")
    print(
        "| window | depth | tokens managed | outcome | sources | tokens | analyses | writer | checker | others ", end=""
    )
    print("| cached: all | writer | checker | fidelity | facts shown | found | cost, USD | wall | processor time |")
    print("|---" * 19 + "|")
    for window, depth, characters in product(windows, depths, (0, *sizes)):
        managed = characters != 0
        with tempfile.TemporaryDirectory() as folder:
            run = await run_once(Path(folder), window, depth, iterations, characters, managed=managed)
        name = "off" if not managed else f"on, {characters}" if characters else "on"
        print(f"| {window // 1_000} k | {depth} | {name} {_row(run)}", flush=True)


def _row(run: Measured) -> str:
    state, tokens, every = run.state, run.tokens, {charge.role for charge in run.book.charges}
    shown = {role: tokens[role] for role in SHOWN_ROLES}
    total = sum(tokens[role] for role in every)
    figures = [
        state.work.result.outcome.value if state.work.result else state.work.last_failure,
        str(len(state.evidence.readable_sources())),
        *(f"{number:,}" for number in (total, *shown.values(), total - sum(shown.values()))),
        run.cached(*every),
        run.cached("synthesizer"),
        run.cached("checker"),
        sum_totals(state.accounts.fidelity.values()).words() if state.accounts.fidelity else "–",
        str(len(run.shown)),
        f"{len(run.found)} ({sum(map(is_in_its_words, run.found))})",
        f"{state.accounts.usage.cost_usd or 0:.2f}",
        f"{run.wall:.1f} s",
        f"{run.cpu:.1f} s",
    ]
    return f"| {' | '.join(figures)} |"


# --- what it costs ----------------------------------------------------------------------------------------------------
def task_with(size: int, considered: int, own: str = "") -> EngineTask:
    """An analysis of eight sources of so many characters, of which so many are considered."""
    chance, request = random.Random(0), roles.AnalyzeInput(sub_query=PlanNode(id="sq-1", text=QUESTION), sources=[])
    texts = [f"{own}{number} " + "\n\n".join(paragraph(chance) for _ in range(size // 500)) for number in range(8)]
    texts = [text[:size] for text in texts]
    sources = [
        roles.SourceExtract(
            id=f"src-{number:040d}",
            url=f"https://chapter-{number}.kilns.edu/books/{number}",
            title=f"Kiln book {number}",
            text=DocumentRef(hash=digest(text), media_type="text/markdown"),
        )
        for number, text in enumerate(texts)
    ]
    fields = {"engine": EngineKind.MODEL, "query": QUESTION, "canary": "c" * 24, "max_characters": considered}
    request = request.model_copy(update={**fields, "sources": sources})
    return task_of(roles.ANALYZER, request, {digest(text): text for text in texts})


def candidate_of(window: int) -> ModelCandidate:
    """A model with this window."""
    known = EndpointCapabilities(window=window)
    return ModelCandidate(ModelEndpoint("default", None, lambda _: known), MODEL, known)


def milliseconds(work: Callable[[], Any], times: int = 100) -> float:
    """Median processor time of some work."""
    taken = []
    for _ in range(times):
        began = time.process_time_ns()
        work()
        taken.append(time.process_time_ns() - began)
    return statistics.median(taken) / 1e6


def costs() -> None:
    """Processor time and memory of single calls."""
    candidate, chance = candidate_of(200_000), random.Random(1)

    def rendered(task: EngineTask) -> None:
        fit_request(task_of(task.role, task.input, task.documents), candidate)

    def allotted() -> None:
        kinds = (Rank.REGULAR, Rank.REGULAR, Rank.PRIORITY)
        items = [
            ContentItem(
                f"i{n}", "source", lambda level: "word " * int(600 * RATIOS[level]), kinds[n % 3], chance.random()
            )
            for n in range(100)
        ]
        allot(items, 0.3 * sum(item.size(Level.FULL) for item in items))

    for considered in (1_000, 3_000):
        spent = milliseconds(partial(rendered, task_with(3_000, considered)))
        print(f"prompt and request of 8 sources of 3,000 characters, {considered:,} considered: {spent:.2f} ms")
    print(f"allotment to 100 items of which 30 % fit: {milliseconds(allotted):.2f} ms")
    for considered in (1_000, 3_000, 12_000):
        with get_context("spawn").Pool(1) as child:
            taken = child.apply(memory_of_calls, (considered,))
        print(f"40 calls of 8 sources of 60,000 characters, {considered:,} considered: {taken:.1f} MB")


def memory_of_calls(considered: int) -> float:
    """Megabytes that forty calls hold, in a process that did one before."""
    candidate = candidate_of(200_000)
    held: list[Any] = [fit_request(task_with(3_000, considered), candidate)]
    before = _resident()
    tasks = [task_with(60_000, considered, own=f"{number} ") for number in range(40)]
    held += [fit_request(task, candidate) for task in tasks]
    return _resident() - before


def _resident() -> float:
    gc.collect()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1_000


async def bytes_of_history() -> None:
    """Bytes of the records of what calls showed, in the history."""
    sizes: list[int] = []

    class Noting(RoleActivities):
        async def _with_content(self, task: EngineTask, answer: EngineAnswer, result: roles.RoleAnswer) -> Any:
            noted = await super()._with_content(task, answer, result)
            bare = noted.account.model_copy(update={"content": None})
            sizes.append(len(noted.account.model_dump_json()) - len(bare.model_dump_json()))
            return noted

    with patch("tests.fakes.world.RoleActivities", Noting), tempfile.TemporaryDirectory() as folder:
        await run_once(Path(folder), 32_000, "extended", managed=True)
    print(f"history of a call: {statistics.mean(sizes):.0f} bytes more, {max(sizes)} at most")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=__doc__)
    parser.add_argument("--windows", type=int, nargs="+", default=[window // 1_000 for window in WINDOWS])
    parser.add_argument("--depths", nargs="+", default=["medium", "extended"], choices=["light", "medium", "extended"])
    parser.add_argument("--characters", type=int, nargs="+", help="considered of each source, in place of the depth's")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--cost", action="store_true", help="what it costs, in place of the runs")
    given = parser.parse_args()
    if given.cost:
        costs()
        asyncio.run(bytes_of_history())
    else:
        windows = [1_000 * each for each in given.windows]
        asyncio.run(compare(windows, given.depths, given.iterations, given.characters or [None]))


if __name__ == "__main__":
    main()
