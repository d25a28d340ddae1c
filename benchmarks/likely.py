"""What a run likely uses, by strategy and depth: `python -m benchmarks.likely [--strategy S] [--write]`.

Figures come from runs that a real language model answered (`benchmarks.real_runs`). For strategies and depths without
one, and for smaller requests, whole runs in one process show how these differ: over a few short pages; over pages of
15,000 characters that leave no gap, which is the least that a strategy does; and over such pages of which every
analysis leaves gaps. Prompts are those of the product, counted by the fake endpoint; answers have the length that
answers of the role had in real runs, a third of it over short pages.

`--write` stores the table from which estimates are made; `--again` only brings real runs into the one that is stored.
At its end stands how far the estimate is from each real run: one that is made without that run, where there are others
of its strategy and depth. Runs that read excerpts are of an earlier version and judge no estimate.
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

from activities.likely_use import CALL_SECONDS, MEASURED, TABLE, TOKENS_PER_SECOND
from benchmarks.caps import WRITERS, new_gap
from benchmarks.real_runs import REAL_RUNS, RealRun, cost_of, likely_figures
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

PAGES, PARAGRAPHS = 60, 24
FEW_PAGES, FEW_PARAGRAPHS = 4, 1
BRIEFER: Final = 0.35
"""Length of answers over short pages, by those over long ones; no real run has shown it."""
LARGEST_ERROR: Final = 2.5
"""Factor by which an estimate may be wrong: whether a question takes one iteration or three is not known before, and
five runs of one strategy and depth used 0.5 to 1.7 times their mean."""
WINDOW: Final = 200_000
DEPTHS: Final = (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
NEW_GAPS: Final = 3
LATENCY: Final = 0.02
"""Seconds of a call here, so that the order of calls shows which of them waited for which."""
ROLES: Final = {role.name: role for role in declared_roles()}
LENGTHS: Final = defaultdict[str, list[int]](list)
"""Tokens of recorded answers by role."""
for real_run in REAL_RUNS:
    for name, real_calls in real_run.roles.items() if real_run.reads_pages else ():
        LENGTHS[name] += [tokens_out for _, tokens_out in real_calls]
SHARES: Final = {
    name: statistics.mean(lengths) / ROLES[name].expected_output_tokens for name, lengths in LENGTHS.items()
}
"""Mean length of answers in real runs, by role, divided by the length expected of the role."""
OTHER_SHARE: Final = round(statistics.median(SHARES.values()), 2)
"""For roles that no real run has called."""


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

    def __init__(self, inner: Engine, *, with_gaps: bool, briefer: float = 1.0) -> None:
        self._inner, self._with_gaps, self._briefer = inner, with_gaps, briefer
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
        tokens_out = int(self._briefer * SHARES.get(role.name, OTHER_SHARE) * role.expected_output_tokens)
        self.calls.append(Call(role.name, started, time.monotonic(), answer.usage.input_tokens, tokens_out))
        usage = Usage(model_calls=1, input_tokens=answer.usage.input_tokens, output_tokens=tokens_out)
        return replace(answer, content=content, usage=usage)

    async def close(self) -> None:
        """Close the inner engine."""
        await self._inner.close()


async def run_once(
    strategy: str, depth: Depth, *, with_gaps: bool = False, few: bool = False, **fields: Any
) -> dict[str, Any]:
    """Conduct one run without limits of costs, and return what it used."""
    documents = many_pages.files(PAGES, paragraphs=PARAGRAPHS)
    if few:
        documents = many_pages.files(FEW_PAGES, paragraphs=FEW_PARAGRAPHS)
    request = {"query": many_pages.QUESTION, "strategy": strategy, "depth": depth.value, "gates": {"approve": "none"}}
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi(by_role=WRITERS) as api:
            world = model_world(Path(folder), api.base_url, MemoryCorpus(documents), window=WINDOW)
            inner, briefer = world.engines[EngineKind.MODEL], BRIEFER if few else 1.0
            engine = MeasuringEngine(inner, with_gaps=with_gaps, briefer=briefer)
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
        "searches": state.accounts.usage.searches,
        "pages": len(state.evidence.readable_sources()),
    }


def longest_chain(calls: Sequence[Call]) -> list[Call]:
    """Return calls from the last one back, each the latest to end before the next one began."""
    chain = [max(calls, key=lambda call: call.ended)]
    while causes := [call for call in calls if call.ended <= chain[-1].started]:
        chain.append(max(causes, key=lambda call: call.ended))
    return chain[::-1]


@dataclass(frozen=True)
class Compared:
    """An estimate beside a real run: calls, tokens and US dollars of both, or calls alone."""

    run: RealRun
    alone: bool
    """True if the estimate is made without the run."""
    estimated: tuple[float, float, float]
    real: tuple[float, float, float]

    def error_factors(self) -> list[float]:
        """Return by which factor each known figure is wrong; 1 is right."""
        pairs = [pair for pair in zip(self.estimated, self.real, strict=True) if pair[1]]
        return [max(pair) / min(pair) for pair in pairs]

    @property
    def is_right(self) -> bool:
        """Return true if no figure is wrong by more than `LARGEST_ERROR`."""
        return max(self.error_factors()) <= LARGEST_ERROR


def compare(table: dict[str, Any]) -> list[Compared]:
    """Compare the likely figures with every real run."""
    compared = []
    for run in REAL_RUNS:
        place = (run.strategy, run.depth, run.reads)
        alone = sum((one.strategy, one.depth, one.reads) == place for one in REAL_RUNS) > 1
        others = [one for one in REAL_RUNS if not (alone and one is run)]
        figures = likely_figures(table["runs"], others)[run.strategy][run.depth]
        real = (float(run.calls), float(run.tokens), run.usd or 0.0)
        compared.append(Compared(run, alone, cost_of(figures), real))
    return compared


def as_text(table: dict[str, Any]) -> str:
    """Write a table as JSON with a line for each run."""
    strategies = []
    for name, depths in table["runs"].items():
        lines = []
        for depth, kinds in depths.items():
            runs = ",\n".join(f"    {json.dumps(kind)}: {json.dumps(run)}" for kind, run in kinds.items())
            lines.append(f"   {json.dumps(depth)}: {{\n{runs}\n   }}")
        strategies.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return f'{{\n "source": {json.dumps(table["source"])},\n "runs": {{\n' + ",\n".join(strategies) + "\n }\n}\n"


def _mean(numbers: Sequence[int]) -> int:
    return round(statistics.mean(numbers))


async def measure(strategies: Sequence[str], table: dict[str, Any]) -> None:
    """Conduct the runs with fakes of some strategies, and write what they used into the table."""
    MEASURED.clear()  # nobody looks at the estimates of these runs
    for name in strategies:
        for depth in DEPTHS:
            kinds = {
                "few": await run_once(name, depth, few=True),
                "least": await run_once(name, depth),
                "most": await run_once(name, depth, with_gaps=True),
            }
            table.setdefault("runs", {}).setdefault(name, {})[depth.value] = kinds


def print_table(table: dict[str, Any]) -> None:
    """Print the likely figures beside those of runs with fakes."""
    print("| strategy | depth | fakes: calls over few pages, without gaps, with gaps | likely: calls | tokens | USD "
          "| in a row | minutes | source |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for name, depths in table["runs"].items():
        for depth, kinds in depths.items():
            fakes = ", ".join(f"{cost_of(kinds[kind])[0]:.0f}" for kind in ("few", "least", "most"))
            likely = kinds["likely"]
            calls, tokens, usd = cost_of(likely)
            row = (name, depth, fakes, f"{calls:.0f}", f"{tokens:,.0f}", f"{usd:.2f}", str(likely["in_a_row"]))
            print(f"| {' | '.join(row)} | {likely['seconds'] / 60:.1f} | {likely['source']} |")


def print_comparison(compared: Sequence[Compared]) -> None:
    """Print every real run beside its estimate."""
    head = ("real run", "reads", "estimated without it", "calls, likely", "tokens, likely", "USD, likely", "wrong by")
    print(f"\n| {' | '.join(head)} |")
    print("|---|---|---|---|---|---|---|")
    for one in compared:
        forms = (".0f", ",.0f", ".2f")
        figures = zip(one.real, one.estimated, forms, strict=True)
        pairs = [f"{real:{form}}, {likely:{form}}" if real else "–" for real, likely, form in figures]
        wrong = ", ".join(f"{factor:.2f}" for factor in one.error_factors())
        alone = "yes" if one.alone else "no"
        print(f"| {one.run.strategy}, {one.run.depth} | {one.run.reads} | {alone} | {' | '.join(pairs)} | {wrong} |")
    judged = [one for one in compared if one.run.reads_pages]
    for factor in (2.0, LARGEST_ERROR):
        right = sum(max(one.error_factors()) <= factor for one in judged)
        print(f"\nwithin a factor of {factor:g} in every figure: {right} of {len(judged)} real runs that read pages")


async def main() -> None:
    """Measure, print, and store the table if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategy", help="measure this one alone")
    parser.add_argument("--again", action="store_true", help="measure nothing: derive the stored table again")
    parser.add_argument("--write", action="store_true", help="store the table from which estimates are made")
    given = parser.parse_args()
    table: dict[str, Any] = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {}
    table["source"] = "python -m benchmarks.likely --write"
    if not given.again:
        names = [strategy.name for strategy in list_selectable()]
        await measure(names if given.strategy is None else [given.strategy], table)
    for name, depths in likely_figures(table["runs"], REAL_RUNS).items():
        for depth, figures in depths.items():
            table["runs"][name][depth]["likely"] = figures
    print_table(table)
    print_comparison(compare(table))
    if given.write:
        TABLE.write_text(as_text(table), "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
