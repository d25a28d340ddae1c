"""The configuration of a process, and the only place that reads the environment.

Flags > environment > the file of `--config` or RESEARCH_CONFIG > the file of the configuration folder > defaults.
A key in the environment names no model: `ANTHROPIC_API_KEY` alone configures nothing, because it may be set for another
program, and sending text away or paying for it must be decided. `RESEARCH_MODEL` (or the file, or a flag) decides it.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import platformdirs
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from contracts.presets import depth_of, effective_limits, preset
from contracts.request import Depth, Limits, Name
from contracts.resolved import EffectiveLimits
from contracts.strategies import declare_installed
from providers.credentials import in_clear
from providers.models.endpoints import DEFAULT_ENDPOINT
from providers.search import declarations as search_providers
from workers.settings.configuration_files import (
    FILE_NAME,
    SettingsError,
    details,
    line_of,
    merge_values,
    message_of,
    nest,
    values_of_files,
)
from workers.settings.models import ModelsSettings, key_variable
from workers.settings.sections import (
    CorpusSettings,
    HookSettings,
    PresetSettings,
    RunsSettings,
    SearchSettings,
    WebSettings,
    WorkersSettings,
)
from workers.settings.web_search import WebSearchSettings, password_in

__all__ = ["FILE_NAME", "Flags", "Settings", "SettingsError", "load_settings"]

APPLICATION = "durable-research"

VARIABLES: dict[str, tuple[str, ...]] = {
    "RESEARCH_HOME": ("home",),
    "RESEARCH_CONTENT_URL": ("content_url",),
    "RESEARCH_RETENTION_DAYS": ("retention_days",),
    "RESEARCH_RUNS_AT_ONCE": ("runs", "at_once"),
    "RESEARCH_RUNS_AT_ONCE_PER_TENANT": ("runs", "at_once_per_tenant"),
    "RESEARCH_ALLOW_HOSTS": ("web", "allow_hosts"),
    "RESEARCH_CONTACT": ("web", "contact"),
    "REDIS_URL": ("redis_url",),
    "ANTHROPIC_API_KEY": ("anthropic_api_key",),
    "ANTHROPIC_BASE_URL": ("models", "base_url"),
    "RESEARCH_MODEL": ("models", "default"),
    "RESEARCH_MODEL_SIMPLE": ("models", "simple"),
    "RESEARCH_MODEL_ANALYTICAL": ("models", "analytical"),
    "RESEARCH_MODEL_COMPLEX": ("models", "complex"),
}
"""Variable → the setting it sets. An empty variable counts as unset. Search providers declare their own variables."""

ENDPOINT_KEYS = re.compile(key_variable("NAME").replace("NAME", "[A-Z0-9_]+"))
"""The variables that hold the keys of `[models.endpoints.NAME]`."""

CONFIG_VARIABLE = "RESEARCH_CONFIG"
"""Names a file as `--config` does, which goes before it."""

CLUSTER_VARIABLES = ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE", "TEMPORAL_CONFIG_FILE")
"""Any of these names a cluster; without them the dev server is used."""

PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "PYTHONPATH", "VIRTUAL_ENV")
"""What a child process may see of the environment: nothing that could be a secret."""


@dataclass(frozen=True)
class Flags:
    """What the command line sets; None means not given."""

    home: Path | None = None
    model: str | None = None
    """Replaces the model of every tier."""
    model_url: str | None = None
    config: Path | None = None
    """A file that is read over the user's own."""

    def values(self) -> dict[str, Any]:
        """As nested settings."""
        models = {"base_url": self.model_url}
        if self.model is not None:
            models |= dict.fromkeys(("default", "simple", "analytical", "complex"), self.model)
        given = {name: value for name, value in models.items() if value is not None}
        home = {} if self.home is None else {"home": self.home}
        return home | ({"models": given} if given else {})


class Settings(BaseSettings):
    """The effective configuration of this process."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    home: Path = Field(default_factory=lambda: platformdirs.user_data_path(APPLICATION))
    content_url: str | None = None
    retention_days: int | None = Field(default=None, ge=1, le=36_500)
    redis_url: SecretStr | None = None
    anthropic_api_key: SecretStr | None = None
    endpoint_keys: dict[str, SecretStr] = {}
    """Keys of model endpoints by the name of their variable."""
    temporal_variables: dict[str, SecretStr] = {}
    models: ModelsSettings = ModelsSettings()
    search: SearchSettings = SearchSettings()
    web: WebSettings = WebSettings()
    web_search: WebSearchSettings = WebSearchSettings()
    workers: WorkersSettings = WorkersSettings()
    runs: RunsSettings = RunsSettings()
    corpus: dict[Name, CorpusSettings] = {}
    hooks: dict[Name, HookSettings] = {}
    strategy: dict[str, dict[Depth, PresetSettings]] = {}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from `load_settings` alone: it knows where each comes from, for the messages."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def uses_cluster(self) -> bool:
        """Whether the configuration names a Temporal cluster; else the dev server is used."""
        return any(self.temporal_variables.get(name) for name in CLUSTER_VARIABLES)

    @property
    def model_configured(self) -> bool:
        """Whether a model is named and there is a key or an endpoint for it."""
        return bool(self.models.usable_endpoints(self.model_keys()))

    @property
    def model_reason(self) -> str:
        """Why a model is used or not, with what to set."""
        if self.model_configured:
            return f"a model is configured at {self.model_host}"
        if self.models.by_tier():
            return "a model is named, but neither ANTHROPIC_API_KEY nor ANTHROPIC_BASE_URL is set"
        if self.anthropic_api_key is not None:
            return "ANTHROPIC_API_KEY is set, but no model is named: set RESEARCH_MODEL or give --model"
        return "no model is named: set RESEARCH_MODEL, and ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL"

    @property
    def model_host(self) -> str | None:
        """The hosts that receive passages, `host` or `host:port`, separated by commas; None without a model."""
        return ", ".join(self.models.hosts(self.models.usable_endpoints(self.model_keys()))) or None

    def model_keys(self) -> dict[str, SecretStr]:
        """The keys of model endpoints by the endpoint's name, for those that have one."""
        own = {name: self.endpoint_keys.get(key_variable(name)) for name in self.models.endpoints}
        held = {**own, DEFAULT_ENDPOINT: self.anthropic_api_key}
        return {name: key for name, key in held.items() if key is not None}

    def preset(self, strategy: str, depth: Depth) -> EffectiveLimits:
        """The built-in preset with the operator's values over it. Raises KeyError for a strategy not built yet."""
        base = preset(strategy, depth)
        chosen = self.strategy.get(strategy, {})
        named = depth_of(depth)
        override = chosen.get(named) or (chosen.get(Depth.AUTO) if named is depth_of(Depth.AUTO) else None)
        if override is None:
            return base
        own = override.model_dump(
            include=set(PresetSettings.model_fields) - set(Limits.model_fields), exclude_none=True
        )
        asked = Limits.model_validate(override.model_dump(include=set(Limits.model_fields)))
        return EffectiveLimits.model_validate(effective_limits(base, asked).model_dump() | own)

    def secrets(self) -> list[str]:
        """Every value that no log may show."""
        held = [self.anthropic_api_key, self.redis_url, self.temporal_variables.get("TEMPORAL_API_KEY")]
        held += self.endpoint_keys.values()
        own = [secret.get_secret_value() for secret in held if secret is not None]
        passwords = [] if self.redis_url is None else [password_in(self.redis_url.get_secret_value())]
        return own + [password for password in passwords if password] + self.web_search.secrets()

    def describe(self) -> dict[str, Any]:
        """The effective configuration as JSON values, for logs and `doctor`: no secrets, only whether they are set."""
        hidden = {"temporal_variables", "redis_url", "anthropic_api_key", "endpoint_keys", "web_search"}
        shown = self.model_dump(mode="json", exclude=hidden)
        shown["content_url"] = None if self.content_url is None else without_user(self.content_url)
        _hide_users(shown)
        return shown | {
            "models_by_tier": self.models.by_tier(),
            "model": self.model_reason,
            "anthropic_api_key": _whether(self.anthropic_api_key),
            "endpoint_keys": dict.fromkeys(sorted(self.endpoint_keys), "set"),
            "redis_url": _whether(self.redis_url),
            "server": "cluster" if self.uses_cluster else "dev server",
            "search_providers": {choice.name: choice.reason for choice in self.web_search.choices()},
        }

    def digest(self) -> str:
        """Hash of everything that shapes a run: equal in workers that are configured alike, whatever their size."""
        values = self.model_dump(
            mode="json",
            exclude={
                *("home", "workers", "temporal_variables", "redis_url"),
                *("anthropic_api_key", "endpoint_keys", "web_search"),
            },
        )
        values["content_url"] = None if self.content_url is None else without_user(self.content_url)
        _hide_users(values)
        values["shared_state"] = "redis" if self.redis_url else "local"
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def notices(self) -> list[str]:
        """Warnings about settings that have no effect."""
        warnings = {
            self.model_reason: not self.model_configured and self._model_half_set(),
        }
        return [text for text, holds in warnings.items() if holds]

    def _model_half_set(self) -> bool:
        return bool(self.models.by_tier()) or self.anthropic_api_key is not None or self.models.base_url is not None


def load_settings(
    flags: Flags | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    user_folder: Path | None = None,
) -> Settings:
    """Read the configuration from all its places. Raises `SettingsError` with one line per problem."""
    try:
        declare_installed()
        search_providers.declare_installed()
    except ValueError as error:
        raise SettingsError(str(error)) from None
    given = os.environ if environment is None else environment  # noqa: TID251  the one place that reads it
    asked = flags or Flags()
    files = values_of_files(
        user_folder or user_config_folder(),
        asked.config or _read_variable_names(given),
    )
    values = merge_values(files, environment_values(given))
    values = merge_values(values, asked.values())
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError("\n".join(_problem(item, given, asked) for item in details(error))) from None
    _check_keys_are_encrypted(settings, given, asked)
    return settings.model_copy(update={"home": settings.home.expanduser().absolute()})


def user_config_folder() -> Path:
    """The folder of the user's own file."""
    return platformdirs.user_config_path(APPLICATION)


def environment_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """The variables as nested settings; variables that are not ours are ignored, empty ones are unset."""
    values: dict[str, Any] = {}
    for variable, path in VARIABLES.items():
        text = environment.get(variable, "").strip()
        if text:
            values = merge_values(values, nest(path, text))
    temporal = {name: value for name, value in environment.items() if name.startswith("TEMPORAL_") and value}
    keys = {
        name: value.strip() for name, value in environment.items() if ENDPOINT_KEYS.fullmatch(name) and value.strip()
    }
    given = {name: environment.get(name, "").strip() for name in search_providers.search_variables()}
    addresses = search_providers.address_variables()
    groups = {
        "temporal_variables": temporal,
        "endpoint_keys": keys,
        "web_search": {
            "addresses": {name: value for name, value in given.items() if value and name in addresses},
            "variables": {name: value for name, value in given.items() if value and name not in addresses},
        },
    }
    return values | {name: group for name, group in groups.items() if group}


def child_environment() -> dict[str, str]:
    """The environment for a child process that needs no secrets."""
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}  # noqa: TID251  the one place that reads it


def editor_command() -> str | None:
    """The editor of the person at this terminal, with its arguments; None where none is named and nobody sits there."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")  # noqa: TID251  the one place that reads it
    return named or ("vi" if sys.stdin.isatty() and sys.stdout.isatty() else None)


def without_user(url: str) -> str:
    """A URL without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _read_variable_names(environment: Mapping[str, str]) -> Path | None:
    """The file that the variable names. Raises `SettingsError` for a relative path."""
    text = environment.get(CONFIG_VARIABLE, "").strip()
    path = Path(text).expanduser()
    if text and not path.is_absolute():
        raise SettingsError(
            f"{CONFIG_VARIABLE}: must be an absolute path: a relative one names another file in every folder"
        )
    return path if text else None


def _problem(item: Mapping[str, Any], environment: Mapping[str, str], flags: Flags) -> str:
    """Like `line_of`, but named by the flag or the variable that holds the value if one does."""
    name = _holder(tuple(item["loc"]), environment, flags)
    return f"{name}: {message_of(item)}" if name else line_of(item)


def _holder(place: tuple[Any, ...], environment: Mapping[str, str], flags: Flags) -> str | None:
    """The flag or the variable that holds a value; None where a file does."""
    names = ["--model-url"] if flags.model_url and place == ("models", "base_url") else []
    names += [name for name, path in VARIABLES.items() if path == place and environment.get(name)]
    names += place[2:] if place[:1] == ("web_search",) else ()
    return next(iter(names), None)


def _check_keys_are_encrypted(settings: Settings, environment: Mapping[str, str], flags: Flags) -> None:
    """Refuse an endpoint that would get its key unencrypted. Raises `SettingsError`."""
    models = settings.models
    lines = []
    for endpoint in models.sent_unencrypted(settings.model_keys()):
        default = endpoint == DEFAULT_ENDPOINT
        place = ("models", "base_url") if default else ("models", "endpoints", endpoint, "base_url")
        holder = _holder(place, environment, flags) or ".".join(place)
        lines.append(f"{holder}: {in_clear(key_variable(endpoint))}")
    if lines:
        raise SettingsError("\n".join(lines))


def _hide_users(values: dict[str, Any]) -> None:
    """Take user and password out of the addresses of `models`."""
    for place in (values["models"], *values["models"]["endpoints"].values()):
        place["base_url"] = None if place["base_url"] is None else without_user(place["base_url"])


def _whether(secret: SecretStr | None) -> str:
    return "set" if secret else "not set"
