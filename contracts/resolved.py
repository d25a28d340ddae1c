"""A request resolved against the workers' configuration: limits, engine, providers, gates."""

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field

from contracts.base import Contract, StrictContract
from contracts.names import OWN_SCHEMES, SERVER_PREFIX
from contracts.request import (
    SAME_LANGUAGE,
    Checks,
    Depth,
    FollowUp,
    Gates,
    SearchPolicy,
    SharedSettings,
    SourceType,
    Turn,
    Verify,
)
from contracts.sentences import Message, Text, joined
from contracts.tokens import TokenSettings
from contracts.vocabulary import EngineKind, JudgeMode, Severity

UNMANAGED_CHARACTERS: Final = 1_000
"""Characters per source in an analysis without token management."""
VECTOR_TABLE: Final = "l2_supercat_256"
"""Table of 32,000 tokens with 256 numbers each, by which passages are ranked by closeness of meaning."""
NOTHING_LEAVES: Final = Message("nothing_leaves")


def where_text_goes(
    model_host: str | None, search_hosts: Iterable[str], *, pages: bool, browser_host: str | None = None
) -> str:
    """Return a line like `passages go to HOST, HOST; searches go to HOST; pages are read from the web`."""
    models = ", ".join(_name(host) for host in (model_host or "").split(", ") if host)
    searched = ", ".join(dict.fromkeys(_name(host) for host in search_hosts))
    parts = []
    if models:
        parts.append(Message("passages_go", host=models))
    if searched:
        parts.append(Message("searches_go", host=searched))
    if pages:
        parts.append(Message("pages_read"))
    if pages and browser_host:
        parts.append(Message("browser_asked", host=_name(browser_host)))
    return joined(parts) or NOTHING_LEAVES


def _name(host: str) -> str:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        is_here = ip_address(name).is_loopback
    except ValueError:
        is_here = name == "localhost"
    if is_here:
        return f"{host} (this machine)"
    return host


class EffectiveLimits(Contract):
    """Limits of a request with all presets filled in; 0: not supported by its strategy.

    `contracts.request.Limits` documents the shared fields.
    """

    max_iterations: int
    max_sub_queries: int
    max_sources: int
    max_sources_per_query: int
    max_source_characters: int | None = None
    analysis_tokens: int = 24_000
    reading_tokens: int = 80_000
    max_new_sources: int
    """Number of sources that one iteration may add."""
    max_parallel: int = 6
    max_parallel_reads: int = 20
    deadline_seconds: float
    reserve_seconds: float
    """Part of the deadline reserved for writing."""
    max_model_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = 2.0
    max_searches: int | None = None
    max_wait_seconds: float = 259_200.0
    severity_floor: Severity = Severity.MODERATE
    min_steps: int = 0
    """Steps to finish before a reflection may end the research."""
    max_steps: int = 0
    max_searches_per_step: int = 0
    max_reads_per_step: int = 0
    agent_seconds: float = 0
    agent_wait_seconds: float = 0
    max_update_characters: int = 0
    max_nodes: int = 0
    max_leaves: int = 0
    max_corrections: int = 0
    max_levels: int = 0


class Hook(Contract):
    """A named hook of the operator's configuration: an activity on a task queue."""

    name: str
    activity: str
    task_queue: str


class CorpusFolder(Contract):
    """A folder of a corpus, with the number of documents in and below it."""

    path: str
    files: int


class TitleSeries(Contract):
    """Documents whose titles differ in their numbers alone, such as those of the releases of a product."""

    last: str
    """The title with the highest version or date."""
    count: int


class CorpusOverview(Contract):
    """The content of a corpus, for a role that plans a search of it."""

    folders: list[CorpusFolder] = []
    """The largest folders, largest first; none if all documents are in one."""
    titles: list[str] = []
    """Titles that stand for the documents."""
    closest: list[str] = []
    """Titles of the documents that fit the question of a run best, best first, each with its path; none before a run
    asks."""
    languages: list[str] = []
    """ISO 639 codes, most frequent first."""
    oldest: str = ""
    """Dates of the oldest and the newest document with a date, ISO 8601; empty if none has one."""
    newest: str = ""
    series: list[TitleSeries] = []
    """The longest ones, which tell up to which version or date the documents go."""


class CorpusSnapshot(Contract):
    """The corpus that a run searches, as indexed."""

    name: str
    title: str = ""
    digest: str = ""
    files: int = 0
    size_bytes: int = 0
    """Size of these files together; 0 if unknown."""
    skipped: int = 0
    indexed_at: str = ""
    authority: str = "high"
    overview: CorpusOverview = CorpusOverview()


MAX_TURNS: Final = 5
"""Earlier questions that a planner is shown, the latest ones."""
MAX_CLOSEST_TITLES: Final = 28
"""Documents that fit the question, as named to roles that choose searches."""
MAX_SHOWN_TITLES: Final = 40
"""Titles of both kinds in one prompt."""


NO_DOCUMENT: Final = "no_document"
"""Kind of pictures, programs and settings files, which are never listed as skipped."""


class SkippedFile(Contract):
    """A file of a corpus that could not be used."""

    path: str
    kind: str = ""
    reason: Text = ""


class ProviderChoice(Contract):
    """A search provider, and why it is used or not."""

    name: str
    available: bool
    reason: Text = ""
    host: str | None = None
    """Destination of its queries, `host` or `host:port`; None for a corpus."""
    source_types: list[SourceType] = [SourceType.WEB]


def reads_pages(providers: Iterable[ProviderChoice], named: Iterable[str], *, follows: bool) -> bool:
    """Return whether a run may read pages of the web: found ones, `named` addresses, and those of a run it `follows`.

    A run that searches documents of the operator alone reads no page that was found.
    """
    searched = [choice.name for choice in providers if choice.available and choice.host is not None]
    if any(not name.startswith(SERVER_PREFIX) for name in searched):
        return True
    return bool(searched) and (follows or any(not url.startswith(OWN_SCHEMES) for url in named))


class EffectiveSearch(Contract):
    """Search settings of a run."""

    policy: SearchPolicy = SearchPolicy.FAN_OUT
    max_results_per_query: int = 10
    source_types: list[SourceType] = [SourceType.WEB]
    domains_allow: list[str] = []
    domains_deny: list[str] = []


Dollars = Annotated[float, Field(ge=0, le=1_000_000)]


class ModelPrice(StrictContract):
    """Price of a model, in US dollars per million tokens."""

    input: Dollars
    output: Dollars


class Estimate(Contract):
    """Likely usage of a run, and its limits; a cost of None is unknown, never 0."""

    likely_calls: float = 0.0
    likely_tokens: float = 0.0
    likely_searches: float = 0.0
    likely_usd: float | None = None
    """Likely cost of models and searches together."""
    likely_minutes: float = 0.0
    least_calls: float = 0.0
    """Calls of a run that leaves no gap."""
    least_usd: float = 0.0
    """Cost of a run that leaves no gap, as far as prices are known."""
    source: str = ""
    """A clause that says what the likely figures are built from: real runs, and of which strategy and depth."""
    unpriced: list[str] = []
    """Models and search providers without a known price."""
    cap_usd: float | None = None
    cap_calls: int | None = None
    cap_tokens: int | None = None
    cap_minutes: float = 0.0

    def words(self) -> str:
        """Return the estimate and the limits that end the run in one line."""
        calls = f"{self.likely_calls:,.0f} model calls, {rounded(self.likely_tokens)} tokens, "
        amounts = f"{calls if self.likely_calls else ''}{self.likely_searches:,.0f} searches"
        minutes = f", {self.likely_minutes:.0f} min" if self.likely_minutes >= 1 else ", less than a minute"
        if self.likely_usd is None:
            cost = f"cost unknown (no price for {', '.join(self.unpriced)}: set [models.prices.NAME])"
        else:
            cost = f"{self.likely_usd:.2f} USD"
        source = f", {self.source}" if self.source and self.likely_calls else ""
        return f"likely about {amounts}, {cost}{minutes if self.likely_calls else ''}{source}; {self._limits()}"

    def _limits(self) -> str:
        """Return the limits that end the run, and what has none."""
        known = " as far as prices are known" if self.unpriced else ""
        caps = {
            "cost": None if self.cap_usd is None else f"{self.cap_usd:.2f} USD{known}",
            "calls": None if self.cap_calls is None else f"{self.cap_calls:,} calls",
            "tokens": None if self.cap_tokens is None else f"{self.cap_tokens:,} tokens",
            "time": f"{self.cap_minutes:.0f} min" if self.cap_minutes else None,
        }
        stops = ", ".join(text for text in caps.values() if text)
        free = " and ".join(name for name in ("cost", "calls", "tokens") if caps[name] is None)
        return "; ".join(filter(None, (stops and f"the run stops at {stops}", free and f"no limit of {free}")))


def rounded(amount: float) -> str:
    """Format an amount with two digits that count: `140,000`."""
    digits = max(0, len(f"{amount:.0f}") - 2)
    return f"{round(amount, -digits):,.0f}"


class ResolvedResearch(SharedSettings):
    """Request plus worker configuration; workflow code reads no other configuration."""

    model_config = ConfigDict(extra="ignore")

    research_id: str
    delegated: bool = False
    """True for an agent: its query is a task written by another role, not by a person."""
    requested: dict[str, Any] = {}
    """Explicit settings of the request, as JSON; a resumed run is resolved again from them."""
    language: str = "en"
    depth: Depth = Depth.MEDIUM
    choices: dict[str, EffectiveLimits] = {}
    """Limits by depth or mode that the run may choose; empty if the request has chosen."""
    engine: EngineKind
    models: dict[str, str] = {}
    """Model name by tier; empty without a model."""
    model_host: str | None = None
    model_prices: dict[str, ModelPrice] = {}
    """Price by tier; a tier without an entry has no known price."""
    reasoning_tokens: int | None = None
    """Most hidden reasoning tokens on top of a role's cap; None: the default in `contracts.call_sizes`."""
    reasoning_tiers: list[str] = []
    """Tiers whose models reason before they answer."""
    providers: list[ProviderChoice] = []
    """Providers in order of use; only available ones are used."""
    search: EffectiveSearch = EffectiveSearch()
    corpus: CorpusSnapshot | None = None
    protected_sources: list[str] = []
    """URLs that are read first and never dropped, in the form that hits have."""
    web: bool = False
    limits: EffectiveLimits
    ceiling: str = ""
    """What the operator allows requests of its tenant at most, in one line; empty: there is no ceiling."""
    cuts: list[Text] = []
    """What the ceiling or the day's money made smaller than the request or its preset has it."""
    gates: Gates
    approval_waived: bool = False
    """True if the request waives the plan approval that its strategy requires."""
    hook: Hook | None = None
    verify: Verify = Verify.LIGHT
    """`light` uses rules only, no model."""
    checks: Checks = Checks(correct=False, review=JudgeMode.OFF)
    follow_up: FollowUp | None = None
    """The earlier run whose evidence is offered first; None if this is no follow-up."""
    browser_host: str | None = None
    """Host of the service that opens pages which need a browser; None: there is none."""
    search_attributes: bool = False
    notices: list[str] | None = None
    """Texts of the run in notices to the operator, when it ends or waits for a person; None: there are no notices."""
    semantic: bool = False
    """True: rules rank passages by the words of the question and by closeness of meaning."""
    tokens: TokenSettings = TokenSettings()
    canary: str = ""
    """Private marker of the run that no outgoing text may contain (`contracts.canary`)."""
    configuration_digest: str = ""
    product_version: str = ""
    egress: Text = NOTHING_LEAVES
    estimate: Estimate | None = None
    """Expected usage, as estimated by the workers; None for a run without paid calls."""
    advice: list[str] = []
    """Settings that would improve the run, one line each."""

    @property
    def ceiling_lines(self) -> list[str]:
        """Return the operator's ceiling, and what it made smaller, one line each; none without a ceiling."""
        if self.ceiling:
            return [f"ceiling: {self.ceiling}", *self.cuts]
        return [*self.cuts]

    @property
    def one_collection(self) -> bool:
        """Return true if one collection alone is searched: its documents speak with one voice."""
        return self.corpus is not None and not self.web

    @property
    def source_characters(self) -> int | None:
        """Return the most characters of each source that a model may be shown; None: as its call has room."""
        if self.tokens.token_management_enabled:
            return self.limits.max_source_characters
        return UNMANAGED_CHARACTERS

    @property
    def report_language(self) -> str | None:
        """Return the requested language of the report; None: that of the question."""
        if self.output.language == SAME_LANGUAGE:
            return None
        return self.output.language

    @property
    def earlier_turns(self) -> list[Turn]:
        """Return earlier questions and answers for a planner, from the request and from the followed run."""
        if self.follow_up is None:
            return self.context
        latest = Turn(question=self.follow_up.query, answer=self.follow_up.summary)
        return [*self.context, *self.follow_up.turns, latest][-MAX_TURNS:]

    @property
    def private_providers(self) -> list[str]:
        """Return the servers of documents to which a run was confined; empty if it searched the web, too."""
        names = [choice.name for choice in self.providers if choice.available and choice.host is not None]
        if not all(name.startswith(SERVER_PREFIX) for name in names):
            return []
        return names

    def without_providers(self, unavailable: Mapping[str, str]) -> "ResolvedResearch":
        """Mark providers as unavailable (name → reason), and update the egress description."""
        providers = [
            choice.with_fields(available=False, reason=unavailable[choice.name])
            if choice.name in unavailable
            else choice
            for choice in self.providers
        ]
        hosts = [choice.host for choice in providers if choice.available and choice.host is not None]
        pages = reads_pages(providers, self.protected_sources, follows=self.follow_up is not None)
        egress = where_text_goes(self.model_host, hosts, pages=pages, browser_host=self.browser_host)
        return self.with_fields(providers=providers, web=bool(hosts), egress=egress)
