"""Which strategies the suites are for, and how one of their runs is driven, disturbed and resumed without a server.

Every strategy that a request can name joins: those of the product, those of installed packages, and the toy.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from contracts import strategies
from contracts.parse_request import InvalidRequest, parse_request
from contracts.plan import Waiting
from contracts.request import Mode
from contracts.state import ResearchState
from contracts.strategies import StrategyDeclaration
from contracts.tokens import TokenSettings
from contracts.vocabulary import EngineKind, Outcome, StopReason
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_request import ROLES
from tests.fakes.model_tokens import TokenBook
from tests.fakes.world import World, begin, model_world
from tests.toy import declared
from tests.toy.roles import TOY
from workflows.driver import Driver
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Inbox, Reply
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

SMALL: Final[dict[str, Any]] = {"depth": "light", "gates": {"approve": "none"}}
"""What every request of the suites asks for: the least that is a whole run, and no person's yes."""
UNPAID: Final = ("save_session", "prepare_research", "check_providers", "take_turn")
"""Activities that are no part of a unit's work."""


toy_declared = partial(declared, TOY)


def _can_be_named(strategy: StrategyDeclaration) -> bool:
    try:
        parse_request(json.dumps({"query": "How?", "strategy": strategy.name}))
    except InvalidRequest:
        return False
    return True


def _find_joined() -> tuple[StrategyDeclaration, ...]:
    strategies.declare_installed()
    with toy_declared():
        return tuple(one for one in strategies.list_declared() if _can_be_named(one))


JOINED: Final = _find_joined()
NAMES: Final = tuple(strategy.name for strategy in JOINED)


def _engines_of(strategy: StrategyDeclaration) -> list[str]:
    """With a model only where the fake endpoint knows what its roles would answer."""
    known = all(role.name in ROLES for role in strategy.roles)
    return [EngineKind.EXTRACTIVE.value, *([EngineKind.MODEL.value] if known else [])]


ENGINES: Final = [(strategy.name, engine) for strategy in JOINED for engine in _engines_of(strategy)]
"""Every strategy with each engine that can do its roles here."""
MODELLED: Final = [name for name, engine in ENGINES if engine == EngineKind.MODEL.value]
FIRST_ENGINE: Final = dict(reversed(ENGINES))
"""By strategy: without a model where that is possible."""
TWO_MODELLED: Final = ("supervisor", "orchestrator")
"""One whose roles answer once, and one whose agents take turns: for what the code that all share does."""
MODES: Final = [
    (strategy.name, engine, mode.value)
    for strategy in JOINED
    for engine in _engines_of(strategy)
    for mode in (Mode.DEEP, *strategy.modes)
    if mode is not Mode.DIRECT or engine == EngineKind.MODEL.value
]
"""Every engine of every strategy in each mode that it knows; nothing answers directly without a model."""


@asynccontextmanager
async def world_of(
    folder: Path, engine: str, corpus: MemoryCorpus | None = None, by_role: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[World, MessagesApi]]:
    """A world with or without a model; by role, what is wrong with the model's answers."""
    async with MessagesApi(by_role=by_role or {}) as api:
        by_model = engine == EngineKind.MODEL.value
        world = model_world(folder, api.base_url, corpus) if by_model else World(folder, corpus)
        try:
            yield world, api
        finally:
            await world.close()


Act = Callable[[], Awaitable[None]]


class WatchedHost(InProcessHost):
    """Tells which unit each call belongs to, and lets a test do something there."""

    def __init__(self, world: World, state: ResearchState) -> None:
        super().__init__(world.host().implementations)
        self.state = state
        self.by_unit: dict[str, list[str]] = {}
        self.most_at_once: Counter[str] = Counter()
        """How many calls of an activity were under way together."""
        self._under_way: Counter[str] = Counter()
        self.acts: dict[tuple[str, int], Act] = {}
        """What is done before the n-th call of a unit, from 1."""

    async def _run(self, activity: str, argument: Any, options: Any) -> Any:
        if activity not in UNPAID:
            calls = self.by_unit.setdefault(self.state.work.phase or "", [])
            calls.append(activity)
            if (act := self.acts.get((self.state.work.phase or "", len(calls)))) is not None:
                await act()
        self._under_way[activity] += 1
        self.most_at_once[activity] = max(self.most_at_once[activity], self._under_way[activity])
        try:
            return await super()._run(activity, argument, options)
        finally:
            self._under_way[activity] -= 1


class Trial:
    """One run of a strategy, with what a test needs to disturb it."""

    def __init__(self, world: World, name: str, state: ResearchState) -> None:
        self.world, self.name, self.state = world, name, state
        self.inbox = Inbox()
        self.host = WatchedHost(world, state)
        self.run = ResearchRun(state, self.inbox, self.host)
        self.driver = Driver(self.run, load_strategy(name))
        self.task: asyncio.Task[Any] | None = None
        self.api: MessagesApi
        """What its model is asked."""
        self.calls_before = 0
        """How many calls had begun when the run was cancelled."""

    async def conduct(self) -> Outcome:
        self.start()
        return await self.task

    def start(self) -> None:
        self.task = asyncio.ensure_future(self.driver.conduct())

    async def stop(self) -> None:
        self.inbox.interrupt(StopReason.USER_STOPPED)

    async def run_out_of_time(self) -> None:
        await self.host.advance(self.run.clock.remaining_work_seconds() + 0.001)

    async def steer(self, words: str) -> None:
        self.inbox.steering.append(words)

    async def cancel(self) -> None:
        await self.run.checkpoints.settle()  # a save that is cut off may still be written
        self.task.cancel()
        self.calls_before = len(self.host.calls) + 1

    async def asked(self, version: int = 0) -> Waiting:
        """What the person is asked; with `version`, for that one of the plan."""
        async with asyncio.timeout(60):
            while not self.task.done():
                if (waiting := self.state.people.waiting) is not None and version in (0, waiting.plan_version):
                    return waiting
                await asyncio.sleep(0.01)
        raise AssertionError(f"nobody was asked: {self.state.people.events[-3:]}")

    async def answer(self, said: Reply) -> None:
        """Say something that is waited for, and see that it is taken."""
        self.inbox.replies.append(said)
        async with asyncio.timeout(60):
            while self.inbox.replies:
                await asyncio.sleep(0.01)

    @property
    def left(self) -> int:
        """How many searches and reads have left so far."""
        return len(self.world.corpus.searches) + len(self.world.corpus.reads)

    @property
    def findings(self) -> set[str]:
        """Ids of the findings: the same words of the same documents have the same."""
        return {finding.id for finding in self.state.evidence.findings}

    async def report(self) -> str:
        """Its report; empty where there is none."""
        files = self.state.work.result.files if self.state.work.result else None
        return await self.world.content.get_text(files.markdown) if files else ""

    async def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(
            await self.world.content.get_text(self.state.work.result.files.json_document)
        )
        return document

    def assert_completed(self, where: str = "") -> None:
        """It has everything that it was asked for."""
        assert self.state.work.result.outcome is Outcome.COMPLETED, (
            where, self.state.work.failed_branches, self.state.work.limitations, self.state.work.degraded
        )  # fmt: skip


async def begin_trial(world: World, name: str, **fields: Any) -> Trial:
    return Trial(world, name, await begin(world, strategy=name, **(SMALL | fields)))


@asynccontextmanager
async def trial_of(
    folder: Path,
    name: str,
    engine: str = "",
    *,
    corpus: MemoryCorpus | None = None,
    by_role: Mapping[str, str] | None = None,
    **fields: Any,
) -> AsyncIterator[Trial]:
    """A run that has done nothing yet, and its world for the time of a block."""
    async with world_of(folder, engine or FIRST_ENGINE[name], corpus, by_role) as (world, api):
        trial = await begin_trial(world, name, **fields)
        trial.api = api
        yield trial


@asynccontextmanager
async def begun(folder: Path, name: str, engine: str = "", **fields: Any) -> AsyncIterator[Trial]:
    """A run that goes on beside the test; it is cancelled if it has not ended by the end of the block."""
    async with trial_of(folder, name, engine, **fields) as trial:
        trial.start()
        try:
            yield trial
        finally:
            if not trial.task.done():
                await trial.cancel()
                await asyncio.wait([trial.task])


@asynccontextmanager
async def at_window(
    folder: Path,
    name: str,
    book: TokenBook,
    pages: Mapping[str, str],
    *,
    known: int | None = None,
    tokens: TokenSettings | None = None,
    **fields: Any,
) -> AsyncIterator[Trial]:
    """A whole run over these pages at an endpoint with books of its own, whose window is known, rightly or not."""
    async with MessagesApi(book=book) as api:
        window, caching = known or book.window, book.cacheable is not None
        world = model_world(folder, api.base_url, MemoryCorpus(pages), window, tokens, caching=caching)
        try:
            trial = await begin_trial(world, name, **fields)
            trial.api = api
            await trial.conduct()
            yield trial
        finally:
            await world.close()


async def undisturbed(folder: Path, name: str, engine: str = "", **fields: Any) -> Trial:
    """A whole run; its world is closed, what it stored is there."""
    async with trial_of(folder, name, engine, **fields) as trial:
        await trial.conduct()
    return trial


_whole_runs: dict[str, Trial] = {}


async def whole_run(folder: Path, name: str, engine: str = "", **fields: Any) -> Trial:
    """An undisturbed run to compare with, made once for all tests of this process; nobody may change it."""
    key = json.dumps([name, engine or FIRST_ENGINE[name], fields], sort_keys=True)
    if key not in _whole_runs:
        _whole_runs[key] = await undisturbed(folder, name, engine, **fields)
    return _whole_runs[key]


def units_of(trial: Trial) -> list[str]:
    """The units of a whole run that called something, in the order in which they began."""
    begun = [str(event.data["phase"]) for event in trial.state.people.events if event.type == "phase.started"]
    return [unit for unit in dict.fromkeys(begun) if unit in trial.host.by_unit]


async def resume(trial: Trial, **fields: Any) -> Trial:
    """Go on from what the session store holds, to the end."""
    again = await begin_again(trial, **fields)
    await again.conduct()
    return again


async def begin_again(trial: Trial, **fields: Any) -> Trial:
    """What goes on from what the session store holds; it has done nothing yet."""
    stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
    fresh = await begin(trial.world, strategy=trial.name, **(SMALL | fields))
    assert fresh.work.resolved is not None
    later = resume_state(stored, fresh.work.resolved, fresh.clock.started_at, load_strategy(trial.name).resume)
    later.clock.clock_started_at, later.clock.deadline_at = fresh.clock.clock_started_at, fresh.clock.deadline_at
    return Trial(trial.world, trial.name, later)
