"""The composition root: builds the activities of each pool from the configuration, and closes them in reverse."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from pydantic import TypeAdapter
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.assessment.source_assessment import create_judge
from activities.journal import CallJournal
from activities.notifying import NotifyingActivities
from activities.reading import ReadingActivities
from activities.records import RecordsActivities
from activities.reporting.drafts import RevisionActivities
from activities.reporting.live_reports import LiveReportActivities
from activities.reporting.render import LOAD, ReportingActivities
from activities.roles.prompt_files import TEMPLATES, prompt_of
from activities.roles.run_role import RoleActivities
from activities.searching import SearchingActivities
from activities.verifying.verification import VerifyingActivities
from contracts.messages import QueueTurn
from contracts.names import POOLS, SERVER_PREFIX, TURN
from contracts.roles import RoleSpec
from contracts.strategies import declared_roles, packages_of_strategies
from contracts.vocabulary import EngineKind, Tier
from providers.errors import CorpusUnknown, NotConfigured, ProviderError, Unavailable
from providers.extractive.engine import ExtractiveEngine
from providers.interfaces import ContentStore, Engine, SearchProvider, SharedStore
from providers.isolation.pool import SubprocessPool
from providers.models.answers import schema_text
from providers.models.chat import Chat, ChatApi, ChatOptions, SettingNames, UndeterminedChat
from providers.models.endpoints import DEFAULT_ENDPOINT, ModelDirectory, ModelEndpoint, PriceTable
from providers.models.language_model import LanguageModelEngine
from providers.models.summaries import SummarizingEngine
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.firecrawl import SERVICE as FIRECRAWL
from providers.reading.firecrawl import DailyPages, Firecrawl
from providers.reading.reader import CachedReader, Visit, WebReader
from providers.reading.robots import Robots
from providers.search.anthropic_search import AnthropicSearch
from providers.search.availability import probe, usable
from providers.search.corpus.library import CorpusLibrary
from providers.search.declarations import BY_MODEL, declared_names, search_declaration
from providers.search.document_servers import DocumentServer
from providers.search.shared_search import SharedSearch
from providers.search.web_api import web_client
from providers.shared.day_budget import DayBudget
from providers.shared.limits import Limiter, Politeness, ServiceLimits
from providers.shared.run_queue import RunQueue
from providers.storage.stored_records import has_sole_sessions
from providers.webhook import Webhook, read_key
from workers.dev_server import watch_server
from workers.package_roles import check_roles
from workers.pools import DEFAULT_SLOTS, PoolContents
from workers.resolution_inputs import code_version, configuration_of, product_version, search_choices, search_model
from workers.retention import Retention, open_runs, sweep_periodically
from workers.settings.loading import Settings
from workers.settings.places import APPLICATION
from workers.shared_state import SharedState, open_shared_state, queue_limits
from workers.stores import CHILD_PROCESSES, FileStores, open_corpora, open_stores
from workers.temporal import CALL_TIMEOUT, has_search_attributes
from workers.tracing import open_tracing
from workers.versions import usable_build_id
from workflows.registry import WORKFLOWS

Activity = Callable[..., Any]

NEEDS_INDEXES = frozenset({"search", "reading", "records"})
"""Pools that read the indexes; `records` resolves requests against them."""

NOTHING: Final = TypeAdapter[None](None)
PREPARED_AFTER_SECONDS: Final = 1.0
"""From the start of a worker until roles are prepared: a run that waits for a worker comes first."""
PREPARING_PAUSE_SECONDS: Final = 0.01
"""Between two steps of it, for calls of runs."""

logger = structlog.get_logger(__name__)


@asynccontextmanager
async def compose(
    settings: Settings,
    client: Client,
    pools: Sequence[str] = tuple(POOLS),
    *,
    refresh: bool = False,
    takes_over: bool = False,
) -> AsyncIterator[PoolContents]:
    """Build the contents of the pools, and close them after the block; without a cluster, watch the dev server.

    With `refresh`, first update the indexes of all corpora, for pools that read them. With `takes_over`, new runs come
    to the version of this process if the current version has no workers. Raises `NotConfigured`, `StorageFull` or
    OSError if a store cannot be opened, `RPCError`, and `ServerError` from the block.
    """
    async with AsyncExitStack() as stack:
        if not settings.uses_cluster:
            await stack.enter_async_context(_in_background(partial(watch_server, settings.home)))
        activities: dict[str, list[Activity]] = {}
        if set(pools) - {"workflows"}:
            stores = await _open_stores(settings, client, stack)
            if refresh and NEEDS_INDEXES & set(pools):
                await refresh_corpora(stores.library)
            by_pool = {"models": _models, "search": _search, "reading": _reading, "records": _records}
            activities = {pool: await build(stores) for pool, build in by_pool.items() if pool in pools}
        # Model calls only wait; without a model, roles compute, so there are two per processor.
        if settings.model_configured:
            models = DEFAULT_SLOTS["models"]
        else:
            models = max(4, 2 * CHILD_PROCESSES)
        slots = {**DEFAULT_SLOTS, "models": models, **settings.workers.slots}
        build_id = ""
        if "workflows" in pools:
            build_id = await usable_build_id(client, settings, takes_over=takes_over)
        plugins = await stack.enter_async_context(open_tracing(settings))
        yield PoolContents(WORKFLOWS, activities, slots, settings.mark(), plugins, build_id)


async def refresh_corpora(library: CorpusLibrary) -> None:
    """Index all corpora in turn, reading only changed files. Other processes wait for the same index.

    A corpus that cannot be indexed (its folder is gone) is logged, and runs that name it fail.
    """
    for name in library.names():
        started = time.monotonic()
        logger.info("corpus.refreshing", corpus=name)
        try:
            snapshot = await library.refresh(name)
        except ProviderError as error:
            logger.warning("corpus.not_refreshed", corpus=name, reason=str(error))
            continue
        seconds = round(time.monotonic() - started, 2)
        logger.info("corpus.ready", corpus=name, documents=snapshot.files, skipped=snapshot.skipped, seconds=seconds)


@dataclass(frozen=True)
class _Stores:
    """The stores of one process; the stack closes everything that is opened on top of them."""

    settings: Settings
    client: Client
    stack: AsyncExitStack
    files: FileStores
    children: SubprocessPool
    library: CorpusLibrary
    shared: SharedState
    limiter: Limiter
    budget: DayBudget | None
    """None: no day's money is limited."""
    servers: dict[str, DocumentServer]
    """By the name of the provider."""


async def _open_stores(settings: Settings, client: Client, stack: AsyncExitStack) -> _Stores:
    children = await stack.enter_async_context(SubprocessPool(CHILD_PROCESSES))
    library = open_corpora(settings, children)
    shared = await stack.enter_async_context(open_shared_state(settings))
    limits = search_limits(settings)
    for name, endpoint in settings.models.endpoints.items():
        limits[f"model/{name}"] = ServiceLimits(endpoint.requests_per_minute, endpoint.tokens_per_minute)
    limiter = Limiter(shared.store, limits)
    files = open_stores(settings)
    servers = await stack.enter_async_context(open_servers(settings, children, files.content, limiter))
    budget = None
    if settings.budgets.is_set:
        budget = DayBudget(shared.store, settings.budgets, client.namespace, partial(open_runs, client))
    return _Stores(settings, client, stack, files, children, library, shared, limiter, budget, servers)


def search_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """Return the limits of search services by name: those that the operator sets, else those that the services state.

    A service that states one refuses what comes too early, so that its searches are evenly spaced.
    """
    values = settings.search_values()
    limits = {}
    for declaration in map(search_declaration, declared_names()):
        stated = declaration.allowed_searches(values)
        rate = settings.search.requests_per_minute.get(declaration.name, stated)
        if rate is not None:
            limits[f"search/{declaration.name}"] = ServiceLimits(
                rate, is_spaced=stated is not None, one_at_a_time=declaration.one_at_a_time
            )
    others = settings.search.requests_per_minute.items()
    return {f"search/{name}": ServiceLimits(rate) for name, rate in others} | limits


async def _models(stores: _Stores) -> list[Activity]:
    for name in packages_of_strategies():
        check_roles(name)
    engines: dict[EngineKind, Engine] = {EngineKind.EXTRACTIVE: ExtractiveEngine()}
    if stores.settings.model_configured:
        model = create_language_model(stores.settings, stores.limiter)
        engines[EngineKind.MODEL] = SummarizingEngine(model, stores.shared.cache)
        await stores.stack.enter_async_context(_in_background(prepare_roles))
    for engine in engines.values():
        stores.stack.push_async_callback(engine.close)
    charge = None if stores.budget is None else stores.budget.charge
    journal = CallJournal(stores.shared.calls, charge)
    return RoleActivities(
        engines, stores.files.content, journal, stores.files.notebooks, stores.files.archive
    ).register()


async def prepare_roles() -> None:
    """Load what the first call of each role of the product needs, step by step, in a thread.

    Else a run waits for it, 10 to 20 ms before the first call of each role in a process, and as much for the parts that
    prompts share.
    """
    await asyncio.sleep(PREPARED_AFTER_SECONDS)
    steps: list[Callable[[], object]] = [partial(TEMPLATES.get_template, name) for name in TEMPLATES.list_templates()]
    # A prompt of a package may be faulty, which ends its calls and no worker.
    steps += [partial(_prepare_role, role) for role in declared_roles() if role.module is None]
    for step in steps:
        await asyncio.to_thread(step)
        await asyncio.sleep(PREPARING_PAUSE_SECONDS)


def _prepare_role(role: RoleSpec[Any, Any]) -> None:
    prompt_of(role)
    role.input.model_rebuild()
    role.result.model_rebuild()
    if not role.plain_text:
        schema_text(role.answer)


async def prepare_rendering(children: SubprocessPool, waits_for_models: asyncio.Event) -> None:
    """Have a child load what a report needs while the first run waits for its model, in place of the run's end."""
    await waits_for_models.wait()
    with suppress(ProviderError, OSError):  # rendering tries again, and says what is wrong
        await children.call(LOAD, returns=NOTHING)


async def _search(stores: _Stores) -> list[Activity]:
    settings = stores.settings
    library = stores.library
    cache = stores.shared.cache
    web = stores.servers | await stores.stack.enter_async_context(open_search_providers(settings))
    prices = {name: usd / 1_000 for name, usd in settings.search.usd_per_1000.items()}
    providers: dict[str, SearchProvider] = {library.name: library}
    for name, provider in web.items():
        providers[name] = SharedSearch(provider, f"search/{name}", stores.limiter, cache, prices.get(name))
    searching = SearchingActivities(
        providers,
        partial(find_unreachable, web),
        stores.files.notebooks,
        stores.files.content,
        None if stores.budget is None else stores.budget.charge,
    )
    return [searching.check_providers, searching.search]


async def _reading(stores: _Stores) -> list[Activity]:
    politeness = Politeness(stores.shared.store)
    browser = await stores.stack.enter_async_context(
        open_firecrawl(stores.settings, stores.shared.store, stores.limiter)
    )
    web = open_web_reader(stores.settings, stores.children, visit=politeness.visit, browser=browser)
    pages = await stores.stack.enter_async_context(web)
    servers = {name.removeprefix(SERVER_PREFIX): server for name, server in stores.servers.items()}
    reader = CachedReader(stores.library, pages, stores.files.content, stores.shared.cache, servers)

    def authority_of(corpus: str) -> str | None:
        try:  # on each use, as a corpus may be registered while workers run
            return stores.library.authority(corpus)
        except CorpusUnknown:
            return None

    labels = {name: server.authority for name, server in stores.settings.search.mcp.items()}
    judge = create_judge(authority_of, stores.settings.web.authorities, labels)
    reading = ReadingActivities(reader, stores.files.content, judge, stores.files.notebooks)
    receiver = await stores.stack.enter_async_context(open_webhook(stores.settings))
    notifying = NotifyingActivities(receiver, stores.files.content, stores.settings.notify.page_url or "")
    return [reading.read_source, notifying.send_notice]


async def _records(stores: _Stores) -> list[Activity]:
    settings = stores.settings
    content = stores.files.content
    notebooks = stores.files.notebooks
    sessions = stores.files.sessions
    sole = has_sole_sessions(settings.content_url)
    retention = Retention(sessions, content, stores.shared.calls, stores.client, stores.files.archive, sole=sole)
    sweeping = partial(sweep_periodically, retention, settings.retention_days, stores.shared.store)
    await stores.stack.enter_async_context(_in_background(sweeping))
    queue = RunQueue(stores.shared.store, queue_limits(settings), OpenRuns(stores.client))
    await stores.stack.enter_async_context(_in_background(queue.serve))
    configuration = configuration_of(settings, partial(has_search_attributes, stores.client))
    skipped = stores.library.skipped
    records = RecordsActivities(configuration, stores.library, content, sessions, notebooks, queue, stores.budget)
    preparing = partial(prepare_rendering, stores.children, records.waits_for_models)
    await stores.stack.enter_async_context(_in_background(preparing))
    reporting = ReportingActivities(content, skipped, code_version(), stores.children, sessions, notebooks)
    verifying = VerifyingActivities(content, sessions, notebooks)
    live_reports = LiveReportActivities(content)
    return [
        records.prepare_research,
        records.preview_research,
        records.describe_research,
        records.prepare_agent,
        records.save_session,
        records.read_document,
        records.take_turn,
        reporting.render_report,
        verifying.extract_claims,
        verifying.finalize_verification,
        verifying.apply_corrections,
        RevisionActivities(content).join_report,
        live_reports.apply_report_updates,
        live_reports.change_outline,
        live_reports.withdraw_evidence,
        live_reports.split_draft,
    ]


class OpenRuns:
    """The open runs of a server, for the queue."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def is_open(self, research_id: str) -> bool:
        """Return whether the run is open, also a paused one. Raises `Unavailable`."""
        execution = WorkflowExecution(workflow_id=research_id)
        request = DescribeWorkflowExecutionRequest(namespace=self._client.namespace, execution=execution)
        try:
            described = await self._client.workflow_service.describe_workflow_execution(request, timeout=CALL_TIMEOUT)
        except RPCError as error:
            _check_gone(error)
            return False
        return not described.workflow_execution_info.HasField("close_time")

    async def signal(self, research_id: str, turn: QueueTurn) -> bool:
        """Signal a run its place; return false if there is no such open run. Raises `Unavailable`."""
        try:
            await self._client.get_workflow_handle(research_id).signal(TURN, turn, rpc_timeout=CALL_TIMEOUT)
        except RPCError as error:
            _check_gone(error)
            return False
        return True

    async def list_open(self) -> Collection[str]:
        """List the ids of all open runs. Raises `UsesUnknown`."""
        return await open_runs(self._client)


def _check_gone(error: RPCError) -> None:
    """Raise `Unavailable` unless the server answered that there is no such open run."""
    if error.status is not RPCStatusCode.NOT_FOUND:
        raise Unavailable(f"the server does not answer about a run ({error.status.name.lower()})") from None


@asynccontextmanager
async def open_search_providers(
    settings: Settings, names: Sequence[str] | None = None
) -> AsyncIterator[dict[str, SearchProvider]]:
    """Open all usable services by name, or only `names`, and close them after the block; servers have `open_servers`.

    The provider `anthropic` is included if a configured model searches the web. Raises `NotConfigured` for an
    unknown provider, or one that lacks a key or an address.
    """
    model = search_model(settings)
    choices = {choice.name: choice for choice in search_choices(settings)}
    services = [name for name in usable(list(choices.values())) if not name.startswith(SERVER_PREFIX)]
    ready = [name for name in services if name != BY_MODEL]
    if model:
        ready.append(BY_MODEL)
    for name in names or ():
        if name not in choices:
            raise NotConfigured(f"no search provider is called {name}; there are: {', '.join(choices)}")
        if name not in ready:
            raise NotConfigured(f"the provider {name} cannot be used: {choices[name].reason}")
    async with web_client(user_agent(settings.web.contact)) as client:
        opened: dict[str, SearchProvider] = {}
        for name in ready if names is None else names:
            declaration = search_declaration(name)
            if name == BY_MODEL and model is not None:
                opened[name] = AnthropicSearch(client, declaration, model, PriceTable(settings.models.prices))
            else:
                opened[name] = declaration.open(client, settings.search_values())
        yield opened


@asynccontextmanager
async def open_servers(
    settings: Settings, pool: SubprocessPool, content: ContentStore, limiter: Limiter | None = None
) -> AsyncIterator[dict[str, DocumentServer]]:
    """Prepare the usable servers of documents by the name of their provider, and end them after the block.

    None is started before it is used.
    """
    servers: dict[str, DocumentServer] = {}
    async with AsyncExitStack() as stack:
        for definition in settings.document_servers():
            if definition.problem() is None:
                permit = partial(limiter.permit, f"search/{definition.name}") if limiter else nullcontext
                server = DocumentServer(
                    definition, pool, content, user_agent=user_agent(settings.web.contact), permit=permit
                )
                stack.push_async_callback(server.close)
                servers[definition.name] = server
        yield servers


async def find_unreachable(providers: Mapping[str, SearchProvider], names: Sequence[str]) -> dict[str, str]:
    """Return the named providers that cannot be reached, each with the reason."""
    reasons = await asyncio.gather(*(probe(providers[name]) for name in names))
    return {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}


@asynccontextmanager
async def open_firecrawl(settings: Settings, store: SharedStore, limiter: Limiter) -> AsyncIterator[Firecrawl | None]:
    """Open connections to the service that opens pages in a browser; None where none is configured."""
    firecrawl = settings.web.firecrawl
    if firecrawl is None:
        yield None
        return
    key = settings.firecrawl_key.get_secret_value() if settings.firecrawl_key else None
    async with web_client(user_agent(settings.web.contact)) as client:
        yield Firecrawl(
            client=client,
            address=firecrawl.url.rstrip("/"),
            key=key,
            seconds=firecrawl.seconds,
            permit=partial(limiter.permit, FIRECRAWL),
            pages=DailyPages(store, firecrawl.pages_per_day),
        )


@asynccontextmanager
async def open_web_reader(
    settings: Settings, pool: SubprocessPool, *, visit: Visit | None = None, browser: Firecrawl | None = None
) -> AsyncIterator[WebReader]:
    """Open a reader for the block; every request carries the configured contact."""
    egress = Egress(user_agent(settings.web.contact), allow_hosts=hosts_and_ports(settings.web.allow_hosts))
    try:
        yield WebReader(egress, pool, Robots(egress, APPLICATION), visit=visit, browser=browser)
    finally:
        await egress.close()


@asynccontextmanager
async def open_webhook(settings: Settings) -> AsyncIterator[Webhook | None]:
    """Open the way to the operator's address for notices for the block; None without one. Raises `NotConfigured`."""
    notify = settings.notify
    if notify.url is None:
        yield None
        return
    key = None
    if settings.notify_key is not None:
        key = read_key(settings.notify_key.get_secret_value(), "RESEARCH_NOTIFY_KEY")
    egress = Egress(user_agent(settings.web.contact), allow_hosts=hosts_and_ports(notify.allow_hosts))
    try:
        yield Webhook(egress, notify.url, key)
    finally:
        await egress.close()


def user_agent(contact: str | None = None) -> str:
    """Return the user agent: the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{product_version()} ({contact or 'self-hosted research'})"


@asynccontextmanager
async def _in_background(work: Callable[[], Any]) -> AsyncIterator[None]:
    """Run work during the block; its error ends the block and is raised instead."""
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
    """Create the engine for all configured endpoints."""
    names = dict.fromkeys((DEFAULT_ENDPOINT, *settings.models.endpoints))
    endpoints = {name: open_endpoint(settings, name) for name in names}
    tiers = {tier: settings.models.names_for(tier) for tier in Tier}
    return LanguageModelEngine(ModelDirectory(endpoints, tiers), PriceTable(settings.models.prices), limiter)


def open_endpoint(settings: Settings, name: str) -> ModelEndpoint:
    """Open one endpoint of the configuration; its connections are the caller's to close."""
    models = settings.models
    key = settings.model_keys().get(name)
    secret = key.get_secret_value() if key else None
    base_url = models.base_url_of(name)
    if name == DEFAULT_ENDPOINT:
        address = settings.address_variable
    else:
        address = ".".join(models.address_path(name))
    own = models.capabilities_at(name, "")
    options: ChatOptions = {
        "api_key": secret,
        "base_url": base_url,
        "names": SettingNames(settings.key_variable(name), address, f"models.endpoints.{name}.silence_seconds"),
        "silence_seconds": own.silence_seconds,
    }
    chat: Chat | None = None
    remedy = ""
    try:
        chat = _open_chat(options, own.api)
    except NotConfigured as error:
        remedy = str(error)  # only a call to this endpoint fails, with this reason
    return ModelEndpoint(name, chat, partial(models.capabilities_at, name), remedy, settings.model_server(name))


def _open_chat(options: ChatOptions, api: ChatApi | None) -> Chat:
    """Open a client of the named protocol, or one that finds out which is spoken. Raises `NotConfigured`."""
    # Importing an SDK takes as long as all other imports together; each is only needed where its protocol is spoken.
    if api is ChatApi.CHAT:
        return _open_completions(options)
    from providers.models.anthropic_chat import AnthropicChat  # noqa: PLC0415

    messages = AnthropicChat(**options)
    if api is ChatApi.MESSAGES:
        return messages
    return UndeterminedChat(messages, partial(_open_completions, options), options["names"].address)


def _open_completions(options: ChatOptions) -> Chat:
    from providers.models.openai_chat import OpenAIChat  # noqa: PLC0415

    return OpenAIChat(**options)
