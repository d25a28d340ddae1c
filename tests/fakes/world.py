"""Everything a run needs, in one process: real activities over real stores in a temporary folder."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from temporalio.testing import ActivityEnvironment

from activities.configuration import ResearchConfiguration
from activities.journal import CallJournal
from activities.model_call import RoleActivities
from activities.reading import ReadingActivities
from activities.records import RecordsActivities
from activities.reporting.render import ReportingActivities
from activities.searching import SearchingActivities
from contracts import activities as signatures
from contracts.roles import ROLES
from contracts.vocabulary import EngineKind, Quality, Tier
from providers.anthropic_chat import AnthropicChat
from providers.call_store import SqliteCallStore
from providers.content_store import ObstoreContentStore
from providers.engines import answers
from providers.engines.capabilities import capabilities_of
from providers.engines.extractive.engine import ExtractiveEngine
from providers.engines.language_model import LanguageModelEngine
from providers.interfaces import Engine
from providers.prices import load_prices
from providers.session_store import FileSessionStore
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.host import InProcessHost


class World:
    """Activities and their stores."""

    def __init__(
        self,
        folder: Path,
        corpus: MemoryCorpus | None = None,
        engines: Mapping[EngineKind, Engine] | None = None,
        configuration: ResearchConfiguration | None = None,
    ) -> None:
        self.corpus = corpus or MemoryCorpus()
        self.content = ObstoreContentStore(folder / "content")
        self.calls = SqliteCallStore(folder / "calls.db")
        self.sessions = FileSessionStore(folder / "sessions")
        self.configuration = configuration or ResearchConfiguration(product_version="0.1.0")
        self.engines = {EngineKind.EXTRACTIVE: ExtractiveEngine(), **(engines or {})}

    def activities(self) -> list[Callable[..., Awaitable[Any]]]:
        """Every implementation, as a worker registers them."""
        roles = RoleActivities(self.engines, self.content, CallJournal(self.calls, answers))
        records = RecordsActivities(self.configuration, self.corpus, self.content, self.sessions)
        searching = SearchingActivities({"corpus": self.corpus})
        reading = ReadingActivities(self.corpus, self.content, lambda _: (Quality.HIGH, "chosen by the operator"))
        reporting = ReportingActivities(self.content, self.corpus.skipped, "0.1.0")
        return [
            *roles.register(),
            records.prepare_research,
            records.save_session,
            records.read_document,
            searching.search,
            reading.read_source,
            reporting.render_report,
        ]

    async def close(self) -> None:
        """Let go of connections."""
        for engine in self.engines.values():
            await engine.close()
        await self.calls.close()

    def host(self) -> InProcessHost:
        """A host that runs them without a server."""
        names = [role.activity for role in ROLES]
        names += [signature.__name__ for signature in signatures.SIGNATURES]
        by_name = {implementation.__name__: implementation for implementation in self.activities()}
        return InProcessHost({name: _in_environment(by_name[name]) for name in names})


def _in_environment(implementation: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def run(argument: Any) -> Any:
        return await ActivityEnvironment().run(implementation, argument)

    return run


def model_world(folder: Path, base_url: str, corpus: MemoryCorpus | None = None) -> World:
    """A world whose model is spoken to with the real SDK at a loopback address."""
    engine = LanguageModelEngine(
        AnthropicChat(api_key="test", base_url=base_url), capabilities_of(base_url), load_prices()
    )
    configuration = ResearchConfiguration(
        models={tier.value: "test-model" for tier in Tier}, model_host="127.0.0.1", product_version="0.1.0"
    )
    return World(folder, corpus, {EngineKind.MODEL: engine}, configuration)
