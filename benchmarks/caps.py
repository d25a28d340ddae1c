"""What runs spend of their limit of costs before they say that it was reached: `python -m benchmarks.caps`.

Whole runs in one process, over pages of a made-up subject of which every analysis leaves a gap, so that a run ends when
its money does. Each call has the size of a call of a real language model in a run of the product: `real_runs.json` has
input and output tokens by role, in the order of the calls. An estimate of a prompt is a sixth higher, as those of the
product are.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

from benchmarks.real_runs import Sizes, recorded_sizes
from contracts.outcome import Usage
from contracts.resolved import ModelPrice
from contracts.roles import AnalyzerAnswer, ProposedGap
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind, Outcome, StopReason, Tier
from providers.errors import AnswerCut, ReservationTooSmall
from providers.interfaces import Engine, EngineAnswer, EngineTask
from tests.fakes import many_pages
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import begin, model_world
from workflows.driver import Driver
from workflows.phases.analysis import pages_waiting
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

CAPS: Final = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 0.85, 1.0, 2.0, 5.0)
STRATEGIES: Final = ("supervisor", "reflective", "orchestrator", "living", "recursive")
DEAR: Final = {2.0: 5.0, 5.0: 10.0}
"""Limit → factor of prices: with the usual ones the made-up questions end before they cost so much."""
RECORDED: Final = recorded_sizes()
OTHER_ROLES: Final = ((2_000, 300),)
"""For roles of which no call was recorded in any run."""
LEAST_PROMPT: Final = 0.4
"""Of a prompt with shortened content."""
ESTIMATE_FACTOR: Final = 7 / 6
PRICES: Final = {
    Tier.SIMPLE: ModelPrice(input=1.0, output=5.0),
    Tier.ANALYTICAL: ModelPrice(input=3.0, output=15.0),
    Tier.COMPLEX: ModelPrice(input=3.0, output=15.0),
}
"""List prices of the models whose calls were recorded."""
CACHE_WRITES: Final = 1.25
"""A reservation counts with the price of input that is written to an endpoint's cache."""
WRITERS: Final = {"synthesizer": "rewords", "reporter": "rewords", "checker": "believing"}
"""Rules settle no statement of these writers, as they settle few of a model's own words."""
REASONING_TOKENS: Final = 4_000
"""That the models may use besides their answers."""
NEW_GAPS: Final = 4
"""Of each analysis."""
PAGES: Final = 400


@dataclass
class Bill:
    """What the calls of one run cost."""

    spent: float = 0.0
    roles: list[str] = field(default_factory=list)
    """Roles that were called, in order."""
    cut: list[str] = field(default_factory=list)
    """Roles whose answers were cut, in order."""
    again: list[str] = field(default_factory=list)
    """Roles that were asked once more after a cut, in order."""
    tight: list[str] = field(default_factory=list)
    """Roles whose reservation was smaller than the answer that was asked for, with no word of that to the model."""
    shortened: int = 0
    """Calls that showed less, or were to answer more briefly."""


def new_gap(number: int) -> ProposedGap:
    """Return a gap that no other number names, so that there is always something to look for."""
    place, part = (names[number % len(names)] for names in (many_pages.PLACES, many_pages.PARTS))
    text = f"Which degrees of an ashen glaze does notebook {number} from {place} give for the {part}?"
    return ProposedGap(description=text, suggested_queries=[text])


class SizedEngine:
    """An engine whose calls have given sizes, within what is reserved for them as a real one's are."""

    kind, paid = EngineKind.MODEL, True

    def __init__(
        self, inner: Engine, sizes: Sizes, prices: Mapping[Tier, ModelPrice], *, cuts_first: bool = False
    ) -> None:
        """With `cuts_first`, the first answer of each role that its reservation bounds is cut by it."""
        self._inner, self._prices, self._cuts_first = inner, prices, cuts_first
        known = {role: calls for recorded in RECORDED.values() for role, calls in recorded.items()}
        self._sizes = {role: cycle(calls) for role, calls in (known | dict(sizes)).items()}
        self._given: dict[str, tuple[int, int]] = {}
        self._gaps = count(1)
        self.bill = Bill()

    async def answer(self, task: EngineTask) -> EngineAnswer:
        """Answer as the inner engine does, for the tokens of the next call of the role."""
        request = task.input
        name = f"{request.operation}/{request.repair is not None}".replace("/more", "")
        if name not in self._given:
            self._given[name] = next(self._sizes.setdefault(task.role.name, cycle(OTHER_ROLES)))
        tokens_in, tokens_out = self._given[name]
        estimate = int(tokens_in * ESTIMATE_FACTOR)
        reserved = request.reserved_input_tokens
        if reserved is not None and estimate > reserved:
            least = int(estimate * LEAST_PROMPT)
            if not request.shorten or least > reserved:
                raise ReservationTooSmall(least if request.shorten else estimate)
            estimate, tokens_in = reserved, int(reserved / ESTIMATE_FACTOR)
        most = request.reserved_output_tokens
        if request.shorten and most is not None:
            tokens_out = min(tokens_out, most)  # a shorter answer was asked for
        self.bill.shortened += request.shorten
        asked = min(request.asked_output_tokens, task.role.output_tokens)
        if most is not None and most < asked and not request.shorten:
            self.bill.tight.append(task.role.name)
        is_cut = most is not None and (tokens_out > most or self._is_to_be_cut(task, most))
        usage = self._billed(task, tokens_in, most if is_cut and most is not None else tokens_out)
        if is_cut:
            self.bill.cut.append(task.role.name)
            raise AnswerCut("the answer was cut off before its end", usage=usage, model="test-model")
        unlimited = {"reserved_input_tokens": None, "reserved_output_tokens": None, "shorten": False}
        answer = await self._inner.answer(replace(task, input=request.model_copy(update=unlimited)))
        content = answer.content
        if isinstance(content, AnalyzerAnswer):
            content = content.model_copy(update={"gaps": [new_gap(next(self._gaps)) for _ in range(NEW_GAPS)]})
        return replace(answer, content=content, usage=usage, estimate=estimate)

    def _is_to_be_cut(self, task: EngineTask, most: int) -> bool:
        is_bound = most < task.role.output_tokens + REASONING_TOKENS and not task.input.more
        return self._cuts_first and is_bound and task.role.name not in self.bill.cut

    async def close(self) -> None:
        """Close the inner engine."""
        await self._inner.close()

    def _billed(self, task: EngineTask, tokens_in: int, tokens_out: int) -> Usage:
        price = self._prices[task.role.tier]
        cost = (tokens_in * price.input + tokens_out * price.output) / 1e6
        self.bill.roles.append(task.role.name)
        self.bill.again += [task.role.name] if task.input.more else []
        self.bill.spent += cost
        return Usage(model_calls=1, input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost)


@dataclass(frozen=True)
class Spent:
    """One run and what it spent."""

    outcome: Outcome
    reason: StopReason
    share: float
    """Of its limit."""
    bill: Bill
    notes: list[str]
    """What the run says of work that was done otherwise than asked for."""
    by_model: bool
    """True if a model wrote the report."""
    waiting: int
    """Pages that were read and wait for their analysis."""

    @property
    def without_model(self) -> int:
        """Return how many calls were done without the model."""
        return sum("without the model" in note for note in self.notes)

    @property
    def says_limit(self) -> bool:
        """Whether the run says that its limit of costs was reached."""
        return self.reason is StopReason.BUDGET_COST


async def spend(
    cap: float,
    strategy: str,
    sizes: Sizes,
    prices: Mapping[Tier, ModelPrice] = PRICES,
    *,
    pages: int = PAGES,
    cuts_first: bool = False,
    **fields: Any,
) -> Spent:
    """Conduct one run with a limit of costs, and return what it spent."""
    documents = many_pages.files(pages)
    limits = {
        "max_cost_usd": cap,
        "max_iterations": 20,
        "max_sources": 500,
        "max_sub_queries": 8,
    }
    request = {"query": many_pages.QUESTION, "strategy": strategy, "gates": {"approve": "none"}, "depth": "extended"}
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi(by_role=WRITERS) as api:
            world = model_world(Path(folder), api.base_url, MemoryCorpus(documents), window=200_000)
            by_name = {f"model-{tier.value}": price for tier, price in prices.items()}
            reserved = {
                name: price.model_copy(update={"input": price.input * CACHE_WRITES}) for name, price in by_name.items()
            }
            world.configuration = replace(
                world.configuration,
                models={tier.value: [f"model-{tier.value}"] for tier in Tier},
                model_price=reserved.get,
                call_usd=partial(_cost, by_name),
                reasoning_tokens=lambda _: REASONING_TOKENS,
            )
            engine = SizedEngine(world.engines[EngineKind.MODEL], sizes, prices, cuts_first=cuts_first)
            world.engines[EngineKind.MODEL] = engine
            state = await begin(world, **(request | fields | {"limits": limits | fields.get("limits", {})}))
            run = ResearchRun(state, Inbox(), world.host())
            await Driver(run, load_strategy(strategy)).conduct()
            await world.close()
    assert state.work.result is not None
    return Spent(
        state.work.result.outcome,
        state.work.result.stop_reason,
        engine.bill.spent / cap,
        engine.bill,
        [*state.work.degraded, *state.work.failed_branches],
        writer_engine(state.accounts.engine_by_role) is EngineKind.MODEL,
        len(pages_waiting(run)),
    )


def _cost(by_name: Mapping[str, ModelPrice], model: str, usage: Usage) -> float | None:
    price = by_name.get(model)
    return None if price is None else usage.max_usd(price)


def _dearer(price: ModelPrice, factor: float) -> ModelPrice:
    return ModelPrice(input=factor * price.input, output=factor * price.output)


async def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategy", choices=STRATEGIES)
    parser.add_argument("--verify", choices=("off", "light", "full"))
    parser.add_argument("--recorded", choices=tuple(RECORDED))
    parser.add_argument("--cap", type=float, action="append", help="one or more; all of the table if none is given")
    given = parser.parse_args()
    fields = {} if given.verify is None else {"verify": given.verify}
    print(
        "| strategy | sizes of | cap $ | spent | says that it was reached | calls | cut | shortened | pages waiting |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for strategy in STRATEGIES if given.strategy is None else (given.strategy,):
        for recorded in RECORDED if given.recorded is None else (given.recorded,):
            sizes = RECORDED[recorded]
            for cap in given.cap or CAPS:
                prices = {tier: _dearer(price, DEAR.get(cap, 1.0)) for tier, price in PRICES.items()}
                run = await spend(cap, strategy, sizes, prices, **fields)
                bill, said = run.bill, "yes" if run.says_limit else f"no ({run.reason.value})"
                print(
                    f"| {strategy} | {recorded} | {cap} | {run.share:.1%} | {said} "
                    f"| {len(bill.roles)} | {len(bill.cut)} | {bill.shortened} | {run.waiting} |",
                    flush=True,
                )


if __name__ == "__main__":
    asyncio.run(main())
