"""What models are shown, and what it brings: `python -m benchmarks.tokens [--windows 8 16 32 200] [--depths medium]`.

Whole runs in one process over 28 made-up pages in which facts are planted, by a fake model that finds exactly the facts
that it is shown. With `--cost`: processor time, history and memory that the management of tokens adds to a call.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from activities.configuration import ResearchConfiguration, WebSearchConfiguration
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.resolved import ModelPrice, ProviderChoice
from contracts.state import ResearchState
from contracts.tokens import TokenSettings, total_of
from contracts.vocabulary import EngineKind, Tier
from providers.models.endpoints import EndpointCapabilities
from providers.models.prices import PriceTable
from tests.fakes.many_pages import QUESTION
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_over
from tests.fakes.model_scenarios import SCENARIOS
from tests.fakes.model_tokens import TokenBook
from tests.fakes.planted_facts import (
    PROVIDER,
    PlantedPage,
    PlantedSources,
    is_in_its_words,
    planted_pages,
    reading,
    visible,
)
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of

MODEL: Final = "test-model"
PRICE: Final = ModelPrice(input=3.0, output=15.0)
"""US dollars for a million tokens."""
WINDOWS: Final = (8_000, 16_000, 32_000, 200_000)
SOURCES, ITERATIONS = 28, 3
SHORTEST_KEPT: Final = 64
"""Tokens of a beginning that the endpoint keeps at least."""
SCENARIO: Final = "reads planted facts"
ROLES: Final = ("planner", "analyzer", "synthesizer", "refiner", "supervisor", "reviewer", "checker")


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
        web_search=WebSearchConfiguration(
            choose=lambda _, __: [
                ProviderChoice(name=PROVIDER, available=True, reason="configured", host="search.example.org")
            ]
        ),
        tokens=TokenSettings(token_management_enabled=managed),
        product_version="0.1.0",
    )
    return World(folder, None, {EngineKind.MODEL: engine}, configuration, {PROVIDER: web}, web)


async def run_once(folder: Path, window: int, depth: str, iterations: int, characters: int | None = None, *, managed: bool) -> Measured:
    """One run in this process."""
    pages = planted_pages(SOURCES)
    facts = [fact for page in pages for fact in page.facts]
    SCENARIOS[SCENARIO] = reading(facts)
    book = TokenBook(window=window, cacheable=SHORTEST_KEPT)
    began, cpu = time.perf_counter(), time.process_time()
    async with MessagesApi(SCENARIO, by_role={"checker": "believing"}, book=book) as api:
        world = world_of(folder, api, pages, window, managed=managed)
        try:
            host = world.host()
            limits = {"max_iterations": iterations, "max_sources": SOURCES, "deadline_seconds": 1_800}
            limits |= {"max_cost_usd": 20} | ({"max_source_characters": characters} if characters else {})
            request = ResearchRequest.model_validate(
                {"query": QUESTION, "depth": depth, "verify": "full", "limits": limits}
            )
            prepared = await host.implementations["prepare_research"](
                PrepareRequest(research_id="r-measured", request_json=request.model_dump_json(exclude_unset=True))
            )
            state = ResearchState(
                resolved=prepared.resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat()
            )
            state.clock_started_at = host.now().timestamp()
            state.deadline_at = state.clock_started_at + prepared.resolved.limits.deadline_seconds
            await Driver(ResearchRun(state, Inbox(), host), strategy_of("supervisor")).conduct()
        finally:
            await world.close()
        analyses = [request.prompt for request in api.requests if request.role == "analyzer"]
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    shown = {fact for prompt in analyses for _, fact in visible(prompt, facts)}
    return Measured(state, book, shown, await _found(state, world, facts), wall, used)


async def _found(state: ResearchState, world: World, facts: Sequence[str]) -> set[str]:
    texts = {source.id: await world.content.get_text(source.text) for source in state.sources.values() if source.text}
    quotes = [texts[item.source_id][item.start : item.end] for item in state.evidence.values()]
    return {fact for fact in facts if any(fact in quote for quote in quotes)}


async def compare(windows: Iterable[int], depths: Sequence[str], iterations: int) -> None:
    """One row for each window, off and on."""
    facts = [fact for page in planted_pages(SOURCES) for fact in page.facts]
    print(f"{len(facts)} facts in {SOURCES} pages, {sum(map(is_in_its_words, facts))} in words of the question\n")
    print(
        "| window | management | outcome | sources | tokens | of analyses | writer | checker | others "
        "| cached: all | writer | checker | fidelity | facts shown | found | cost | wall | processor |"
    )
    print("|---" * 18 + "|")
    for window in windows:
        for managed, depth in [(False, depths[0]), *((True, depth) for depth in depths)]:
            with tempfile.TemporaryDirectory() as folder:
                run = await run_once(Path(folder), window, depth, iterations, managed=managed)
            print(_row(run, f"{window // 1_000} k", f"on, {depth}" if managed else "off"), flush=True)


def _row(run: Measured, window: str, name: str) -> str:
    state, tokens = run.state, run.tokens
    result = state.result
    others = [each for each in ROLES if each not in ("analyzer", "synthesizer", "checker")]
    spent = {each: tokens[each] for each in ROLES}
    figures = [
        window,
        name,
        str(result.outcome.value if result else state.last_failure),
        str(len(state.readable_sources())),
        f"{sum(spent.values()):,}",
        *(f"{spent[each]:,}" for each in ("analyzer", "synthesizer", "checker")),
        f"{sum(spent[each] for each in others):,}",
        run.cached(*ROLES),
        run.cached("synthesizer"),
        run.cached("checker"),
        total_of(state.fidelity.values()).words() if state.fidelity else "–",
        str(len(run.shown)),
        f"{len(run.found)} ({sum(map(is_in_its_words, run.found))})",
        f"{state.usage.cost_usd or 0:.2f}",
        f"{run.wall:.1f} s",
        f"{run.cpu:.1f} s",
    ]
    return f"| {' | '.join(figures)} |"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=__doc__)
    parser.add_argument("--windows", type=int, nargs="+", default=[window // 1_000 for window in WINDOWS])
    parser.add_argument("--depths", nargs="+", default=["medium", "extended"], choices=["light", "medium", "extended"])
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    given = parser.parse_args()
    asyncio.run(compare([1_000 * each for each in given.windows], given.depths, given.iterations))


if __name__ == "__main__":
    main()
