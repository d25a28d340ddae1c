"""The composition root: from the configuration to the activities of each pool, opened in order, closed in reverse."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from temporalio.client import Client

from activities.assessment.source_assessment import judge_of
from activities.journal import CallJournal
from activities.reading import ReadingActivities
from activities.records import RecordsActivities
from activities.reporting.render import ReportingActivities
from activities.roles.model_call import RoleActivities
from contracts.names import POOLS
from contracts.vocabulary import EngineKind
from providers.errors import CorpusUnknown
from providers.extractive import ExtractiveEngine
from providers.interfaces import Engine, IsolatedCalls, Limiter
from providers.isolated_calls import KillableCalls
from providers.models import paid_answers
from providers.reading.cached_reader import CachedReader
from providers.reading.routed_reader import RoutedReader
from providers.search.corpus import CorpusDefinition, CorpusLibrary
from providers.shared.limiter import SharedLimiter
from providers.shared.politeness import Politeness
from providers.storage.content import ObstoreContentStore
from providers.storage.sessions import FileSessionStore
from providers.subprocess_pool import SubprocessPool
from workers.dev_server.attach import watch_engine
from workers.indexing import NEEDS_INDEXES, refresh_corpora
from workers.model_engine import language_model, model_limits
from workers.pools import DEFAULT_SLOTS, PoolContents
from workers.resolution_inputs import configuration_of, product_version
from workers.search_pool import search_limits, searching_activities
from workers.settings.loading import Settings
from workers.shared_state import SharedState, shared_state
from workers.temporal import have_search_attributes
from workers.web_reader import web_reader
from workflows.registry import WORKFLOWS

CHILDREN = max(1, min(4, os.cpu_count() or 1))
"""Child processes for extraction, and as many for all other work on texts from outside."""
ITEMS_OF_A_CHILD = 1_000
"""Small ones, for a child that has loaded much."""
ASK_OUTSIDE = frozenset({"models", "search", "reading"})
"""Pools that agree with others of their kind on whom they ask, how often, and what was answered."""
CONTENT_FOLDER, SESSIONS_FOLDER, CORPORA_FOLDER = "content", "sessions", "corpora"


class DeclaredAuthorities(Mapping[str, str]):
    """What the documents of each corpus are worth, as declared now: a corpus may be registered while workers run."""

    def __init__(self, library: CorpusLibrary) -> None:
        self._library = library

    def __getitem__(self, name: str) -> str:
        try:
            return self._library.definition(name).authority
        except CorpusUnknown:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._library.names())

    def __len__(self) -> int:
        return len(self._library.names())


@asynccontextmanager
async def compose(
    settings: Settings, client: Client, pools: Sequence[str] = tuple(POOLS), *, refresh: bool = False
) -> AsyncIterator[PoolContents]:
    """What the pools run, as long as the block runs; without a cluster the engine is watched over meanwhile.

    With `refresh` the indexes of all corpora are brought up to date first, for pools that read them. Raises
    `NotConfigured`, `StorageFull` or OSError if a store cannot be opened, and `EngineMovedError` from the block.
    """
    async with AsyncExitStack() as stack:
        if not settings.uses_cluster:
            await stack.enter_async_context(_in_background(partial(watch_engine, settings.home)))
        yield await _contents(settings, client, set(pools), stack, refresh=refresh)


def corpus_definitions(settings: Settings) -> list[CorpusDefinition]:
    """The folders of the configuration."""
    return [
        CorpusDefinition(name=name, **corpus.model_dump(exclude_none=True)) for name, corpus in settings.corpus.items()
    ]


async def _contents(
    settings: Settings, client: Client, pools: set[str], stack: AsyncExitStack, *, refresh: bool
) -> PoolContents:
    content = ObstoreContentStore(settings.content_url or settings.home / CONTENT_FOLDER)
    children = await stack.enter_async_context(SubprocessPool(CHILDREN))
    library = CorpusLibrary(settings.home / CORPORA_FOLDER, children, corpus_definitions(settings))
    if refresh and pools & NEEDS_INDEXES:
        await refresh_corpora(library)
    isolated: IsolatedCalls = KillableCalls(
        await stack.enter_async_context(SubprocessPool(CHILDREN, recycle_after=ITEMS_OF_A_CHILD))
    )
    activities: dict[str, list[Callable[..., Any]]] = {}
    if pools & ASK_OUTSIDE:
        shared = await stack.enter_async_context(shared_state(settings))
        limiter = SharedLimiter(shared.store, {**search_limits(settings), **model_limits(settings)})
        stack.push_async_callback(limiter.close)
        if "models" in pools:
            activities["models"] = await _role_activities(settings, content, shared, limiter, isolated, stack)
        if "search" in pools:
            searching = await searching_activities(settings, library, shared, limiter, stack)
            activities["search"] = [searching.check_providers, searching.search]
        if "reading" in pools:
            activities["reading"] = [await _reading(settings, library, children, content, shared, stack)]
    if "records" in pools:
        sessions = FileSessionStore(settings.home / SESSIONS_FOLDER)
        configuration = configuration_of(settings, partial(have_search_attributes, client))
        records = RecordsActivities(configuration, library, content, sessions)
        reporting = ReportingActivities(content, library.skipped, product_version(), isolated)
        activities["records"] = [
            records.prepare_research,
            records.save_session,
            records.read_document,
            reporting.render_report,
        ]
    return PoolContents(workflows=WORKFLOWS, activities=activities, slots=slots_of(settings))


async def _reading(
    settings: Settings,
    library: CorpusLibrary,
    children: SubprocessPool,
    content: ObstoreContentStore,
    shared: SharedState,
    stack: AsyncExitStack,
) -> Callable[..., Any]:
    politeness = Politeness(shared.store)
    stack.push_async_callback(politeness.close)
    web = await stack.enter_async_context(
        web_reader(settings, children, product_version(), store=shared.store, politeness=politeness)
    )
    reader = RoutedReader(library, CachedReader(web, content, shared.cache))
    judge = judge_of(KillableCalls(children), DeclaredAuthorities(library), settings.web.authorities)
    return ReadingActivities(reader, content, judge).read_source


def slots_of(settings: Settings) -> dict[str, int]:
    """Activities at once by pool: a model is waited for, but without one the roles compute, two per processor.

    What the operator set goes before that.
    """
    models = DEFAULT_SLOTS["models"] if settings.model_configured else max(4, 2 * CHILDREN)
    return {**DEFAULT_SLOTS, "models": models, **settings.workers.slots}


async def _role_activities(
    settings: Settings,
    content: ObstoreContentStore,
    shared: SharedState,
    limiter: Limiter,
    isolated: IsolatedCalls,
    stack: AsyncExitStack,
) -> list[Callable[..., Any]]:
    engines: dict[EngineKind, Engine] = {EngineKind.EXTRACTIVE: ExtractiveEngine(isolated)}
    if settings.model_configured:
        engines[EngineKind.MODEL] = language_model(settings, limiter, shared.store, isolated)
    for engine in engines.values():
        stack.push_async_callback(engine.close)
    return RoleActivities(engines, content, CallJournal(shared.calls, paid_answers), isolated).register()


@asynccontextmanager
async def _in_background(work: Callable[[], Any]) -> AsyncIterator[None]:
    """Work beside the block: what it raises ends the block, and is raised instead."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work())
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as errors:
        error = errors.exceptions[0]
        raise error from error.__cause__
