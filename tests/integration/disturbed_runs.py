"""One run over web and model with a Redis of its own, disturbed by a test, and everything that it did."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from structlog.testing import capture_logs
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from contracts import names
from contracts.names import POOLS
from contracts.outcome import Event, EventPage, ResearchResult
from contracts.roles import ANALYZER
from tests.comparable import comparable
from tests.fakes.messages_api import Call, MessagesApi
from tests.fakes.web_world import Latencies, WebWorld
from tests.integration.runs import QUESTION, start
from workers.composition import compose
from workers.pools import PoolContents, run_pools
from workers.settings.loading import Settings
from workers.settings.models import ModelsSettings
from workers.settings.sections import WebSearchSettings, WebSettings

PASSWORD = "planted-hush-4711"
LONGEST_RUN = 60.0
MODEL_SECONDS = 0.15
REQUEST = {
    "query": QUESTION,
    "search": {"providers": ["searxng"]},
    "limits": {"max_iterations": 1},
    "gates": {"policy": "advisory"},
}
CALLS_AT_ONCE = 3
"""`max_parallel` of the preset: what the run itself does."""


@dataclass
class Ran:
    """Everything that one run did, said and logged."""

    result: ResearchResult
    calls: list[Call]
    events: list[Event]
    pages: dict[str, int]
    logged: list[Any] = field(default_factory=list)
    finished_before_the_fault: bool = False

    @property
    def report(self) -> str:
        """The report without what differs anyway."""
        return comparable(self.result.report)

    @property
    def warnings(self) -> list[str]:
        """Events of the log from warning on."""
        return [entry["event"] for entry in self.logged if entry["log_level"] not in {"debug", "info"}]

    def logged_of(self, prefix: str) -> list[str]:
        """Events of the log whose names begin so, in order."""
        return [entry["event"] for entry in self.logged if entry["event"].startswith(prefix)]

    def notes(self, text: str) -> list[str]:
        """What the run told a person with these words in it."""
        return [event.text for event in self.events if text in event.text]


def most_at_once(calls: list[Call]) -> int:
    """How many calls were in flight together."""
    return max(sum(other.started <= call.started < (other.ended or call.started) for other in calls) for call in calls)


def settings_of(home: Path, url: str, api: MessagesApi, world: WebWorld, **more: Any) -> Settings:
    """Workers of one machine, whose web, model and Redis are the test's."""
    given: dict[str, Any] = {
        "home": home,
        "redis_url": SecretStr(url),
        "models": ModelsSettings(default="fake-model", base_url=api.base_url),
        "anthropic_api_key": SecretStr("sk-none"),
        "temporal_variables": {"TEMPORAL_ADDRESS": "elsewhere"},
        "web": WebSettings(allow_hosts=world.allow_hosts),
        "web_search": WebSearchSettings(addresses={"SEARXNG_URL": world.searxng_url}),
    }
    return Settings(**(given | more))


def with_password(port: int) -> str:
    """The address with a password in it; a server without one takes any."""
    return f"redis://default:{PASSWORD}@127.0.0.1:{port}/0"


@dataclass
class Scene:
    """What can be seen of a run from outside."""

    api: MessagesApi
    world: WebWorld
    lost: int = 0
    """Answers that were paid for and journalled, and that nobody has been told of."""


Reached = Callable[[Scene], bool]
Act = Callable[[], Awaitable[None]]
Role = Callable[..., Awaitable[Any]]


def losing(contents: PoolContents, scene: Scene, *, always: bool = False) -> PoolContents:
    """Pools in which each analysis is lost after it was answered, once or always, so that it is asked for again."""

    def retold(role: Role) -> Role:
        async def lose(request: Any) -> Any:
            answer = await role(request)
            if always or activity.info().attempt == 1:
                scene.lost += 1
                raise ApplicationError("lost on its way", next_retry_delay=timedelta(seconds=0.5))
            return answer

        return renamed(lose, role) if role.__name__ == ANALYZER.activity else role

    models = [retold(role) for role in contents.activities["models"]]
    return replace(contents, activities={**contents.activities, "models": models})


def renamed(implementation: Role, role: Role) -> Role:
    """Another implementation of an activity."""
    implementation.__annotations__ = role.__annotations__
    registered: Role = activity.defn(name=role.__name__)(implementation)
    return registered


async def carry_out(
    client: Client, home: Path, port: int, reached: Reached | None = None, strike: Act | None = None
) -> Ran:
    """One run from its beginning to its end; once something is reached, the fault strikes."""
    async with MessagesApi(latency=MODEL_SECONDS) as api, WebWorld(latencies=Latencies(0.1)) as world:
        settings, scene = settings_of(home, with_password(port), api, world), Scene(api, world)
        with capture_logs() as logged:
            async with (
                compose(settings, client) as contents,
                run_pools(client, losing(contents, scene), tuple(POOLS)),
            ):
                handle = await start(client, REQUEST)
                ending = asyncio.create_task(handle.result())
                async with asyncio.timeout(LONGEST_RUN):
                    while reached is not None and not ending.done() and not reached(scene):
                        await asyncio.sleep(0.005)
                    early = ending.done()
                    if strike is not None:
                        await strike()
                    result = await ending
                events = await handle.query(names.EVENTS, 0, result_type=EventPage)
        pages = {place: count for place, count in world.served.items() if place.startswith("127.")}
        return Ran(result, api.calls, events.events, pages, list(logged), early)
