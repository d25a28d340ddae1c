"""Sections of `research.toml`, the settings of an operator; unknown keys are rejected by name."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import platformdirs
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from contracts.base import Given
from contracts.ceilings import Budgets, Ceilings
from contracts.names import POOLS, SERVER_PREFIX, WORKFLOWS_QUEUE
from contracts.request import Approve, Clarify, Depth, Domain, Limits, Name, ProviderName, SearchPolicy, SourceType
from contracts.strategies import list_selectable
from contracts.texts import CONTACT, LANGUAGE_TAG
from contracts.tokens import TokenSettings
from contracts.vocabulary import Severity
from providers.encryption import KEY_ID
from providers.errors import SourceUnreadable
from providers.extractive.semantic import REMEDY, is_installed
from providers.reading.egress.address_rules import DEFAULT_PORTS, canonical_host, check_url, hosts_and_ports
from providers.search.declarations import declared_names
from workers.settings.models import BaseAddress, ModelsSettings
from workers.settings.places import APPLICATION

MIN_PER_MINUTE: Final = 0.0001  # one request a week: every store can remember requests for a few weeks


ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
"""Of a server of documents: small letters, digits and underscores, such as wiki."""


class ConfigSection(Given):
    """A table of the file; frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


KeyId = Annotated[str, Field(pattern=f"^{KEY_ID}$")]
"""Id of an encryption key: small letters, digits and hyphens, such as 2026-11."""
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
"""Name of a variable of the environment."""
FieldName = Annotated[str, Field(max_length=200)]


class FieldsSettings(ConfigSection):
    """`[search.mcp.NAME.fields]`: names in the calls and answers of a server; dots lead into an answer."""

    query: FieldName = Field(default="query", min_length=1)
    """Argument of the search tool with the words to search for."""
    limit: FieldName = ""
    """Argument of the search tool with the number of results; empty: it has none."""
    results: FieldName = "results"
    """Path of the list of results in an answer; an answer that is a list needs none."""
    id: FieldName = Field(default="id", min_length=1)
    """Id of a result, and the argument of the fetch tool."""
    title: FieldName = "title"
    text: FieldName = "text"
    """Text of a document, and the text or the snippet of a result."""
    url: FieldName = "url"
    """Address that people may open; it is shown, and never opened here."""
    date: FieldName = "date"


class ServerSettings(ConfigSection):
    """`[search.mcp.NAME]`: a server of documents that speaks the Model Context Protocol: a program, or an address."""

    command: list[Annotated[str, Field(min_length=1, max_length=4_096)]] | None = Field(default=None, min_length=1)
    """Program and arguments, without a shell."""
    environment: list[Variable] = []
    """Variables of the worker that the program gets; it gets no others."""
    url: BaseAddress | None = None
    headers: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")], Variable] = {}
    """By header: the variable with its value."""
    search_tool: FieldName = Field(default="search", min_length=1)
    fetch_tool: FieldName = "fetch"
    """Empty, or no tool of the server: the text of a result is the whole document."""
    fields: FieldsSettings = FieldsSettings()
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    """What its texts are."""
    authority: Literal["high", "medium", "low"] | None = None
    """Of all of its documents; without it, they are assessed like pages."""
    seconds: float = Field(default=30.0, ge=1, le=300)
    """Time for an answer."""

    @model_validator(mode="after")
    def _require_one_place(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("name either the `command` of a program or the `url` of a server")
        if self.environment and self.command is None:
            raise ValueError("`environment` is for a `command`; a `url` has `headers`")
        if self.headers and self.url is None:
            raise ValueError("`headers` are for a `url`; a `command` has an `environment`")
        return self

    def variables(self) -> list[str]:
        """Return the variables that it names."""
        return [*self.environment, *self.headers.values()]


class SearchSettings(ConfigSection):
    """`[search]`: defaults for web searches, which a request may override."""

    mcp: dict[ServerName, ServerSettings] = {}
    """Servers of documents by name; the provider is `mcp.NAME`."""

    providers: list[ProviderName] | None = Field(default=None, min_length=1)
    """The providers to use, in this order. None: all usable ones, in the usual order."""
    policy: SearchPolicy = SearchPolicy.FAN_OUT
    source_types: list[SourceType] = Field(default=[SourceType.WEB, SourceType.ACADEMIC], min_length=1)
    max_results_per_query: int = Field(default=10, ge=1, le=50)
    domains_allow: list[Domain] = []
    domains_deny: list[Domain] = []
    requests_per_minute: dict[ProviderName, Annotated[float, Field(ge=MIN_PER_MINUTE, le=100_000)]] = {}
    """By provider: the rate limit of all workers together."""
    usd_per_1000: dict[ProviderName, Annotated[float, Field(ge=0, le=100_000)]] = {}
    """By provider: the price of 1,000 searches. Without it the cost of a provider with a plan is unknown."""

    @field_validator("providers", "requests_per_minute", "usd_per_1000")
    @classmethod
    def _check_providers(cls, value: Any, info: ValidationInfo) -> Any:
        known = (*(SERVER_PREFIX + name for name in info.data.get("mcp", ())), *declared_names())
        unknown = [name for name in value or () if name not in known]
        if unknown:
            raise ValueError(f"no search provider is called {unknown[0]}; there are: {', '.join(known)}")
        return value


class CorpusSettings(ConfigSection):
    """`[corpus.NAME]`: a folder of documents; the operator declares its authority."""

    path: Path
    include: list[str] = []
    """Glob patterns of relative paths; empty means every readable type."""
    exclude: list[str] = []
    authority: Literal["high", "medium", "low", "unknown"] = "high"
    title: str | None = None
    language: str | None = Field(default=None, pattern=LANGUAGE_TAG.pattern)


class FirecrawlSettings(ConfigSection):
    """`[web.firecrawl]`: Firecrawl, for pages that have no text without a browser. Its key is in FIRECRAWL_API_KEY."""

    url: BaseAddress
    """Of its maker, https://api.firecrawl.dev, or your own server; it gets the addresses of such pages."""
    seconds: float = Field(default=60.0, ge=10, le=90)
    """Time for a page."""
    pages_per_day: int = Field(default=200, ge=1, le=1_000_000)
    """Pages that all workers together may have opened on a day (UTC); each costs a credit or more."""


class WebSettings(ConfigSection):
    """`[web]`: requests of pages, and the private hosts that may be read."""

    allow_hosts: list[str] = []
    """Exact `host:port` pairs; in the environment separated by commas or spaces."""
    contact: str | None = Field(default=None, pattern=CONTACT.pattern)
    """An e-mail address or web page for site owners, sent with every request."""
    authorities: dict[Domain, Literal["high", "medium", "low"]] = {}
    """The authority of sites, which overrides the built-in table; a domain covers its subdomains."""
    firecrawl: FirecrawlSettings | None = None
    """None: pages that need a browser are not read."""

    @field_validator("allow_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(",", " ").split()
        return value

    @field_validator("allow_hosts")
    @classmethod
    def _check_hosts(cls, value: list[str]) -> list[str]:
        hosts_and_ports(value)
        return value


UNVERSIONED: Final = "unversioned"
"""The build id of workers that take part in no deployment."""
BuildId = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class WorkersSettings(ConfigSection):
    """`[workers]`: concurrency and version of one worker process; processes may differ."""

    build_id: BuildId | None = None
    """Version of the workflow code that the pool `workflows` polls as; `unversioned`: none. Without it, workers of a
    cluster have the product's version with a digest of the code, and those of the dev server none."""

    slots: dict[str, Annotated[int, Field(ge=1, le=1_000)]] = {}
    """Concurrent activities by pool; other pools use their default."""

    @field_validator("slots")
    @classmethod
    def _check_pools(cls, value: dict[str, int]) -> dict[str, int]:
        sized = [name for name in POOLS if POOLS[name] != WORKFLOWS_QUEUE]
        unknown = [name for name in value if name not in sized]
        if unknown:
            raise ValueError(f"no pool with slots is called {unknown[0]}; there are: {', '.join(sized)}")
        return value


class TenantRunsSettings(ConfigSection):
    """`[runs.tenants.NAME]`: numbers of runs of one tenant, in place of those of every tenant."""

    at_once: int | None = Field(default=None, ge=1, le=10_000)
    queued: int | None = Field(default=None, ge=0, le=100_000)


class RunsSettings(ConfigSection):
    """`[runs]`: the number of active runs and of those that may wait for their turn; what one may cost."""

    at_once: int = Field(default=20, ge=1, le=10_000)
    """In total. More than the workers and the model endpoint can serve in time delays all runs."""
    at_once_per_tenant: int | None = Field(default=None, ge=1, le=10_000)
    """Of one tenant; without it, as many as in total while no other tenant waits."""
    queued: int = Field(default=10_000, ge=0, le=100_000)
    """In total. A further run is refused; one that has begun, or waits already, never is."""
    queued_per_tenant: int | None = Field(default=None, ge=0, le=100_000)
    """Of one tenant; without it, as many as in total."""
    tenants: dict[Name, TenantRunsSettings] = {}
    """By tenant: numbers of its own."""
    max_cost_usd: float | None = Field(default=None, ge=0)
    """Most US dollars that a run may cost unless its request, or `[strategy.NAME.DEPTH]`, has another value. None: as
    the preset has it."""


class TenantsSettings(ConfigSection):
    """`[tenants]`: who a run's tenant is. Keys of tenants are in RESEARCH_TENANT_KEYS."""

    proof: bool = False
    """Whether the name in a request counts only with a proof; it does not where one has limits, places or money."""
    unproven: Literal["default", "refuse"] = "default"
    """What becomes of a run without proof: it is of the tenant `default`, or refused."""
    namespaces: dict[Annotated[str, StringConstraints(min_length=1, max_length=255)], Name] = {}
    """By namespace of the engine: the tenant of all of its runs."""


HostName = Annotated[str, StringConstraints(to_lower=True, max_length=253, pattern=r"^[A-Za-z0-9._-]+$")]


class ChatSettings(ConfigSection):
    """`[serve.chat]`: chat completions of `research serve`, for chat windows. Their key is in RESEARCH_CHAT_KEY."""

    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    """The interface; one that other machines reach needs a key."""
    allow_hosts: list[HostName] = []
    """Further names or addresses by which clients may call it, without a port; as a proxy or a container does."""
    corpora: list[Name] | None = None
    """The corpora on offer. None: all."""
    default_corpus: Name | None = None
    """What a model without the name of a corpus searches. None: the web."""
    clarify: Clarify | None = None
    """None, here and in the next field: the strategy's preset."""
    approve: Approve | None = None


class ServeSettings(ConfigSection):
    """`[serve]`: what `research serve` serves besides runs."""

    chat: ChatSettings = ChatSettings()


class NotifySettings(ConfigSection):
    """`[notify]`: an address that gets one POST when a run ends or waits for a person. Its key: RESEARCH_NOTIFY_KEY."""

    url: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2_000)] | None = None
    """An address of https, or one whose host is in `allow_hosts`. None: no notices."""
    allow_hosts: list[str] = []
    """Exact `host:port` pairs that may be private, or without encryption; they count for notices alone."""
    page_url: BaseAddress | None = None
    """Address of the page of `research serve`, for links; without it, `serve` names its own."""
    include: list[Literal["question", "report"]] = []
    """Texts of a run that a notice has besides its id, state and next commands."""

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        hosts = hosts_and_ports(self.allow_hosts)
        if self.url is None:
            return self
        try:
            address = check_url(self.url, hosts)
        except SourceUnreadable as problem:
            raise ValueError(
                f"url: {problem}; a private host or another port needs `host:port` in notify.allow_hosts"
            ) from None
        place = (canonical_host(address.raw_host.decode("ascii")), address.port or DEFAULT_PORTS[address.scheme])
        if address.scheme != "https" and place not in hosts:
            raise ValueError("url: must begin with https://, or have its `host:port` in allow_hosts")
        return self


TRACING_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""Of the extra `tracing`."""


def has_tracing() -> bool:
    """Return whether the extra `tracing` is installed."""
    try:
        return all(find_spec(name) for name in TRACING_PACKAGES)
    except ModuleNotFoundError:  # a package above is missing
        return False


class TracingSettings(ConfigSection):
    """`[tracing]`: where spans of runs are sent. A header for it is in RESEARCH_TRACING_HEADER."""

    endpoint: BaseAddress | None = None
    """Address of a collector that speaks OTLP over HTTP, such as http://127.0.0.1:4318; None: no traces."""

    @field_validator("endpoint")
    @classmethod
    def _check_installed(cls, value: str | None) -> str | None:
        if value is not None and not has_tracing():
            raise ValueError("the extra `tracing` is not installed: pip install 'durable-research[tracing]'")
        return value


class RankingSettings(ConfigSection):
    """`[ranking]`: the order in which passages are shown."""

    semantic: bool | Literal["auto"] = "auto"
    """Rank by closeness of meaning, too. auto: where the extra `semantic` is installed."""

    @field_validator("semantic", mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        known = {"true": True, "false": False, "auto": "auto"}
        chosen = known.get(value.strip().lower()) if isinstance(value, str) else value
        if chosen != "auto" and not isinstance(chosen, bool):
            raise ValueError("must be true, false or auto")
        if chosen is True and not is_installed():
            raise ValueError(f"the extra `semantic` is not installed: {REMEDY}")
        return chosen


class EncryptionSettings(ConfigSection):
    """`[encryption]`: keys by which everything that is stored of a run is encrypted: AES-256-GCM."""

    current: KeyId | None = None
    """Id of the key that encrypts; None: nothing is encrypted, and the keys only decrypt."""
    keys: dict[KeyId, Path] = {}
    """By id: the file of a key, 32 bytes in base64. RESEARCH_ENCRYPTION_KEYS may have further ones."""
    source: Annotated[str, Field(max_length=100)] | None = None
    """Entry point of the group `durable_research.encryption_keys` that returns further keys, as from a key service."""
    required: bool = False
    """Refuse whatever is stored without encryption; only after the last run of before has ended and was deleted."""


class HookSettings(ConfigSection):
    """`[hooks.NAME]`: an activity of the operator on a task queue of the operator."""

    activity: str = Field(min_length=1, max_length=200)
    task_queue: str = Field(min_length=1, max_length=200)


class PresetSettings(Limits):
    """`[strategy.NAME.DEPTH]`: values that override those of the built-in preset."""

    max_new_sources: int | None = Field(default=None, ge=1, le=500)
    reserve_seconds: float | None = Field(default=None, ge=1, le=3_600)
    severity_floor: Severity | None = None


def _strategy_name(name: str) -> str:
    if name not in {strategy.name for strategy in list_selectable()}:
        raise ValueError("unknown strategy")
    return name


StrategyName = Annotated[str, AfterValidator(_strategy_name)]


class FileSettings(ConfigSection):
    """A whole `research.toml`. No secrets: those come from the environment and `research.env` alone."""

    home: Path = Field(default_factory=lambda: platformdirs.user_data_path(APPLICATION))
    content_url: str | None = None
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    """Days for which a run is stored after it was last saved; without it, until it is deleted."""
    tenant: Name | None = None
    """Tenant of the runs that commands and doors of this process start; they then find only its runs. None: the tenant
    of each request, and everybody's runs."""
    models: ModelsSettings = ModelsSettings()
    search: SearchSettings = SearchSettings()
    web: WebSettings = WebSettings()
    workers: WorkersSettings = WorkersSettings()
    runs: RunsSettings = RunsSettings()
    limits: Ceilings = Ceilings()
    budgets: Budgets = Budgets()
    tenants: TenantsSettings = TenantsSettings()
    serve: ServeSettings = ServeSettings()
    notify: NotifySettings = NotifySettings()
    tracing: TracingSettings = TracingSettings()
    ranking: RankingSettings = RankingSettings()
    encryption: EncryptionSettings = EncryptionSettings()
    tokens: TokenSettings = TokenSettings()
    corpus: dict[Name, CorpusSettings] = {}
    hooks: dict[Name, HookSettings] = {}
    strategy: dict[StrategyName, dict[Depth, PresetSettings]] = {}
