"""Search providers as data: everything that the product needs of one before its code is loaded.

A package outside the product declares its provider under the entry point group `ENTRY_POINTS`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import urlsplit

from pydantic import ConfigDict

from contracts.base import StrictContract
from contracts.names import SERVER_PREFIX
from contracts.packages import REMEDY, PackageFault, fault, load_class, load_declaration, note_package, package_of
from contracts.request import SourceType
from contracts.resolved import ProviderChoice
from contracts.sentences import Message
from providers.errors import NotConfigured, ProviderError
from providers.interfaces import SearchProvider
from providers.service_calls import ensure_confidential, ensure_key, is_confidential

if TYPE_CHECKING:
    import httpx2

ENTRY_POINTS: Final = "durable_research.search_providers"
BY_MODEL: Final = "anthropic"
"""The provider that searches through a model's endpoint; it is configured by the settings of models."""
CONTACT_VARIABLE: Final = "RESEARCH_CONTACT"
"""The operator's contact, which every provider gets, for services that ask for a mail address."""

REGION_PLACE: Final = "{region}"
LOCATION: Final = re.compile(r"(?:^|/)locations/([a-z0-9-]{1,40})(?:/|$)")
GLOBAL: Final = "global"


@dataclass(frozen=True)
class ProviderPage:
    """The text of the documentation about a provider, in Markdown, each text as a cell of a table."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    needs: str
    """Variables without which it is skipped."""
    queries_go_to: str
    price: str
    domains_allow: str = "afterwards"
    domains_deny: str = "afterwards"
    language: str = "no"
    dates: str = "no"
    looks_for: str = ""
    """Types of sources; empty: those of the declaration."""


@dataclass(frozen=True)
class SearchDeclaration:
    """One search provider: its names, its variables, and the filters that it applies itself."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: str
    label: str
    """Name in messages to people."""
    implementation: str
    """`module:Class`; the class is called with an HTTP client, this declaration, and its variables by name."""
    source_types: tuple[SourceType, ...] = (SourceType.WEB,)
    address: str = ""
    """URL of the service; empty if the operator runs it and must name the address. `{region}` in it becomes
    `NAME-` where another of its variables has `locations/NAME`, and nothing for `locations/global`."""
    address_variable: str = ""
    """Variable that sets another address."""
    key_variable: str = ""
    key_required: bool = True
    key_alternative: str = ""
    """Variable that takes the place of the key: the path of a file with other credentials."""
    key_header: str = "authorization"
    """Header that carries the key; in `authorization` it is a bearer token."""
    key_parameter: str = ""
    """Parameter that carries the key in place of a header, of a service that documents no header."""
    searches_per_minute: float = 0.0
    """Searches a minute that the service allows, of all workers together; 0: it states no limit."""
    searches_per_minute_with_key: float = 0.0
    """The same with a key; 0: the key changes nothing."""
    one_at_a_time: bool = False
    """The service allows one request at a time, of all workers together."""
    other_variables: tuple[str, ...] = ()
    """Other required variables; none of them is a secret."""
    filters: frozenset[str] = frozenset()
    """Filters among `domains_allow`, `domains_deny`, `language` and `dates` that the service applies. Hits outside the
    domains are removed in any case; for the other filters the response has a warning."""
    languages: str = ""
    """Languages that it supports, by ISO 639 code; empty if it supports all, or none."""
    own_languages: Mapping[str, str] = field(default_factory=dict)
    """ISO 639 code → code of the service."""
    paid: bool = False
    """A search may be charged; the amount depends on the account's plan and is unknown."""
    ends_on: date | None = None
    """First day on which the service answers nobody, as its operator has announced."""
    successor: str = ""
    """Name of the provider to use in its place."""
    fallback: bool = False
    """It is used for web pages only if no provider of the whole web is set up."""
    papers_alone: bool = False
    """It is used where nothing but papers is requested, or where it is named: among pages of the web its papers, which
    it finds for any words, would take most of the places."""
    private: bool = False
    """It searches documents of the operator, and so is no provider of the whole web."""
    refused_hint: str = ""
    """Advice shown when the service refuses a call."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What each of its variables means, in Markdown, for the page of the configuration."""
    page: ProviderPage | None = None
    """For the page of search providers; None for providers of packages, which are documented there."""

    @property
    def required_variables(self) -> tuple[str, ...]:
        """Return the variables without which it cannot be used, besides a key that has an alternative."""
        required = []
        if self.key_variable and self.key_required and not self.key_alternative:
            required.append(self.key_variable)
        if not self.address:
            required.append(self.address_variable)
        return (*required, *self.other_variables)

    @property
    def variables(self) -> tuple[str, ...]:
        """Return all of its variables."""
        keys = (self.key_variable, self.key_alternative)
        return tuple(filter(None, dict.fromkeys((*keys, *self.other_variables, self.address_variable))))

    def missing(self, values: Mapping[str, str]) -> list[str]:
        """Return the variables to set before it can be used; a choice of two as `ONE or OTHER`."""
        missing = [variable for variable in self.required_variables if not values.get(variable)]
        keys = (self.key_variable, self.key_alternative)
        if self.key_alternative and not any(map(values.get, keys)):
            missing.insert(0, " or ".join(keys))
        return missing

    def address_in(self, values: Mapping[str, str]) -> str:
        """Return its address with these variables."""
        address = values.get(self.address_variable) or self.address
        named = [LOCATION.search(values.get(variable, "")) for variable in self.other_variables]
        regions = [match[1] for match in named if match and match[1] != GLOBAL]
        return address.replace(REGION_PLACE, f"{regions[0]}-" if regions else "")

    def has_ended(self, today: date) -> bool:
        """Return whether its service answers nobody any more."""
        return self.ends_on is not None and today >= self.ends_on

    def allowed_searches(self, values: Mapping[str, str]) -> float | None:
        """Return the searches a minute that the service allows with these variables; None if it states no limit."""
        if values.get(self.key_variable) and self.searches_per_minute_with_key:
            return self.searches_per_minute_with_key
        return self.searches_per_minute or None

    def language_code(self, language: str | None) -> str | None:
        """Return its code of a language; None for an unsupported one."""
        code = self.own_languages.get(language or "", language)
        if code not in {*self.languages.split(), *self.own_languages.values()}:
            return None
        return code

    def problem(self, values: Mapping[str, str]) -> str | None:
        """Return the reason why it cannot be used with these variables, or None; their values are not shown."""
        missing = self.missing(values)
        if missing:
            return Message("provider_unset", variables=" and ".join(missing))
        key = values.get(self.key_variable)
        address = self.address_in(values)
        if not address.startswith(("https://", "http://")):
            return Message("provider_scheme", variable=self.address_variable)
        try:
            parts = urlsplit(address)
            usable = bool(parts.hostname) and parts.port != 0
            if key:
                ensure_key(key, self.key_variable)
            if key or values.get(self.key_alternative):
                named = self.key_variable if key else self.key_alternative
                ensure_confidential(values[named], address, self.address_variable, named)
        except ValueError:
            usable = False
        except NotConfigured as error:
            return str(error)
        if usable:
            return None
        return Message("provider_address", variable=self.address_variable)

    def open(self, client: "httpx2.AsyncClient", values: Mapping[str, str]) -> SearchProvider:
        """Load the class and make the provider; `values` are its variables.

        Raises `NotConfigured`, also for a class of a package that cannot be used.
        """
        kind = self.load()
        if self in BUILT_IN:
            own: SearchProvider = kind(client, self, values)
            return own
        try:
            provider: SearchProvider = kind(client, self, values)
        except ProviderError:
            raise
        except Exception as error:  # noqa: BLE001  the code of a package may raise anything
            problem = fault(error, self.implementation.partition(":")[0])
            raise NotConfigured(f"{self._what} cannot be made: {problem}; {REMEDY}") from None
        if getattr(provider, "name", None) != self.name:
            problem = f"its class {self.implementation} gives it no attribute `name` of that value"
            raise NotConfigured(f"{self._what} cannot be used: {problem}; {REMEDY}")
        return provider

    def failed(self, error: Exception) -> PackageFault | None:
        """Return the fault of its package for an error of a search that is none of ours; None without a package."""
        if self in BUILT_IN:
            return None
        return PackageFault(f"{self._what} fails: {fault(error, self.implementation.partition(':')[0])}; {REMEDY}")

    @property
    def _what(self) -> str:
        """The provider and its package, for messages."""
        return " of ".join(filter(None, [f"the search provider {self.name}", _packages.get(self.name)]))

    def load(self) -> type[Any]:
        """Load the class. Raises `NotConfigured` for one of a package that cannot be used."""
        if self in BUILT_IN:
            module, _, name = self.implementation.partition(":")
            own: type[Any] = getattr(import_module(module, __package__), name)
            return own
        try:
            return load_class(self._what, self.implementation, ["search"])
        except PackageFault as error:
            raise NotConfigured(str(error)) from None


class ServicesFile(StrictContract):
    """The declarations of the product's own providers; a misspelt table or key is refused by name."""

    services: tuple[SearchDeclaration, ...]


def read_services(text: str) -> tuple[SearchDeclaration, ...]:
    """Return the declarations of a file `services.toml`. Raises ValueError for what is no declaration."""
    return ServicesFile.model_validate(tomllib.loads(text)).services


BUILT_IN: Final = read_services(files(__package__ or "").joinpath("services.toml").read_text(encoding="utf-8"))
_declared: Final = {provider.name: provider for provider in BUILT_IN}
_packages: dict[str, str] = {}
"""Name of a provider of a package → name and version of the package."""


def declare_installed() -> None:
    """Declare the providers of installed packages. Raises ValueError, which names the faulty one and its package."""
    for entry in entry_points(group=ENTRY_POINTS):
        what = f"the search provider {entry.name}"
        declaration = load_declaration(what, entry, SearchDeclaration)
        if _declared.setdefault(declaration.name, declaration) != declaration:
            raise ValueError(f"two search providers are named {declaration.name}")
        _packages[declaration.name] = package_of(entry)
        note_package([declaration.implementation.partition(":")[0]], package_of(entry))


def packages_of_providers() -> Mapping[str, str]:
    """Return the name and the version of the package by provider, for those that are not of the product."""
    return _packages


def declared_names() -> tuple[str, ...]:
    """Return the names of all providers in order of use; the model's endpoint comes last."""
    return (*(name for name in _declared if name != BY_MODEL), BY_MODEL)


def search_declaration(name: str) -> SearchDeclaration:
    """Return the declaration of a provider; any server of documents has one. Raises KeyError for an undeclared name."""
    if name.startswith(SERVER_PREFIX):
        return SearchDeclaration(name, name, "", private=True)
    return _declared[name]


def search_variables() -> tuple[str, ...]:
    """Return every variable that sets up a provider, except those of models."""
    declared = (provider.variables for provider in _declared.values() if provider.name != BY_MODEL)
    return tuple(dict.fromkeys(variable for variables in declared for variable in variables))


def address_variables() -> frozenset[str]:
    """Return the variables that set an address."""
    return frozenset(provider.address_variable for provider in _declared.values())


# --- servers of documents that the operator names ------------------------------------------------------------------
@dataclass(frozen=True)
class FieldNames:
    """Names in the calls and answers of a server; paths into an answer have dots between their parts."""

    query: str = "query"
    limit: str = ""
    results: str = "results"
    id: str = "id"
    title: str = "title"
    text: str = "text"
    url: str = "url"
    date: str = "date"


@dataclass(frozen=True)
class ServerDefinition:
    """A server of documents as the operator has set it up."""

    name: str
    """Name of the provider, `mcp.NAME`."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    missing: tuple[str, ...] = ()
    """Variables that are named and not set."""
    search_tool: str = "search"
    fetch_tool: str = "fetch"
    """Empty if the text of a result is the whole document."""
    fields: FieldNames = field(default_factory=FieldNames)
    media_type: str = "text/plain"
    seconds: float = 30.0

    @property
    def place(self) -> str:
        """The host that gets the queries; for a program, the name of the provider, as it may send them anywhere."""
        if self.url:
            return urlsplit(self.url).netloc.rpartition("@")[2]
        return self.name

    def problem(self) -> str | None:
        """Return the reason why it cannot be used, or None."""
        if self.missing:
            return Message("provider_unset", variables=" and ".join(self.missing))
        if self.headers and not is_confidential(self.url):
            return f"search.{self.name}.url begins with http:// and leads to another machine: write https://"
        return None

    def mapping(self, tools: Mapping[str, Sequence[str]]) -> str:
        """Return how these tools, each with its arguments, are used: what is sent, and what is read in the answers."""
        names = self.fields
        result = ", ".join(filter(None, (names.id, names.title, names.text, names.url, names.date)))
        limit = f", {names.limit}" if names.limit else ""
        search = f"{self.search_tool}({names.query}{limit}) gives {names.results}: {result}"
        fetches = bool(self.fetch_tool) and self.fetch_tool in tools
        if fetches:
            whole = f"{self.fetch_tool}({names.id}) gives {names.text}"
        else:
            whole = f"{names.text} is the whole document"
        return f"{search}; {whole}"

    def missing_in(self, tools: Mapping[str, Sequence[str]]) -> str:
        """Return what the tools lack, with the setting to change; empty if they fit."""
        place = f"search.{self.name}"
        needs = [(self.search_tool, "search_tool", self.fields.query, "query")]
        if self.fields.limit:
            needs += [(self.search_tool, "search_tool", self.fields.limit, "limit")]
        if self.fetch_tool in tools:
            needs += [(self.fetch_tool, "fetch_tool", self.fields.id, "id")]
        lines = []
        for tool, setting, argument, name in needs:
            if tool not in tools:
                lines.append(f"it has no tool {tool}: set {place}.{setting}")
            elif argument not in tools[tool]:
                lines.append(f"{tool} has no argument {argument}: set {place}.fields.{name}")
        return "; ".join(dict.fromkeys(lines))

    def choice(self) -> ProviderChoice:
        """Return it as a provider that a run may choose."""
        problem = self.problem()
        declaration = search_declaration(self.name)
        return ProviderChoice(
            name=self.name,
            available=problem is None,
            reason=problem or "set up",
            host=self.place,
            source_types=list(declaration.source_types),
        )
