"""Everything a run needs, in one process: real activities over real stores in a temporary folder."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.assessment.source_assessment import Judgement, create_judge
from activities.journal import CallJournal
from activities.preparation import ResearchConfiguration
from activities.reading import ReadingActivities
from activities.records import RecordsActivities
from activities.reporting.drafts import RevisionActivities
from activities.reporting.live_reports import LiveReportActivities
from activities.reporting.render import ReportingActivities
from activities.roles.run_role import RoleActivities
from activities.searching import SearchingActivities
from activities.verifying.verification import VerifyingActivities
from contracts import activities
from contracts.activities import ActivitySpec
from contracts.evidence import DocumentRef, Validators
from contracts.messages import PrepareRequest, QueueTurn, ReadRequest
from contracts.names import CORPUS_SCHEME
from contracts.request import ResearchRequest
from contracts.state import ClockState, ResearchState, WorkState
from contracts.tokens import TokenSettings
from contracts.vocabulary import EngineKind, Quality, Tier
from providers.domains import ANYWHERE, Domains
from providers.errors import SharedStateUnavailable, SourceUnreadable
from providers.extractive.engine import ExtractiveEngine
from providers.interfaces import ContentArchive, Engine, ExtractedDocument, SearchProvider
from providers.isolation.pool import SubprocessPool
from providers.models.chat import ChatApi
from providers.models.endpoints import EndpointCapabilities
from providers.models.summaries import SummarizingEngine
from providers.reading.reader import CachedReader
from providers.shared.cache import Cache
from providers.shared.day_budget import DayBudget
from providers.shared.paid_calls import CallStore
from providers.shared.run_queue import QueueLimits, RunQueue
from providers.shared.stores.sqlite_store import SqliteSharedStore
from providers.storage.content import ObstoreContentStore
from providers.storage.sessions import SESSIONS, RecordSessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.storage.stored_records import Records
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.host import InProcessHost
from tests.fakes.killers import HereCalls
from tests.fakes.model_engine import engine_over

QUESTION = "How does the engine prevent transaction ID wraparound?"
"""What a run is asked where a test names nothing else."""
ACTIVITIES = [each for each in vars(activities).values() if isinstance(each, ActivitySpec)]
"""The activities that are no role."""
READ_AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
"""When every page is read: a report says it, and is the same on every day."""


class NoWeb:
    """A reader for worlds without a web."""

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, given: DocumentRef | None = None
    ) -> ExtractedDocument:
        raise SourceUnreadable("not_found", "this world has no web")


class RoutedReader:
    """Reads documents of a corpus from there, everything else from the web of a test."""

    def __init__(self, corpora: MemoryCorpus, web: CachedReader) -> None:
        self._corpora = corpora
        self._web = web

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, given: DocumentRef | None = None
    ) -> ExtractedDocument:
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url)
        return await self._web.read(url, tenant=tenant, domains=domains, given=given)

    async def read_again(
        self, url: str, known: Validators | None, *, domains: Domains = ANYWHERE
    ) -> ExtractedDocument | None:
        if url.startswith(CORPUS_SCHEME):
            return await self._corpora.read(url)
        return await self._web.read_again(url, known, domains=domains)


async def no_list_of_runs() -> list[str]:
    """A server that does not list its open runs: no run loses what it has reserved."""
    raise SharedStateUnavailable("no list")


class OpenForEver:
    """A server whose runs are all open: none loses its place in the queue."""

    async def is_open(self, research_id: str) -> bool:
        del research_id
        return True

    async def signal(self, research_id: str, turn: QueueTurn) -> bool:
        del research_id, turn
        return True

    async def list_open(self) -> list[str]:
        return []


async def all_reachable(names: Sequence[str]) -> dict[str, str]:
    """No search provider is out of reach."""
    del names
    return {}


async def judge(request: ReadRequest, document: ExtractedDocument) -> Judgement:
    """Every corpus is worth much; pages are assessed as workers do it."""
    if document.url.startswith(CORPUS_SCHEME):
        return Judgement(Quality.HIGH, "your documents")
    return await create_judge({}.get, {})(request, document)


class World:
    """Activities and their stores."""

    def __init__(
        self,
        folder: Path,
        corpus: MemoryCorpus | None = None,
        engines: Mapping[EngineKind, Engine] | None = None,
        configuration: ResearchConfiguration | None = None,
        providers: Mapping[str, SearchProvider] | None = None,
        web: CachedReader | None = None,
    ) -> None:
        self.corpus = corpus or MemoryCorpus()
        self.archive: ContentArchive | None = None
        self.content = ObstoreContentStore(folder / "content")
        self.shared = SqliteSharedStore(folder / "shared.sqlite3", durable=True)
        self.calls = CallStore(self.shared)
        self.notebooks = Notebooks(self.content)
        self.sessions = RecordSessionStore(Records(folder, SESSIONS))
        self.providers: dict[str, SearchProvider] = {"corpus": self.corpus, **(providers or {})}
        self.web = web or NoWeb()
        self.configuration = configuration or ResearchConfiguration(product_version="0.1.0")
        self.queue: RunQueue = RunQueue(self.shared, QueueLimits(at_once=1_000), OpenForEver())
        self.budget: DayBudget | None = None
        self.isolated: SubprocessPool = HereCalls()
        """Does the work on texts from outside."""
        self.engines = {EngineKind.EXTRACTIVE: ExtractiveEngine(), **(engines or {})}

    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """Every implementation, as a worker registers them."""
        journal = CallJournal(self.calls, self._charge)
        engines = dict(self.engines)
        if EngineKind.MODEL in engines:
            engines[EngineKind.MODEL] = SummarizingEngine(engines[EngineKind.MODEL], Cache(self.shared))
        roles = RoleActivities(engines, self.content, journal, self.notebooks, self.archive)
        records = RecordsActivities(
            self.configuration, self.corpus, self.content, self.sessions, self.notebooks, self.queue, self.budget
        )
        searching = SearchingActivities(self.providers, all_reachable, self.notebooks, self.content, self._charge)
        reading = ReadingActivities(
            RoutedReader(self.corpus, self.web), self.content, judge, self.notebooks, lambda: READ_AT
        )
        reporting = ReportingActivities(
            self.content, self.corpus.skipped, "0.1.0", self.isolated, self.sessions, self.notebooks
        )
        verifying = VerifyingActivities(self.content, self.sessions, self.notebooks)
        revising = RevisionActivities(self.content)
        others = (records, searching, reading, reporting, verifying, revising, LiveReportActivities(self.content))
        names = [spec.name for spec in ACTIVITIES]
        return [*roles.register(), *(getattr(each, name) for each in others for name in names if hasattr(each, name))]

    async def _charge(self, research_id: str, tenant: str, usd: float) -> None:
        if self.budget is not None:
            await self.budget.charge(research_id, tenant, usd)

    async def close(self) -> None:
        for engine in self.engines.values():
            await engine.close()
        await self.shared.close()

    def host(self) -> InProcessHost:
        return InProcessHost({each.__name__: _in_environment(each) for each in self.activities()})


def _in_environment(implementation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def run(argument: Any) -> Any:
        return await ActivityEnvironment().run(implementation, argument)

    return run


def model_world(
    folder: Path,
    base_url: str,
    corpus: MemoryCorpus | None = None,
    window: int | None = None,
    tokens: TokenSettings | None = None,
    *,
    caching: bool = False,
    api: ChatApi = ChatApi.MESSAGES,
) -> World:
    """A world whose model is spoken to with the real SDK at a loopback address.

    `window` is that of its models, at an endpoint with or without `caching`; where `tokens` name a summarizer, those are models of the simple tier.
    """
    own = None if window is None else EndpointCapabilities(window=window, reasoning_tokens=500, caching=caching)
    engine = engine_over({"default": base_url}, own={"default": own} if own else {}, api=api)
    tokens = tokens or TokenSettings()
    summarizers = [tokens.summarization_provider, *tokens.summarization_providers]
    models = {tier.value: ["test-model"] for tier in Tier} | {
        Tier.SIMPLE.value: ["test-model", *filter(None, summarizers)]
    }
    configuration = ResearchConfiguration(
        models=models,
        model_host=lambda _: "127.0.0.1",
        reasoning_tokens=lambda _: own.reasoning_tokens if own else None,
        tokens=tokens,
        product_version="0.1.0",
    )
    return World(folder, corpus, {EngineKind.MODEL: engine}, configuration)


async def begin(world: World, research_id: str = "r-unit", **fields: Any) -> ResearchState:
    """The state of a run that has done nothing yet."""
    request = ResearchRequest.model_validate({"query": QUESTION, "corpus": "manual", **fields})
    host = world.host()
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id=research_id, request_json=request.model_dump_json())
    )
    state = ResearchState(
        work=WorkState(resolved=prepared.resolved, resolved_entry=prepared.resolved_entry),
        clock=ClockState(started_at=host.now().isoformat()),
    )
    state.evidence.note_entry(prepared.resolved_entry)
    state.clock.clock_started_at = host.now().timestamp()
    state.clock.deadline_at = state.clock.clock_started_at + prepared.resolved.limits.deadline_seconds
    return state
