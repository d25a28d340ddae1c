"""The composition root: from the configuration to the activities of each pool, opened in order, closed in reverse."""

import asyncio
import contextlib
import importlib.metadata
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from temporalio.client import Client

from activities.configuration import ResearchConfiguration
from activities.journal import CallJournal
from activities.model_call import RoleActivities
from activities.reading import ReadingActivities, declared_quality
from activities.records import RecordsActivities
from activities.reporting.render import ReportingActivities
from activities.searching import SearchingActivities
from contracts.names import POOLS
from contracts.request import Depth
from contracts.resolved import Hook
from contracts.vocabulary import EngineKind
from providers.call_store import SqliteCallStore
from providers.content_store import ObstoreContentStore
from providers.engines import answers
from providers.engines.capabilities import capabilities_of
from providers.engines.extractive import ExtractiveEngine
from providers.engines.language_model import LanguageModelEngine
from providers.errors import CorpusUnknown
from providers.interfaces import Engine
from providers.prices import load_prices
from providers.search.corpus import CorpusDefinition, CorpusLibrary
from providers.session_store import FileSessionStore
from providers.subprocess_pool import SubprocessPool
from workers.embedded import watch_engine
from workers.indexing import NEEDS_INDEXES, refresh_corpora
from workers.pools import DEFAULT_SLOTS, PoolContents
from workers.settings import APPLICATION, Settings
from workers.temporal import have_search_attributes
from workflows.registry import WORKFLOWS

CHILDREN = max(1, min(4, os.cpu_count() or 1))
"""Child processes for extraction, and as many for the engine that needs no model."""
ANALYSIS_SECONDS = 100.0
"""Limit of one analysis without a model: shorter than its activity's, so that the reason is known."""
CALLS_FILE, CONTENT_FOLDER, SESSIONS_FOLDER, CORPORA_FOLDER = "calls.sqlite3", "content", "sessions", "corpora"


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
    `NotConfigured`, `StorageFull` or OSError if a store cannot be opened.
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


def configuration_of(settings: Settings, client: Client) -> ResearchConfiguration:
    """What resolving a request needs to know; no secrets."""
    return ResearchConfiguration(
        models=settings.models.by_tier() if settings.model_configured else {},
        model_host=settings.model_host,
        hooks={
            name: Hook(name=name, activity=hook.activity, task_queue=hook.task_queue)
            for name, hook in settings.hooks.items()
        },
        presets={
            (strategy, depth): settings.preset(strategy, depth)
            for strategy, overrides in settings.strategy.items()
            for depth in (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED)
            if depth in overrides or (depth is Depth.MEDIUM and Depth.AUTO in overrides)
        },
        search_attributes=partial(have_search_attributes, client),
        digest=settings.digest(),
        product_version=product_version(),
    )


def product_version() -> str:
    """The version of this product as it is installed."""
    return importlib.metadata.version(APPLICATION)


async def _contents(
    settings: Settings, client: Client, pools: set[str], stack: AsyncExitStack, *, refresh: bool
) -> PoolContents:
    content = ObstoreContentStore(settings.content_url or settings.home / CONTENT_FOLDER)
    children = await stack.enter_async_context(SubprocessPool(CHILDREN))
    library = CorpusLibrary(settings.home / CORPORA_FOLDER, children, corpus_definitions(settings))
    if refresh and pools & NEEDS_INDEXES:
        await refresh_corpora(library)
    activities: dict[str, list[Callable[..., Any]]] = {}
    if "models" in pools:
        activities["models"] = await _role_activities(settings, content, stack)
    if "search" in pools:
        activities["search"] = [SearchingActivities({library.name: library}).search]
    if "reading" in pools:
        quality_of = declared_quality(DeclaredAuthorities(library))
        activities["reading"] = [ReadingActivities(library, content, quality_of).read_source]
    if "records" in pools:
        sessions = FileSessionStore(settings.home / SESSIONS_FOLDER)
        records = RecordsActivities(configuration_of(settings, client), library, content, sessions)
        reporting = ReportingActivities(content, library.skipped, product_version())
        activities["records"] = [
            records.prepare_research,
            records.save_session,
            records.read_document,
            reporting.render_report,
        ]
    return PoolContents(workflows=WORKFLOWS, activities=activities, slots=slots_of(settings))


def slots_of(settings: Settings) -> dict[str, int]:
    """Activities at once by pool: a model is waited for, but without one the roles compute, two per processor."""
    models = DEFAULT_SLOTS["models"] if settings.model_configured else max(4, 2 * CHILDREN)
    return {**DEFAULT_SLOTS, "models": models}


async def _role_activities(
    settings: Settings, content: ObstoreContentStore, stack: AsyncExitStack
) -> list[Callable[..., Any]]:
    calls = SqliteCallStore(settings.home / CALLS_FILE)
    stack.push_async_callback(calls.close)
    computing = await stack.enter_async_context(
        SubprocessPool(CHILDREN, cpu_seconds=ANALYSIS_SECONDS, wall_seconds=ANALYSIS_SECONDS)
    )
    engines: dict[EngineKind, Engine] = {EngineKind.EXTRACTIVE: ExtractiveEngine(computing)}
    if settings.model_configured:
        engines[EngineKind.MODEL] = _language_model(settings)
    for engine in engines.values():
        stack.push_async_callback(engine.close)
    return RoleActivities(engines, content, CallJournal(calls, answers)).register()


def _language_model(settings: Settings) -> LanguageModelEngine:
    # The SDK takes as long to import as everything else together, and nobody needs it without a model.
    from providers.anthropic_chat import DEFAULT_BASE_URL, AnthropicChat  # noqa: PLC0415

    key = settings.anthropic_api_key
    base_url = settings.models.base_url or DEFAULT_BASE_URL
    chat = AnthropicChat(api_key=key.get_secret_value() if key else None, base_url=base_url)
    return LanguageModelEngine(chat, capabilities_of(base_url), load_prices().with_models(settings.models.prices))


@asynccontextmanager
async def _in_background(work: Callable[[], Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
