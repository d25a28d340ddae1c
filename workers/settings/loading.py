"""The configuration of a process, and the only place that reads the environment.

Flags > environment > `research.env` of the configuration folder > the file of `--config` or RESEARCH_CONFIG > the file
of the configuration folder > defaults. A `research.toml` in the working directory is not read, as it may be untrusted.
`ANTHROPIC_API_KEY` alone configures no model, as it may be set for another program: paying, and sending text elsewhere,
must be a decision.
"""

import hashlib
import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import platformdirs
from pydantic import Field, PrivateAttr, SecretStr, ValidationError

from contracts.names import SERVER_PREFIX
from contracts.presets import effective_depth, effective_limits, preset
from contracts.request import Depth
from contracts.resolved import EffectiveLimits
from contracts.strategies import declare_installed
from contracts.tenants import ANY_TENANT, TenantRules
from contracts.texts import NAME, problem_message, visible
from providers.encryption import Keyring
from providers.errors import NotConfigured
from providers.extractive.semantic import is_installed
from providers.models.chat import ChatApi
from providers.models.endpoints import DEFAULT_ENDPOINT
from providers.search import declarations as search_providers
from providers.search.availability import provider_choices, usable
from providers.search.declarations import FieldNames, ServerDefinition
from providers.service_calls import in_clear, is_confidential
from workers.encryption import ENCRYPTION_KEYS, make_keyring, read_key_texts
from workers.settings.models import OPENAI_ADDRESS, BaseAddress, host_of, key_variable
from workers.settings.places import APPLICATION, CONFIG_VARIABLE, FILE_NAME, VARIABLES_FILE, read_variables
from workers.settings.sections import FileSettings

TENANT_KEYS = "RESEARCH_TENANT_KEYS"
TRACING_HEADER = "RESEARCH_TRACING_HEADER"
HEADER = re.compile(r"([A-Za-z0-9-]{1,100}):[ \t]*([!-~](?:[ -~]*[!-~])?)")
"""`Name: value`, in printable characters."""
MIN_KEY_CHARACTERS = 16
if TYPE_CHECKING:
    from providers.models.servers import ModelServer

VARIABLES: dict[str, tuple[str, ...]] = {
    "RESEARCH_HOME": ("home",),
    "RESEARCH_CONTENT_URL": ("content_url",),
    "RESEARCH_RETENTION_DAYS": ("retention_days",),
    "RESEARCH_TENANT": ("tenant",),
    "RESEARCH_RUNS_AT_ONCE": ("runs", "at_once"),
    "RESEARCH_RUNS_AT_ONCE_PER_TENANT": ("runs", "at_once_per_tenant"),
    "RESEARCH_BUILD_ID": ("workers", "build_id"),
    "RESEARCH_ALLOW_HOSTS": ("web", "allow_hosts"),
    "RESEARCH_CONTACT": ("web", "contact"),
    "RESEARCH_SEMANTIC_RANKING": ("ranking", "semantic"),
    "REDIS_URL": ("redis_url",),
    "ANTHROPIC_API_KEY": ("anthropic_api_key",),
    "ANTHROPIC_BASE_URL": ("models", "base_url"),
    "OPENAI_API_KEY": ("openai_api_key",),
    "OPENAI_BASE_URL": ("openai_base_url",),
    "RESEARCH_CHAT_KEY": ("chat_key",),
    "RESEARCH_NOTIFY_URL": ("notify", "url"),
    "RESEARCH_NOTIFY_KEY": ("notify_key",),
    TENANT_KEYS: ("tenant_keys",),
    ENCRYPTION_KEYS: ("encryption_keys",),
    "RESEARCH_TRACING_ENDPOINT": ("tracing", "endpoint"),
    TRACING_HEADER: ("tracing_header",),
    "FIRECRAWL_API_KEY": ("firecrawl_key",),
    "RESEARCH_MODEL": ("models", "default"),
    "RESEARCH_MODEL_SIMPLE": ("models", "simple"),
    "RESEARCH_MODEL_ANALYTICAL": ("models", "analytical"),
    "RESEARCH_MODEL_COMPLEX": ("models", "complex"),
}
"""Variable → its setting. Empty variables count as unset. Search providers declare their own variables."""
ENDPOINT_VARIABLES = "ANTHROPIC_API_KEY, OPENAI_API_KEY, or an address (ANTHROPIC_BASE_URL, OPENAI_BASE_URL)"
"""Each of these variables names a model endpoint."""
ENDPOINT_KEYS = re.compile(key_variable("NAME").replace("NAME", "[A-Z0-9_]+"))
"""The variables with the keys of `[models.endpoints.NAME]`."""
MAX_FILE_BYTES = 100_000  # of a `research.toml`: a crafted file can occupy the parser for seconds
PASSWORD = re.compile(r"[a-z0-9+.-]+://[^/?#@:]*:([^/?#]+)@", re.IGNORECASE)
"""The password within an address."""
CLUSTER_VARIABLES = ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
"""Each of these names a cluster; without any, the dev server is used."""
FOLDER_SETTINGS = {("home",), ("tokens", "research_archive_dir")}
"""Settings that are relative to their file, like the path of a corpus and that of an encryption key."""
INHERITED_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "PYTHONPATH", "VIRTUAL_ENV")
"""Variables that child processes inherit; none may be a secret."""

RawSettings = dict[tuple[str, ...], tuple[str | Path, Any]]
"""By path of a setting: its variable, flag or file, and the value."""


class SettingsError(Exception):
    """The configuration is invalid; the message has one line per problem, with its place."""


@dataclass(frozen=True)
class Flags:
    """Settings of the command line; None: not given."""

    model: str | None = None
    """Replaces the model of every tier."""
    model_url: str | None = None
    config: Path | None = None
    """A file that overrides the user's own."""


class Settings(FileSettings):
    """The effective configuration of this process: settings of the files, and secrets from the environment."""

    redis_url: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    """The key of the endpoint `default`, if it is the one of the variables `OPENAI_…`."""
    chat_key: SecretStr | None = None
    """The key that clients of the chat completions of `serve` must send; None: none is needed."""
    notify_key: SecretStr | None = None
    """The key that signs notices; None: they are not signed."""
    tenant_keys: SecretStr | None = None
    """The keys that sign starts, as TENANT=KEY with commas between them; a client needs its own, workers need all."""
    encryption_keys: SecretStr | None = None
    """Keys of `[encryption]` as ID=KEY with commas between them, besides those in files."""
    tracing_header: SecretStr | None = None
    """A header for the collector of `[tracing]`, as `Name: value`; None: it needs none."""
    firecrawl_key: SecretStr | None = None
    """The key of `[web.firecrawl]`; None: its server needs none."""
    uses_openai_variables: bool = Field(default=False, repr=False)
    """True if the variables `OPENAI_…` name the endpoint `default`."""
    endpoint_keys: dict[str, SecretStr] = {}
    """Keys of model endpoints by variable."""
    temporal_variables: dict[str, SecretStr] = {}
    search_addresses: dict[str, BaseAddress] = Field(default={}, repr=False)
    """Addresses of search services by variable, which override the service's own."""
    search_keys: dict[str, SecretStr] = {}
    """Keys and other variables of search services."""
    server_variables: dict[str, SecretStr] = {}
    """Variables that the servers of documents name."""

    _keyring: Keyring | None = PrivateAttr(default=None)

    @property
    def keyring(self) -> Keyring:
        """The keys of `[encryption]`. Raises `NotConfigured` for one that cannot be read."""
        if self._keyring is None:
            self._keyring = make_keyring(self.encryption, self.encryption_texts())
        return self._keyring

    def encryption_texts(self) -> dict[str, SecretStr]:
        """Return the keys of the files and the environment by id, in base64. Raises `NotConfigured`."""
        return read_key_texts(self.encryption.keys, self.encryption_keys)

    @property
    def uses_cluster(self) -> bool:
        """True if the configuration names a Temporal cluster; else the dev server is used."""
        return any(self.temporal_variables.get(name) for name in CLUSTER_VARIABLES)

    @property
    def ranks_by_meaning(self) -> bool:
        """True if rules rank passages by closeness of meaning, too, in languages of Latin letters."""
        return self.ranking.semantic is True or (self.ranking.semantic == "auto" and is_installed())

    @property
    def model_configured(self) -> bool:
        """True if a model is named and there is a key or an endpoint for it."""
        return bool(self.models.usable_endpoints(self.model_keys()))

    @property
    def model_reason(self) -> str:
        """The reason why a model is used or not, with the variables to set."""
        if self.model_configured:
            return f"a model is configured at {self.model_host}"
        if self.models.by_tier():
            return f"a model is named, but no endpoint: set {ENDPOINT_VARIABLES}"
        if DEFAULT_ENDPOINT in self.model_keys():
            variable = self.key_variable(DEFAULT_ENDPOINT)
            return f"{variable} is set, but no model is named: set RESEARCH_MODEL or give --model"
        return f"no model is named: set RESEARCH_MODEL or give --model, and set {ENDPOINT_VARIABLES}"

    @property
    def model_host(self) -> str | None:
        """The hosts that receive passages, `host` or `host:port`, separated by commas; None without a model."""
        used = self.models.usable_endpoints(self.model_keys())
        return ", ".join(dict.fromkeys(host_of(self.models.base_url_of(name)) for name in used)) or None

    def model_keys(self) -> dict[str, SecretStr]:
        """Return the known keys of model endpoints by the endpoint's name."""
        own = {name: self.endpoint_keys.get(key_variable(name)) for name in self.models.endpoints}
        keys = {**own, DEFAULT_ENDPOINT: self.openai_api_key if self.uses_openai_variables else self.anthropic_api_key}
        return {name: key for name, key in keys.items() if key is not None}

    def key_variable(self, endpoint: str) -> str:
        """Return the name of the variable with an endpoint's key."""
        is_openai = self.uses_openai_variables and endpoint == DEFAULT_ENDPOINT
        if is_openai:
            return "OPENAI_API_KEY"
        return key_variable(endpoint)

    @property
    def address_variable(self) -> str:
        """The name of the variable with the address of the endpoint `default`."""
        if self.uses_openai_variables:
            return "OPENAI_BASE_URL"
        return "ANTHROPIC_BASE_URL"

    def model_server(self, endpoint: str) -> "ModelServer | None":
        """Return the server of an endpoint, to ask for what is not known about it; None for a public API."""
        if self.models.knows_windows(endpoint):
            return None
        key = self.model_keys().get(endpoint)
        from providers.models.servers import ModelServer  # noqa: PLC0415  commands ask no server

        return ModelServer(self.models.base_url_of(endpoint), key.get_secret_value() if key else None)

    def keys_of_tenants(self) -> dict[str, bytes]:
        """Return the keys that sign starts by tenant, from `NAME=KEY` pairs. Raises `NotConfigured`."""
        text = self.tenant_keys.get_secret_value() if self.tenant_keys else ""
        keys = {}
        for name, equals, key in (pair.partition("=") for pair in text.replace(",", " ").split()):
            if not equals or (name != ANY_TENANT and not re.match(NAME.pattern, name)):
                raise NotConfigured(f"{TENANT_KEYS}: write it as TENANT=KEY, with commas between tenants")
            if len(key) < MIN_KEY_CHARACTERS:
                problem = f"must have {MIN_KEY_CHARACTERS} characters or more, as `openssl rand -hex 24` makes them"
                raise NotConfigured(f"{TENANT_KEYS}: a key {problem}")
            keys[name] = key.encode()
        return keys

    def tracing_headers(self) -> dict[str, str]:
        """Return the headers for the collector. Raises `NotConfigured` for one that is not `Name: value`."""
        if self.tracing_header is None:
            return {}
        found = HEADER.fullmatch(self.tracing_header.get_secret_value())
        if found is None:
            raise NotConfigured(f"{TRACING_HEADER}: write it as Name: value, such as Authorization: Bearer KEY")
        return {found[1]: found[2]}

    def tenant_rules(self) -> TenantRules:
        """Return how the tenant of a run is found. Raises `NotConfigured`."""
        own = self.tenants
        return TenantRules(
            needs_proof=own.proof
            or bool(own.namespaces or self.limits.tenants or self.budgets.tenants or self.runs.tenants),
            refuses=own.unproven == "refuse",
            namespaces=own.namespaces,
            keys=self.keys_of_tenants(),
        )

    def preset(self, strategy: str, depth: Depth) -> EffectiveLimits:
        """Return the built-in preset, overridden by the operator's values. Raises KeyError for an unknown strategy."""
        base = preset(strategy, depth)
        if self.runs.max_cost_usd is not None:
            base = base.with_fields(max_cost_usd=self.runs.max_cost_usd)
        chosen = self.strategy.get(strategy, {})
        named = effective_depth(depth)
        override = chosen.get(named) or (chosen.get(Depth.AUTO) if named is effective_depth(Depth.AUTO) else None)
        if override is None:
            return base
        return effective_limits(base, override)

    def secrets(self) -> list[str]:
        """Return all values that must not appear in logs."""
        keys = [
            self.anthropic_api_key,
            self.openai_api_key,
            self.redis_url,
            self.chat_key,
            self.notify_key,
            self.firecrawl_key,
            self.tracing_header,
            self.temporal_variables.get("TEMPORAL_API_KEY"),
        ]
        keys += [SecretStr(key.decode()) for key in self.keys_of_tenants().values()]
        keys += self.encryption_texts().values()
        keys += [*self.endpoint_keys.values(), *self.search_keys.values()]
        keys += [value for name, value in self.server_variables.items() if name not in INHERITED_VARIABLES]
        values = [key.get_secret_value() for key in keys if key is not None]
        if self.notify.url is not None:  # many services have a token in its path
            values.append(self.notify.url)
        values += self.tracing_headers().values()
        addresses = [*self.search_addresses.values(), *values]
        return [*values, *(match[1] for match in map(PASSWORD.match, addresses) if match)]

    def search_values(self) -> dict[str, str]:
        """Return addresses and keys of the search services in plain text, by variable, with the operator's contact."""
        contact = {search_providers.CONTACT_VARIABLE: self.web.contact} if self.web.contact else {}
        keys = {name: key.get_secret_value() for name, key in self.search_keys.items()}
        return {**contact, **self.search_addresses, **keys}

    def document_servers(self) -> list[ServerDefinition]:
        """Return the servers of documents with the values of their variables, in the order of the file."""
        values = {name: value.get_secret_value() for name, value in self.server_variables.items()}
        return [
            ServerDefinition(
                name=SERVER_PREFIX + name,
                command=tuple(server.command or ()),
                environment={one: values[one] for one in server.environment if one in values},
                url=server.url or "",
                headers={header: values[one] for header, one in server.headers.items() if one in values},
                missing=tuple(one for one in server.variables() if one not in values),
                search_tool=server.search_tool,
                fetch_tool=server.fetch_tool,
                fields=FieldNames(**server.fields.model_dump()),
                media_type=server.media_type,
                seconds=server.seconds,
            )
            for name, server in self.search.mcp.items()
        ]

    def describe(self) -> dict[str, Any]:
        """Return the settings of the files as JSON values, without user and password in addresses."""
        values = self.model_dump(mode="json", include=set(FileSettings.model_fields))
        firecrawl = values["web"]["firecrawl"] or {}
        tables = (
            values,
            firecrawl,
            values["models"],
            values["tracing"],
            *values["models"]["endpoints"].values(),
            *values["search"]["mcp"].values(),
        )
        for table in tables:
            for name in {"base_url", "content_url", "endpoint", "url"} & table.keys():
                table[name] = table[name] and without_user(table[name])
        if values["notify"]["url"] is not None:
            values["notify"]["url"] = host_of(values["notify"]["url"])
        return values

    def digest(self) -> str:
        """Return a hash of everything that shapes a run; equal for equally configured workers."""
        values = self.describe() | {"shared_state": "redis" if self.redis_url else "local"}
        values["ranking"] = self.ranks_by_meaning
        values["tokens"].pop("research_archive_dir")  # a folder, excluded like the home
        values["encryption"].pop("keys")  # files, excluded for the same reason
        shaping = {
            name: value
            for name, value in values.items()
            if name not in {"home", "tenant", "workers", "serve", "notify", "tracing"}
        }
        text = json.dumps(shaping, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def mark(self) -> str:
        """Return a hash for the identity of workers, of the digest and the available services."""
        servers = [server.choice() for server in self.document_servers()]
        providers = usable(provider_choices(self.search_values(), servers=servers))
        return hashlib.sha256(f"{self.digest()} {self.model_host} {providers}".encode()).hexdigest()[:8]

    def notices(self) -> list[str]:
        """Return warnings about settings that have no effect."""
        half_set = self.models.by_tier() or self.anthropic_api_key is not None or self.models.base_url is not None
        if self.uses_openai_variables and not self.models.by_tier():
            half_set = False  # other programs use these variables, too
        if half_set and not self.model_configured:
            return [self.model_reason]
        return []


def load_settings(
    flags: Flags | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    user_folder: Path | None = None,
    suffix: str = "",
) -> Settings:
    """Read the configuration from all its sources. Raises `SettingsError` with one line per problem.

    With a `suffix`, the user's own files are those whose names end with it, which are not in force yet.
    """
    try:
        declare_installed()
        search_providers.declare_installed()
    except ValueError as error:
        raise SettingsError(str(error)) from None
    flags = flags or Flags()
    folder = user_folder or platformdirs.user_config_path(APPLICATION)
    given = os.environ if environment is None else environment  # noqa: TID251  the one place that reads it
    raw = _read_sources(flags, given, folder, suffix)
    try:
        settings = Settings(**_to_tables(raw))
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise SettingsError("\n".join(_problem_line(raw, item["loc"], _message(item)) for item in problems)) from None
    _check_secrets(settings, raw)
    return settings.with_fields(home=settings.home.expanduser().absolute())


def _read_sources(flags: Flags, given: Mapping[str, str], folder: Path, suffix: str) -> RawSettings:
    """Return the values of all sources, each over those before it: files, the environment `given`, flags.

    Raises `SettingsError`.
    """
    stored = _read_variables(folder / (VARIABLES_FILE + suffix))
    variables = stored | {name: value for name, value in given.items() if value.strip() or name not in stored}
    raw = _read_file(folder / (FILE_NAME + suffix))
    text = variables.get(CONFIG_VARIABLE, "").strip()
    if (config_file := flags.config or (Path(text).expanduser() if text else None)) is not None:
        if flags.config is None and not config_file.is_absolute():
            raise SettingsError(f"{CONFIG_VARIABLE}: must be an absolute path, the same in every folder")
        if not config_file.exists():
            raise SettingsError(f"{visible(str(config_file))}: there is no such file")
        raw |= _read_file(config_file.absolute())
    raw |= _from_environment(variables)
    named_by_servers = _named_by_servers(raw, variables)
    raw |= named_by_servers
    _check_names(stored, {name for _, name in named_by_servers}, folder / VARIABLES_FILE)
    if flags.model is not None:
        raw |= {("models", tier): ("--model", flags.model) for tier in ("default", "simple", "analytical", "complex")}
    if flags.model_url is not None:
        raw["models", "base_url"] = ("--model-url", flags.model_url)
    return _resolve_openai_variables(raw)


def _check_secrets(settings: Settings, raw: RawSettings) -> None:
    """Raise `SettingsError` for a secret that cannot be read, or would go over an unencrypted network."""
    try:
        settings.keys_of_tenants()
        settings.keyring  # noqa: B018  a file or a source that is missing is reported now
        settings.tracing_headers()
    except NotConfigured as error:
        raise SettingsError(str(error)) from None
    firecrawl = settings.web.firecrawl
    if firecrawl and settings.firecrawl_key and not is_confidential(firecrawl.url):
        raise SettingsError(_problem_line(raw, ("web", "firecrawl", "url"), in_clear("FIRECRAWL_API_KEY")))
    endpoint = settings.tracing.endpoint
    if endpoint and settings.tracing_header and not is_confidential(endpoint):
        raise SettingsError(_problem_line(raw, ("tracing", "endpoint"), in_clear(TRACING_HEADER)))
    models = settings.models
    if unencrypted := models.sent_unencrypted(settings.model_keys()):
        lines = (
            _problem_line(raw, models.address_path(name), in_clear(settings.key_variable(name))) for name in unencrypted
        )
        raise SettingsError("\n".join(lines))


def child_environment() -> dict[str, str]:
    """Return the environment for a child process that needs no secrets."""
    return {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}  # noqa: TID251  the one place that reads it


def editor_command() -> str | None:
    """Return the user's editor command: VISUAL, EDITOR, or `vi` on a terminal; None without any."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")  # noqa: TID251  the one place that reads it
    return named or ("vi" if sys.stdin.isatty() and sys.stdout.isatty() else None)


def without_user(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _read_file(path: Path) -> RawSettings:
    """Read a file, if it exists, and resolve its relative folders against it. Raises `SettingsError`."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise SettingsError(f"{visible(str(path))}: is larger than {MAX_FILE_BYTES:,} bytes")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        leaves = list(_leaves(values))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else "it is no UTF-8 text"
        )
        raise SettingsError(f"{visible(str(path))}: cannot be read: {reason}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(visible(f"{path}: {error}")) from None
    if unknown := sorted(values.keys() - FileSettings.model_fields.keys()):  # secrets too
        keys = sorted(FileSettings.model_fields)
        lines = [f"{path}: {name}: unknown key{_hint(name, keys)}" for name in unknown]
        raise SettingsError("\n".join(map(visible, lines)))
    raw: RawSettings = {}
    for setting, value in leaves:
        is_path = (
            setting in FOLDER_SETTINGS
            or (setting[0] == "corpus" and setting[2:] == ("path",))
            or setting[:2] == ("encryption", "keys")
        )
        if is_path and isinstance(value, str):
            raw[setting] = (path, path.parent / Path(value).expanduser())
        else:
            raw[setting] = (path, value)
    return raw


def _read_variables(path: Path) -> dict[str, str]:
    """Read the stored variables, if there are any. Raises `SettingsError` for a file that others can read."""
    try:
        state = path.stat()
    except OSError:
        return {}
    name = visible(str(path))
    if state.st_size > MAX_FILE_BYTES:
        raise SettingsError(f"{name}: is larger than {MAX_FILE_BYTES:,} bytes")
    if stat.S_IMODE(state.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{name}: other users may read the keys in it: chmod 600 {name}")
    return read_variables(path)


def _check_names(stored: Mapping[str, str], others: AbstractSet[str], path: Path) -> None:
    """Raise `SettingsError` for stored variables that nothing reads, as a misspelt key would be missed silently."""
    known = {*VARIABLES, *search_providers.search_variables(), *others}
    unknown = [name for name in stored if name not in known and not ENDPOINT_KEYS.fullmatch(name)]
    unknown = [name for name in unknown if not name.startswith("TEMPORAL_")]
    if unknown:
        raise SettingsError(visible(f"{path}: {unknown[0]}: unknown variable{_hint(unknown[0], known)}"))


def _hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a line about an unknown name: the nearest known one, if any is near."""
    near = get_close_matches(name[:64], sorted(known), 1)
    return f": is {near[0]} meant?" if near else ""


def _leaves(table: Mapping[str, Any], setting: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*setting, name))
        else:
            yield (*setting, name), value


def _from_environment(environment: Mapping[str, str]) -> RawSettings:
    """Return the values of our variables and of Temporal's; empty ones count as unset."""
    addresses = search_providers.address_variables()
    settings: dict[str, tuple[str, ...]] = dict(VARIABLES)
    for name in search_providers.search_variables():
        settings[name] = ("search_addresses" if name in addresses else "search_keys", name)
    for name in environment:
        if name.startswith("TEMPORAL_"):
            settings[name] = ("temporal_variables", name)
        elif ENDPOINT_KEYS.fullmatch(name):
            settings[name] = ("endpoint_keys", name)
    values = {name: environment.get(name, "").strip() for name in settings}
    return {settings[name]: (name, value) for name, value in values.items() if value}


def _named_by_servers(raw: RawSettings, environment: Mapping[str, str]) -> RawSettings:
    """Return the values of the variables that the servers of documents name."""
    names: list[Any] = []
    for setting, (_, value) in raw.items():
        if setting[:2] == ("search", "mcp") and "environment" in setting[3:4] and isinstance(value, list):
            names += value
        elif setting[:2] == ("search", "mcp") and "headers" in setting[3:4]:
            names.append(value)
    found = {name: environment[name] for name in names if isinstance(name, str) and environment.get(name)}
    return {("server_variables", name): (name, value) for name, value in found.items()}


def _resolve_openai_variables(raw: RawSettings) -> RawSettings:
    """Return the settings in which the variables of the `openai` SDK name the endpoint `default`, or none.

    They count only where nothing else names this endpoint: many shells have them for other programs, and their key must
    not be sent to an address of ours.
    """
    key = raw.pop(("openai_api_key",), None)
    address = raw.pop(("openai_base_url",), None)
    is_named = ("models", "base_url") in raw or ("anthropic_api_key",) in raw
    if is_named or (key is None and address is None):
        return raw
    variable = "OPENAI_BASE_URL"
    named = raw | {
        ("uses_openai_variables",): (variable, True),
        ("models", "base_url"): address or (variable, OPENAI_ADDRESS),
        ("models", "endpoints", DEFAULT_ENDPOINT, "api"): (variable, ChatApi.CHAT.value),
    }
    if key is None:
        return named
    return named | {("openai_api_key",): key}


def _to_tables(raw: RawSettings) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for setting, (_, value) in raw.items():
        table = values
        for part in setting[:-1]:
            if not isinstance(table.get(part), dict):
                table[part] = {}
            table = table[part]
        if value == {}:  # an empty table adds to the tables of other files
            table.setdefault(setting[-1], {})
        else:
            table[setting[-1]] = value
    return values


def _problem_line(raw: RawSettings, location: tuple[str | int, ...], message: str) -> str:
    """Prefix a problem with its place in the source: a variable, a flag, or a file and path."""
    setting = tuple(str(part) for part in location if part != "[key]")
    for length in range(len(setting), 0, -1):
        for leaf, (source, _) in raw.items():
            if leaf[:length] == setting[:length]:
                if isinstance(source, Path):
                    name = f"{source}: {'.'.join(setting)}"
                else:
                    name = source
                return visible(f"{name}: {message}")
    return visible(f"{'.'.join(setting)}: {message}")


def _message(item: Mapping[str, Any]) -> str:
    if item["type"] == "extra_forbidden":
        tables = FileSettings.model_json_schema()["$defs"].values()
        keys = {key for table in tables for key in table.get("properties", {})}
        return f"unknown key{_hint(str(item['loc'][-1]), keys)}"
    return problem_message(item)
