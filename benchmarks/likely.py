"""What a run likely uses, by strategy and depth: `python -m benchmarks.likely [--strategy S] [--write]`.

Whole runs in one process over made-up pages of 15,000 characters, in two worlds: pages that leave no gap, which is the
least that a strategy does, and pages of which every analysis leaves gaps. The likely run is in the middle. Prompts are
those of the product, counted by the fake endpoint; answers have the length that answers of a strong model had in
recorded runs of the product (`call_sizes.json`), by role, as a share of what the role is expected to write. Strong
models ask for more than fakes do: by as much as a recorded run made more calls, the world with gaps counts more.
`--write` stores the table from which estimates are made.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from activities.likely_use import CALL_SECONDS, TABLE, TOKENS_PER_SECOND
from benchmarks.caps import RECORDED, WRITERS, new_gap
from contracts.outcome import Usage
from contracts.request import Depth
from contracts.roles import AnalyzerAnswer
from contracts.strategies import declared_roles, list_selectable
from contracts.vocabulary import EngineKind
from providers.interfaces import Engine, EngineAnswer, EngineTask
from tests.fakes import many_pages
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import begin, model_world
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

PAGES: Final = 60
PARAGRAPHS: Final = 24
WINDOW: Final = 200_000
DEPTHS: Final = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
RECORDED_CALLS: Final = {
    ("supervisor", Depth.MEDIUM): 36,
    ("reflective", Depth.MEDIUM): 39,
    ("orchestrator", Depth.MEDIUM): 46,
    ("recursive", Depth.LIGHT): 71,
}
"""Model calls of runs with a strong model over the manuals of PostgreSQL and SQLite; `supervisor`: the mean of two."""
NEW_GAPS: Final = 3
LATENCY: Final = 0.02
"""Seconds of a call here, so that the order of calls shows which of them waited for which."""
ROLES: Final = {role.name: role for role in declared_roles()}
LENGTHS: Final = defaultdict[str, list[int]](list)
"""Tokens of recorded answers by role."""
for recorded in RECORDED.values():
    for name, recorded_calls in recorded.items():
        LENGTHS[name] += [tokens_out for _, tokens_out in recorded_calls]
SHARES: Final = {
    name: statistics.mean(lengths) / ROLES[name].expected_output_tokens for name, lengths in LENGTHS.items()
}
"""Mean length of recorded answers, by role, divided by the length expected of the role."""
OTHER_SHARE: Final = round(statistics.median(SHARES.values()), 2)
"""For roles of which no call was recorded."""


@dataclass(frozen=True)
class Call:
    """One call of a run."""

    role: str
    started: float
    ended: float
    tokens_in: int
    tokens_out: int


class MeasuringEngine:
    """An engine that counts prompts, gives answers a recorded length, and leaves gaps in the first iterations."""

    kind, paid = EngineKind.MODEL, True

    def __init__(self, inner: Engine, *, with_gaps: bool) -> None:
        self._inner, self._with_gaps = inner, with_gaps
        self.calls: list[Call] = []
        self._gaps = 0

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Answer as the inner engine does."""
        started = time.monotonic()
        await asyncio.sleep(LATENCY)
        answer = await self._inner.answer(task)
        content, role = answer.content, task.role
        if isinstance(content, AnalyzerAnswer):
            count = NEW_GAPS if self._with_gaps else 0
            gaps = [new_gap(self._gaps + number) for number in range(1, count + 1)]
            self._gaps += count
            content = content.model_copy(update={"gaps": gaps})
        tokens_out = int(SHARES.get(role.name, OTHER_SHARE) * role.expected_output_tokens)
        self.calls.append(Call(role.name, started, time.monotonic(), answer.usage.input_tokens, tokens_out))
        usage = Usage(model_calls=1, input_tokens=answer.usage.input_tokens, output_tokens=tokens_out)
        return replace(answer, content=content, usage=usage)

    async def close(self) -> None:
        """Close the inner engine."""
        await self._inner.close()


async def run_once(strategy: str, depth: Depth, *, with_gaps: bool, **fields: Any) -> dict[str, Any]:
    """Conduct one run without limits of costs, and return what it used."""
    documents = many_pages.files(PAGES, paragraphs=PARAGRAPHS)
    request = {"query": many_pages.QUESTION, "strategy": strategy, "depth": depth.value, "gates": {"approve": "none"}}
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi(by_role=WRITERS) as api:
            world = model_world(Path(folder), api.base_url, MemoryCorpus(documents), window=WINDOW)
            engine = MeasuringEngine(world.engines[EngineKind.MODEL], with_gaps=with_gaps)
            world.engines[EngineKind.MODEL] = engine
            state = await begin(world, **(request | fields))
            await Driver(ResearchRun(state, Inbox(), world.host()), load_strategy(strategy)).conduct()
            await world.close()
    by_role = defaultdict[str, list[Call]](list)
    for call in engine.calls:
        by_role[call.role].append(call)
    roles = {
        name: [len(calls), _mean([call.tokens_in for call in calls]), _mean([call.tokens_out for call in calls])]
        for name, calls in sorted(by_role.items())
    }
    chain = longest_chain(engine.calls)
    seconds = sum(CALL_SECONDS + call.tokens_out / TOKENS_PER_SECOND for call in chain)
    return {
        "roles": roles,
        "in_a_row": len(chain),
        "seconds": round(seconds),
        "searches": state.usage.searches,
        "pages": len(state.readable_sources()),
    }


def lifted(run: dict[str, Any], factor: float) -> dict[str, Any]:
    """Return a run with so many times the calls and seconds; roles that are called once stay so."""
    roles = {
        name: [count if count == 1 else round(count * factor), tokens_in, tokens_out]
        for name, (count, tokens_in, tokens_out) in run["roles"].items()
    }
    return run | {"roles": roles, "seconds": round(run["seconds"] * factor)}


def factor_of(run: dict[str, Any], recorded: int) -> float:
    """Return by how much the calls of roles that are called repeatedly were more in a recorded run; at least 1."""
    once = sum(count for count, _, _ in run["roles"].values() if count == 1)
    return max(1.0, (recorded - once) / max(1, _calls(run) - once))


def longest_chain(calls: Sequence[Call]) -> list[Call]:
    """Return calls from the last one back, each the latest to end before the next one began."""
    chain = [max(calls, key=lambda call: call.ended)]
    while causes := [call for call in calls if call.ended <= chain[-1].started]:
        chain.append(max(causes, key=lambda call: call.ended))
    return chain[::-1]


def as_text(table: dict[str, Any]) -> str:
    """Write a table as JSON with a line for each run."""
    strategies = []
    for name, depths in table["runs"].items():
        lines = []
        for depth, both in depths.items():
            least, most = (json.dumps(both[which]) for which in ("least", "most"))
            lines.append(f'   {json.dumps(depth)}: {{\n    "least": {least},\n    "most": {most}\n   }}')
        strategies.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return f'{{\n "source": {json.dumps(table["source"])},\n "runs": {{\n' + ",\n".join(strategies) + "\n }\n}\n"


def _mean(numbers: Sequence[int]) -> int:
    return round(statistics.mean(numbers))


def _calls(run: dict[str, Any]) -> int:
    return sum(count for count, _, _ in run["roles"].values())


def _tokens(run: dict[str, Any]) -> int:
    return sum(count * (tokens_in + tokens_out) for count, tokens_in, tokens_out in run["roles"].values())


async def main() -> None:
    """Measure, print a table, and store it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategy", help="this one alone")
    parser.add_argument("--write", action="store_true", help="store the table from which estimates are made")
    given = parser.parse_args()
    table: dict[str, Any] = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}
    table["source"] = "python -m benchmarks.likely --write"
    print("| strategy | depth | calls without gaps, with gaps | in a row | minutes | tokens |")
    print("|---|---|---|---|---|---|")
    for name in [strategy.name for strategy in list_selectable()] if given.strategy is None else [given.strategy]:
        runs = {depth: [await run_once(name, depth, with_gaps=gaps) for gaps in (False, True)] for depth in DEPTHS}
        recorded = [(depth, RECORDED_CALLS[name, depth]) for depth in DEPTHS if (name, depth) in RECORDED_CALLS]
        factor = max([1.0, *(factor_of(runs[depth][1], calls) for depth, calls in recorded)])
        for depth, (least, with_gaps) in runs.items():
            most = lifted(with_gaps, factor)
            table.setdefault("runs", {}).setdefault(name, {})[depth.value] = {"least": least, "most": most}
            calls, tokens = ([count(run) for run in (least, most)] for count in (_calls, _tokens))
            minutes = [f"{run['seconds'] / 60:.1f}" for run in (least, most)]
            chains = [run["in_a_row"] for run in (least, most)]
            row = (name, depth.value, *(f"{low}, {high}" for low, high in (calls, chains, minutes, tokens)))
            print(f"| {' | '.join(row)} |", flush=True)
            if given.write:
                TABLE.write_text(as_text(table), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
