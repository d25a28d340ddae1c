"""What the page does with runs: start, observe, list and read them through server and stores; it remembers nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachetools import LRUCache
from pydantic import BaseModel

from client.assistants.runs import Desk, ceiling_here, offered_strategies, require_corpus, require_provable
from client.cli.context import CommandContext, RunInfo, new_id
from client.cli.options import RunOptions
from client.cli.output import CommandError
from client.cli.preflight import build_request
from client.cli.run import follow_up_options
from client.cli.thread import LoadedThread, load_thread
from client.cli.watch import RunRow, list_rows
from client.handle import ResearchHandle
from client.view.words import printable
from contracts.presets import effective_depth, highest_limits
from contracts.request import Depth
from contracts.resolved import ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import Outcome
from providers.errors import ContentCorrupt, KeyMissing, NewerSchema
from providers.storage.sessions import SAFE_ID

WEB: Final = "the web"
FIELDS: Final = ("query", "corpus", "strategy", "depth")
"""Fields of the form that are fields of the request."""
ENDED: Final = frozenset(outcome.value for outcome in Outcome)
RESOLVING_CHECKS: Final = 20  # for the tenant of a run that has just been started
RESOLVING_PAUSE_SECONDS: Final = 0.25
MAX_LISTED: Final = 2_000
REMEMBERED: Final = 4_096
"""Facts of ended runs that are held, so that a list of runs opens no session twice."""


@dataclass(frozen=True)
class Preview:
    """What a run would do and cost."""

    research_id: str
    """Its id once it is started, so that a form sent twice starts one run."""
    resolved: ResolvedResearch
    cap_usd: float | None
    """Highest cost, in US dollars, at which it ends; None without a cap."""


@dataclass(frozen=True)
class Facts:
    """Facts of a stored run that its line in the list of sessions lacks."""

    strategy: str = ""
    cost: str = ""
    tenant: str = ""


class _StoredRequest(BaseModel):
    strategy: str = ResolvedResearch.model_fields["strategy"].default
    tenant: str = ResolvedResearch.model_fields["tenant"].default


class _StoredUsage(BaseModel):
    cost_usd: float | None = 0.0


class _StoredRun(BaseModel):
    """The few fields of a stored state that a list needs; a stored one leaves out fields with default values."""

    resolved: _StoredRequest | None = None
    usage: _StoredUsage = _StoredUsage()

    def facts(self) -> Facts:
        """Return what the list shows of the run."""
        if self.resolved is None:
            return Facts()
        cost = self.usage.cost_usd
        return Facts(
            strategy=self.resolved.strategy,
            cost="unknown" if cost is None else f"{cost:.2f}",
            tenant=self.resolved.tenant,
        )


@dataclass(frozen=True)
class ListedRun:
    """A run in the list."""

    row: RunRow
    facts: Facts


class PageDesk:
    """Runs for the page, of everybody or of one user."""

    def __init__(self, desk: Desk) -> None:
        self.settings = desk.settings
        self.stores = desk.stores
        self._facts: LRUCache[tuple[str, str], Facts] = LRUCache(REMEMBERED)

    @property
    def knows_all_corpora(self) -> bool:
        """Return false where workers on other machines may have further corpora."""
        return not self.settings.uses_cluster

    def context(self) -> CommandContext:
        """Return a new context: a server that has moved since the last request is found."""
        return CommandContext(self.settings, self.stores)

    async def corpora(self) -> list[str]:
        """Return the names of the corpora that can be searched from here; those of a cluster are not known."""
        if self.settings.uses_cluster:
            return sorted((await self.stores.corpora()).names())
        return sorted(await (await self.stores.corpora()).searchable())

    def choices(self, user: str | None) -> tuple[list[str], list[str]]:
        """Return the strategies and the depths that the ceiling of a user allows."""
        deepest = ceiling_here(self.settings, user).depth
        depths = list(Depth)
        if deepest is not None:
            depths = depths[: depths.index(effective_depth(deepest)) + 1]
        return offered_strategies(self.settings, user), [depth.value for depth in depths]

    async def preview(self, form: Mapping[str, str], user: str | None) -> Preview:
        """Resolve a question without starting it. Raises `CommandError`, `ClientError`."""
        request = build_request(await self._values(form, user))
        context = self.context()
        await require_corpus(context, request.corpus)
        research_id = new_id()
        resolved = await (await context.running_client()).preview(request, research_id)
        limits = [resolved.limits, *resolved.choices.values()]
        return Preview(research_id, resolved, highest_limits(limits).max_cost_usd)

    async def start(self, form: Mapping[str, str], user: str | None) -> str:
        """Start a run under the id of its preview, once. Raises `CommandError`, `ClientError`.

        The id of a stored run starts nothing: a form that is sent again leads to its run, and no run is written over.
        """
        research_id = form.get("research_id", "") or new_id()
        if not SAFE_ID.fullmatch(research_id):
            raise CommandError("the form names no id of a run: load the page again")
        if await self.stores.sessions.load(research_id) is not None:
            return research_id
        request = build_request(await self._values(form, user))
        context = self.context()
        await require_corpus(context, request.corpus)
        await (await context.running_client()).start(request, research_id)
        return research_id

    async def _values(self, form: Mapping[str, str], user: str | None) -> dict[str, Any]:
        """Return the fields of a request; a question that follows has strategy and searches of its earlier run."""
        if user is not None:
            require_provable(self.settings, user)
        values = request_values(form, user)
        if not form.get("follow_up_of"):
            return values
        earlier = await self.find(form["follow_up_of"], user)
        inherited = follow_up_options(RunOptions(), form.get("query", ""), earlier).values()
        return inherited | values | {"follow_up_of": earlier.research_id}

    async def find(self, research_id: str, user: str | None) -> RunInfo:
        """Load a run of this user. Raises `CommandError`, also for that of another one, as if there were none."""
        context = self.context()
        run = await context.load_run(research_id) if SAFE_ID.fullmatch(research_id) else None
        if run is None or (run.state is None and run.handle is None):
            run = await context.find(research_id)
        if user is not None:
            tenant = run.resolved.tenant if run.resolved is not None else await _tenant_of(run.handle)
            if tenant != user:
                raise CommandError(f"there is no run {printable(research_id)}: see the list of runs")
        return run

    async def listed(
        self, text: str, status: str, limit: int, user: str | None, context: CommandContext | None = None
    ) -> tuple[list[ListedRun], bool]:
        """Return the newest runs whose question contains a text, with a status if one is given; true if there are more.

        Raises `CommandError`, `ClientError`.
        """
        found: list[ListedRun] = []
        wanted = limit if not status and user is None else MAX_LISTED
        page = await list_rows(context or self.context(), text.casefold(), wanted + 1)
        for row in page.rows:
            if status and row.status != status:
                continue
            facts = await self.facts(row)
            if user is not None and facts.tenant != user:
                continue
            if len(found) == limit:
                return found, True
            found.append(ListedRun(row, facts))
        return found, False

    async def thread(self, research_id: str, user: str | None, *, documents: bool = False) -> LoadedThread:
        """Return the runs of the thread of a run, the first question first. Raises `CommandError` if none is stored."""
        return await load_thread(self.context(), research_id, user, documents=documents)

    async def facts(self, row: RunRow) -> Facts:
        """Return the facts of a run; empty ones if nothing is stored of it or its record is damaged."""
        known = (row.research_id, row.when)
        if known in self._facts:
            return self._facts[known]
        try:
            text = await self.stores.sessions.load(row.research_id)
        except (ContentCorrupt, NewerSchema, KeyMissing):
            return Facts()
        facts = Facts() if text is None else _StoredRun.model_validate_json(text).facts()
        if row.status in ENDED:
            self._facts[known] = facts
        return facts


def versions_of(state: ResearchState) -> list[str]:
    """Return the hashes of the texts that a report had, oldest first; empty for one that was written once."""
    refresh = state.work.refresh
    hashes = state.evidence.revisions
    if refresh is not None and refresh.draft:
        hashes = [refresh.draft, *hashes]
    versions = list(dict.fromkeys(hashes))
    return versions if len(versions) > 1 else []


async def _tenant_of(handle: ResearchHandle | None) -> str:
    """Return the tenant of a run that is not stored yet; empty if its request is not resolved soon after its start."""
    if handle is None:
        return ""
    for _ in range(RESOLVING_CHECKS):
        resolved = (await handle.session()).work.resolved
        if resolved is not None:
            return resolved.tenant
        await asyncio.sleep(RESOLVING_PAUSE_SECONDS)
    return ""


def request_values(form: Mapping[str, str], user: str | None) -> dict[str, Any]:
    """Return the fields of a request that a form and its user make."""
    values: dict[str, Any] = {name: form[name] for name in FIELDS if form.get(name)}
    if values.get("corpus") == WEB:
        values["corpus"] = None
        values["web"] = True
    elif form.get("web"):
        values["web"] = True
    if form.get("approve"):
        values["gates"] = {"approve": "plan"}
    if user is not None:
        values["tenant"] = user
    return values
