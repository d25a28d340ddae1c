"""The composition root: it builds the activities of each pool from the configuration, and closes them in reverse."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from temporalio.client import Client

from activities.assessment.source_assessment import judge_of
from activities.journal import CallJournal
from activities.reading import ReadingActivities
from activities.records import RecordsActivities
from activities.reporting.drafts import RevisionActivities
from activities.reporting.render import ReportingActivities
from activities.roles.run_role import RoleActivities
from activities.select_evidence import SelectionActivities
from activities.turns import TurnActivities
from activities.verifying.verification import VerifyingActivities
from contracts.names import POOLS
from contracts.vocabulary import EngineKind, Tier
from providers.errors import CorpusUnknown, NotConfigured
from providers.extractive import ExtractiveEngine
from providers.interfaces import CallStore, Engine, IsolatedCalls, Limiter, Notebooks
from providers.isolation.pool import KillableCalls, SubprocessPool
from providers.models import answers
from providers.models.chat import Chat
from providers.models.endpoints import DEFAULT_ENDPOINT, MissingChat, ModelDirectory, ModelEndpoint
from providers.models.language_model import LanguageModelEngine
from providers.models.model_errors import ADDRESS_VARIABLE, EndpointPlaces
from providers.models.prices import PriceTable
from providers.reading.reader import CachedReader, RoutedReader
from providers.search.corpus import CorpusDefinition, CorpusLibrary, open_library
from providers.shared.limits import ServiceLimits, SharedLimiter
from providers.shared.politeness import Politeness
from providers.shared.run_queue import QueueLimits, SharedRunQueue
from providers.storage.content import ObstoreContentStore
from providers.storage.left_behind import LEFT_BEHIND
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_notebooks import StoredNotebooks
from providers.storage.stored_records import has_sole_sessions, open_records
from workers.dev_server import watch_server
from workers.indexing import NEEDS_INDEXES, refresh_corpora
from workers.pools import DEFAULT_SLOTS, PoolContents
from workers.resolution_inputs import configuration_of, product_version
from workers.retention import Retention, open_runs, sweep_now_and_then
from workers.searching import open_searching, search_limits
from workers.settings.loading import Settings
from workers.settings.models import host_of, key_variable
from workers.shared_state import SharedState, open_shared_state
from workers.temporal import has_search_attributes, is_run_cancelled
from workers.web_reader import open_web_reader
from workflows.registry import WORKFLOWS

CHILDREN = max(1, min(4, os.cpu_count() or 1))
"""Child processes for extraction, and as many for all other work on texts from outside."""
SHARING_POOLS = frozenset({"models", "search", "reading", "records"})
"""Pools that share limits, caches and paid answers with other processes."""
CONTENT_FOLDER, CORPORA_FOLDER = "content", "corpora"


class DeclaredAuthorities(Mapping[str, str]):
    """The declared authority of each corpus, read at each use: a corpus may be registered while workers run."""

    def __init__(self, library: CorpusLibrary) -> None:
        self._library = library

    def __getitem__(self, name: str) -> str:
        try:
            return self._library.authority(name)
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
    """Build what the pools run and close it after the block; without a cluster, watch the dev server meanwhile.

    With `refresh`, first bring the indexes of all corpora up to date, for pools that read them. Raises
    `NotConfigured`, `StorageFull` or OSError if a store cannot be opened, and `ServerMovedError` from the block.
    """
    async with AsyncExitStack() as stack:
        if not settings.uses_cluster:
            await stack.enter_async_context(_in_background(partial(watch_server, settings.home)))
        yield await _contents(settings, client, set(pools), stack, refresh=refresh)


def corpus_definitions(settings: Settings) -> list[CorpusDefinition]:
    """The corpora of the configuration."""
    return [
        CorpusDefinition(name=name, **corpus.model_dump(exclude_none=True)) for name, corpus in settings.corpus.items()
    ]


async def _contents(
    settings: Settings, client: Client, pools: set[str], stack: AsyncExitStack, *, refresh: bool
) -> PoolContents:
    content = ObstoreContentStore(settings.content_url or settings.home / CONTENT_FOLDER, dates_puts=True)
    notebooks = StoredNotebooks(content)
    children = await stack.enter_async_context(SubprocessPool(CHILDREN))
    library = open_library(
        settings.content_url,
        settings.home,
        settings.home / CORPORA_FOLDER,
        children,
        corpus_definitions(settings),
    )
    if refresh and pools & NEEDS_INDEXES:
        await refresh_corpora(library)
    isolated: IsolatedCalls = KillableCalls(await stack.enter_async_context(SubprocessPool(CHILDREN)))
    activities: dict[str, list[Callable[..., Any]]] = {}
    if pools & SHARING_POOLS:
        shared = await stack.enter_async_context(open_shared_state(settings))
        limits = {**search_limits(settings), **model_limits(settings)}
        limiter = SharedLimiter(shared.store, limits)
        if "models" in pools:
            activities["models"] = await _role_activities(settings, client, content, notebooks, shared, limiter, stack)
        if "search" in pools:
            searching = await open_searching(settings, library, shared, limiter, notebooks, stack)
            activities["search"] = [searching.check_providers, searching.search]
        if "reading" in pools:
            activities["reading"] = [
                await _reading(settings, library, children, content, notebooks, shared, stack),
                SelectionActivities(content, notebooks, isolated).select_evidence,
            ]
        if "records" in pools:
            activities["records"] = await _records(
                settings, client, library, content, notebooks, shared, isolated, stack
            )
    return PoolContents(workflows=WORKFLOWS, activities=activities, slots=slots_of(settings))


async def _records(
    settings: Settings,
    client: Client,
    library: CorpusLibrary,
    content: ObstoreContentStore,
    notebooks: Notebooks,
    shared: SharedState,
    isolated: IsolatedCalls,
    stack: AsyncExitStack,
) -> list[Callable[..., Any]]:
    sessions = RecordSessionStore(open_records(settings.content_url, settings.home, SESSIONS))
    if settings.retention_days is not None:

        async def calls() -> CallStore:
            return shared.calls

        notes = open_records(settings.content_url, settings.home, LEFT_BEHIND)
        sole = has_sole_sessions(settings.content_url)
        retention = Retention(sessions, content, notes, calls, client, sole=sole)
        sweeping = partial(sweep_now_and_then, retention, settings.retention_days, shared.store)
        await stack.enter_async_context(_in_background(sweeping))
    limits = QueueLimits(settings.runs.at_once, settings.runs.at_once_per_tenant)
    queue = SharedRunQueue(shared.store, limits, partial(open_runs, client))
    configuration = configuration_of(settings, _remembered(partial(has_search_attributes, client)))
    records = RecordsActivities(configuration, library, content, sessions, notebooks, queue)
    reporting = ReportingActivities(content, library.skipped, product_version(), isolated, sessions, notebooks)
    verifying = VerifyingActivities(content, isolated, sessions, notebooks)
    revising = RevisionActivities(content)
    return [
        records.prepare_research,
        records.prepare_agent,
        records.save_session,
        records.read_document,
        reporting.render_report,
        verifying.extract_claims,
        verifying.finalize_verification,
        verifying.apply_corrections,
        revising.join_report,
        TurnActivities(queue).take_turn,
    ]


async def _reading(
    settings: Settings,
    library: CorpusLibrary,
    children: SubprocessPool,
    content: ObstoreContentStore,
    notebooks: StoredNotebooks,
    shared: SharedState,
    stack: AsyncExitStack,
) -> Callable[..., Any]:
    politeness = Politeness(shared.store)
    web = await stack.enter_async_context(open_web_reader(settings, children, product_version(), politeness=politeness))
    reader = RoutedReader(library, CachedReader(web, content, shared.cache))
    judge = judge_of(KillableCalls(children), DeclaredAuthorities(library), settings.web.authorities)
    return ReadingActivities(reader, content, judge, notebooks).read_source


def slots_of(settings: Settings) -> dict[str, int]:
    """How many activities a pool runs at once; the operator's values come first.

    A call to a model only waits; without a model the roles compute, so there are two per processor.
    """
    models = DEFAULT_SLOTS["models"] if settings.model_configured else max(4, 2 * CHILDREN)
    return {**DEFAULT_SLOTS, "models": models, **settings.workers.slots}


async def _role_activities(
    settings: Settings,
    client: Client,
    content: ObstoreContentStore,
    notebooks: StoredNotebooks,
    shared: SharedState,
    limiter: Limiter,
    stack: AsyncExitStack,
) -> list[Callable[..., Any]]:
    engines: dict[EngineKind, Engine] = {EngineKind.EXTRACTIVE: ExtractiveEngine()}
    if settings.model_configured:
        engines[EngineKind.MODEL] = create_language_model(settings, limiter)
    for engine in engines.values():
        stack.push_async_callback(engine.close)
    journal, cancelled = CallJournal(shared.calls, answers), partial(is_run_cancelled, client)
    return RoleActivities(engines, content, journal, notebooks, cancelled).register()


def _remembered(check: Callable[[], Awaitable[bool]]) -> Callable[[], Awaitable[bool]]:
    """The check, which is not made again once it held: each run asks, and what a namespace has it keeps."""
    held = False

    async def remembered() -> bool:
        nonlocal held
        held = held or await check()
        return held

    return remembered


@asynccontextmanager
async def _in_background(work: Callable[[], Any]) -> AsyncIterator[None]:
    """Run work beside the block; an error of it ends the block, and is raised in its place."""
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


def create_language_model(settings: Settings, limiter: Limiter) -> LanguageModelEngine:
    """Create the engine over all endpoints of the configuration."""
    names = dict.fromkeys((DEFAULT_ENDPOINT, *settings.models.endpoints))
    endpoints = {name: _endpoint(settings, name) for name in names}
    tiers = {tier: settings.models.names_for(tier) for tier in Tier}
    return LanguageModelEngine(ModelDirectory(endpoints, tiers), PriceTable(settings.models.prices), limiter)


def model_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """The configured limits by service, under the names by which the engine asks the limiter."""
    return {
        f"model/{name}": ServiceLimits(endpoint.requests_per_minute, endpoint.tokens_per_minute)
        for name, endpoint in settings.models.endpoints.items()
        if endpoint.requests_per_minute is not None or endpoint.tokens_per_minute is not None
    }


def _endpoint(settings: Settings, name: str) -> ModelEndpoint:
    models = settings.models
    chat = _chat(settings, name, models.address_of(name))
    return ModelEndpoint(name, host_of(models.base_url_of(name)), chat, partial(models.capabilities_at, name))


def _chat(settings: Settings, name: str, address: str | None) -> Chat:
    # The SDK takes as long to import as everything else together; without a model it is not needed.
    from providers.models.anthropic_chat import DEFAULT_BASE_URL, AnthropicChat  # noqa: PLC0415

    key = settings.model_keys().get(name)
    setting = ADDRESS_VARIABLE if name == DEFAULT_ENDPOINT else f"models.endpoints.{name}.base_url"
    places = EndpointPlaces(key_variable(name), setting)
    try:
        return AnthropicChat(
            api_key=key.get_secret_value() if key else None, base_url=address or DEFAULT_BASE_URL, places=places
        )
    except NotConfigured as error:
        # Other endpoints may work; only a call to this one fails, with this reason.
        return MissingChat(str(error))
