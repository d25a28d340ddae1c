"""`init`: ask for a model, a search service, a cap and a folder, try each once, and write `research.toml`."""

import difflib
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import platformdirs
import tomlkit
import typer
from typer import Option

from client.cli.corpus import name_of_folder, usable_folder
from client.cli.options import Commands
from client.cli.output import CommandError, ExitCode, ensure_folder, print_hint, print_progress, quote, read_start
from client.cli.reports import write_atomically
from contracts.messages import SearchRequest
from contracts.outcome import Usage
from contracts.request import Depth
from contracts.texts import plural, visible
from providers.errors import InvalidCall, NotConfigured, ProviderError
from providers.models.chat import ChatReply, ChatRequest
from providers.models.endpoints import DEFAULT_ENDPOINT, PriceTable, split_name, weakened
from providers.search.declarations import BY_MODEL, SearchDeclaration, declared_names, search_declaration
from workers.settings.loading import Flags, Settings, SettingsError, load_settings
from workers.settings.models import OPENAI_ADDRESS, PUBLIC_HOST, host_of, key_variable
from workers.settings.places import APPLICATION, FILE_NAME, VARIABLES_FILE, read_variables

Provider = Literal["none", "messages", "chat"]

CHAT_ENDPOINT: Final = "chat"
"""Name of the endpoint that speaks chat completions in the file."""
PUBLIC_ADDRESSES: Final[Mapping[str, str]] = {"messages": f"https://{PUBLIC_HOST}", "chat": OPENAI_ADDRESS}
PROVIDERS: Final[Mapping[str, str]] = {
    "none": "no model: reports are passages, word for word; nothing is sent anywhere",
    "messages": "the Messages API: api.anthropic.com, or an address of yours",
    "chat": "chat completions: api.openai.com, or an address of yours (llama.cpp, Ollama, vLLM, …)",
}
NO_SERVICE: Final = "none"
MAX_KEY_BYTES: Final = 4_096
DIFF_LINES: Final = 200

TRIAL_SYSTEM: Final = "You answer with one word."
TRIAL_PROMPT: Final = "Is this connection ready?"
TRIAL_INPUT_TOKENS: Final = 30
"""Most input tokens that the trial is billed, for its price."""
TRIAL_OUTPUT_TOKENS: Final = 64
"""A model that reasons first uses them up, which also shows that it answers."""
TRIAL_SECONDS: Final = 60.0
TRIAL_QUERY: Final = "history of the printing press"
MAX_REFUSALS: Final = 4
"""Parameters that an endpoint may refuse before the trial counts as failed."""

commands = Commands()


@dataclass(frozen=True, kw_only=True)
class InitAnswers:
    """What a person wants to be configured."""

    provider: Provider = "none"
    url: str = ""
    """Address of the endpoint; empty for the public one of the protocol."""
    model: str = ""
    simple: str = ""
    """Model of simple work; empty: `model`."""
    writing: str = ""
    """Model that writes; empty: `model`."""
    key: str = ""
    """Empty: the known one stays, if there is one."""
    cap_usd: float | None = None
    """None: what is configured stays."""
    service: str = NO_SERVICE
    """Search service whose key or address is set."""
    service_values: Mapping[str, str] = field(default_factory=dict)
    """Its key, address and other variables, by name."""
    corpus: Path | None = None

    @property
    def endpoint(self) -> str:
        """The name of the model's endpoint."""
        return CHAT_ENDPOINT if self.provider == "chat" else DEFAULT_ENDPOINT

    @property
    def key_variable(self) -> str:
        """The variable with the key of the model's endpoint."""
        return key_variable(self.endpoint)


@dataclass(frozen=True, kw_only=True)
class InitOptions:
    """Options of `init`; None means: ask, or with --yes what is configured now."""

    provider: Annotated[Provider | None, Option(help="protocol of the model's endpoint")] = None
    url: Annotated[str | None, Option(metavar="URL", help="address of the endpoint [that of the public API]")] = None
    model: Annotated[str | None, Option(metavar="NAME", help="the model for every role")] = None
    model_simple: Annotated[str | None, Option(metavar="NAME", help="a cheaper one for simple work")] = None
    model_writing: Annotated[str | None, Option(metavar="NAME", help="another one that writes reports")] = None
    key_file: Annotated[
        Path | None, Option(metavar="FILE|-", help="read the key from here; - for standard input; or set its variable")
    ] = None
    cap: Annotated[float | None, Option(metavar="USD", min=0, help="most US dollars that a run may cost")] = None
    search: Annotated[str | None, Option(metavar="NAME", help="a search service that needs a key, or none")] = None
    search_key_file: Annotated[
        Path | None, Option(metavar="FILE|-", help="read its key from here, or lines of NAME=value")
    ] = None
    corpus: Annotated[str | None, Option(metavar="DIR", help="a first folder of documents")] = None
    no_try: Annotated[bool, Option("--no-try", help="call nothing; else each service is tried once")] = False
    yes: Annotated[bool, Option("--yes", "-y", help="ask nothing: take the options, and what is configured now")] = (
        False
    )


@commands.command("init")
async def init(options: InitOptions) -> int:
    """Write research.toml: the model, its key, a search service, the cap of a run, a first folder; try each once.

    Asks for what no option names. What the file has besides is untouched, a difference is shown before it is written,
    and Ctrl-C leaves everything as it was. Keys are typed without being shown, or read from a file or a variable; they
    are stored in research.env beside it, which you alone can read, and never in research.toml.

    research init
    research init --yes --provider messages --model NAME --key-file key.txt --cap 1.50
    research init --yes --provider chat --url http://127.0.0.1:11434/v1 --model qwen3 --corpus ~/handbook
    research init --yes --provider none --search tavily --search-key-file - < key.txt
    """
    folder = platformdirs.user_config_path(APPLICATION)
    settings = load_settings()
    files = SettingsFiles(folder)
    print_progress(f"settings go to {folder / FILE_NAME}, keys to {folder / VARIABLES_FILE} (readable by you alone)")
    answers = _from_options(options, settings) if options.yes else _ask_all(options, settings)
    _check(answers, settings)
    ensure_folder(folder, "choose another XDG_CONFIG_HOME, or write the file by hand: docs/configuration.md")
    with files.proposed(answers, settings) as proposal:
        if not options.no_try:
            await _try_all(proposal.settings, answers, ask=not options.yes)
        if not proposal.differs:
            print_progress("everything is as you want it already: nothing is written")
        elif options.yes or _confirms(proposal.text_of_changes()):
            if options.yes:
                print_progress(proposal.text_of_changes())
            proposal.accept()
            print_progress(f"written: {folder / FILE_NAME}")
        else:
            print_progress("nothing is written")
            return ExitCode.CANCELLED
        configured = proposal.settings
    print_hint(f"next: {_next_command(configured, answers)}")
    return ExitCode.COMPLETED


def _next_command(settings: Settings, answers: InitAnswers) -> str:
    path = answers.corpus
    name = next((name for name, corpus in settings.corpus.items() if path is not None and corpus.path == path), None)
    name = name or next(iter(settings.corpus), None)
    return f'research run "…" --corpus {name}' if name else 'research run "…"      (searches the web)'


# --- the questions ----------------------------------------------------------------------------------------------------


def _from_options(options: InitOptions, settings: Settings) -> InitAnswers:
    """Return the options, and what is configured now for those that are not given. Raises `CommandError`."""
    current = current_answers(settings)
    provider = options.provider or current.provider
    if options.model and not options.provider and provider == "none":
        provider = "messages"
    kept = InitAnswers()
    if provider == current.provider:
        kept = replace(current, simple="", writing="") if options.model else current
    answers = InitAnswers(
        provider=provider,
        url=kept.url if options.url is None else options.url,
        model=options.model or kept.model,
        simple=options.model_simple or kept.simple,
        writing=options.model_writing or kept.writing,
        cap_usd=options.cap,
        service=options.search or NO_SERVICE,
        corpus=_folder(options.corpus),
    )
    return _with_files(answers, options)


def _with_files(answers: InitAnswers, options: InitOptions) -> InitAnswers:
    """Add the keys that files have."""
    if options.key_file is not None:
        answers = replace(answers, key=_read_key(options.key_file, "the key"))
    if options.search_key_file is not None:
        text = _read_key(options.search_key_file, "the key of the search service")
        first, *others = _variables_of(_service(answers.service))
        pairs = [line.partition("=") for line in text.splitlines()]
        named = {
            name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip() in (first, *others)
        }
        answers = replace(answers, service_values=named or {first: text})
    return answers


def _ask_all(options: InitOptions, settings: Settings) -> InitAnswers:
    """Ask at the terminal for everything that no option names. Raises `CommandError` without a terminal."""
    if not sys.stdin.isatty():
        raise CommandError(
            "there is no terminal to ask at: add --yes, and name what should differ from the configuration now: "
            "--provider none, messages or chat; --url, --model, --key-file; --cap; --search, --search-key-file; "
            "--corpus"
        )
    with interruptible():
        return _ask(options, settings)


def _ask(options: InitOptions, settings: Settings) -> InitAnswers:
    known = current_answers(settings)
    answers = InitAnswers(provider=options.provider or _choose("model", PROVIDERS, known.provider))  # type: ignore[arg-type]
    same = answers.provider == known.provider
    if answers.provider != "none":
        public = PUBLIC_ADDRESSES[answers.provider]
        url = options.url or _text("address of its endpoint", (known.url if same else "") or public)
        model = options.model or _text("model for every role", known.model if same else "")
        answers = replace(answers, url="" if url == public else url, model=model)
        simple = _text("cheaper model for simple work (Enter: the same)", (known.simple if same else "") or model)
        writing = _text("model that writes reports (Enter: the same)", (known.writing if same else "") or model)
        answers = replace(
            answers,
            simple=options.model_simple or ("" if simple == model else simple),
            writing=options.model_writing or ("" if writing == model else writing),
        )
        if options.key_file is None:
            has_key = answers.endpoint in settings.model_keys()
            hint = "Enter: keep the known one" if has_key else "Enter: none, as for most local servers"
            answers = replace(answers, key=_hidden(f"key (not shown; {hint})"))
        usual = known.cap_usd if known.cap_usd is not None else 0.0
        cap = options.cap if options.cap is not None else _number("most US dollars that a run may cost", usual)
        answers = replace(answers, cap_usd=None if options.cap is None and cap == usual else cap)
    services = {NO_SERVICE: "Wikipedia and others that need no key, and documents of yours"}
    services |= {one.name: f"{one.label} ({', '.join(_variables_of(one))})" for one in _services()}
    service = options.search or _choose("search service", services, NO_SERVICE)
    answers = replace(answers, service=service)
    if service != NO_SERVICE and options.search_key_file is None:
        declaration = _service(service)
        values = {}
        for variable in _variables_of(declaration):
            hint = " (Enter: keep the known one)" if variable in settings.search_values() else ""
            ask = _hidden if variable == declaration.key_variable else _optional
            values[variable] = ask(f"{variable}{hint}")
        answers = replace(answers, service_values=values)
    folder = options.corpus if options.corpus is not None else _optional("folder of your documents (Enter: none)")
    answers = replace(answers, corpus=_folder(folder))
    return _with_files(answers, options)


def current_answers(settings: Settings) -> InitAnswers:
    """Return what is configured now, as far as `init` asks for it."""
    tiers = settings.models.by_tier()
    cap = settings.preset("supervisor", Depth.MEDIUM).max_cost_usd
    if not tiers:
        return InitAnswers(cap_usd=cap)
    endpoint, model = split_name(tiers["analytical"], settings.models.endpoints)
    names = {tier: split_name(name, settings.models.endpoints)[1] for tier, name in tiers.items()}
    own = settings.models.endpoints.get(endpoint)
    is_chat = settings.uses_openai_variables or (own is not None and own.api == "chat")
    url = settings.models.address_of(endpoint) or ""
    provider: Provider = "chat" if is_chat else "messages"
    return InitAnswers(
        provider=provider,
        url="" if url == PUBLIC_ADDRESSES[provider] else url,
        model=model,
        simple="" if names["simple"] == model else names["simple"],
        writing="" if names["complex"] == model else names["complex"],
        cap_usd=cap,
    )


def _choose(what: str, choices: Mapping[str, str], default: str) -> str:
    print_progress(f"\n{what}:")
    for name, meaning in choices.items():
        print_progress(f"  {name:<16} {meaning}")
    while True:
        chosen = _text("which", default)
        if chosen in choices:
            return chosen
        print_progress(f"there is no {quote(chosen)}: choose one of {', '.join(choices)}")


def _text(question: str, default: str) -> str:
    text: str = typer.prompt(question, default=default or None, err=True)
    return text.strip()


def _optional(question: str) -> str:
    text: str = typer.prompt(question, default="", show_default=False, err=True)
    return text.strip()


def _hidden(question: str) -> str:
    text: str = typer.prompt(question, default="", show_default=False, hide_input=True, err=True)
    return text.strip()


def _number(question: str, default: float) -> float:
    number: float = typer.prompt(question, default=default, type=float, err=True)
    return number


def _confirms(text: str) -> bool:
    print_progress(text)
    with interruptible():
        return typer.confirm("write this?", default=True, err=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end a question at once during the block: the event loop would wait for its answer."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _folder(text: str | None) -> Path | None:
    if not text:
        return None
    return usable_folder(text, f"{quote(text)} is not there: name a folder of documents")


def _read_key(path: Path, noun: str) -> str:
    """Read a key from a file, or from standard input for `-`. Raises `CommandError`."""
    data = sys.stdin.buffer.read(MAX_KEY_BYTES) if path == Path("-") else read_start(path, MAX_KEY_BYTES, noun)
    text = data.decode("utf-8", "replace").strip()
    if not text:
        raise CommandError(f"{noun} is empty: write it into the file, in one line")
    return text


# --- checks before anything is tried ----------------------------------------------------------------------------------


def _check(answers: InitAnswers, settings: Settings) -> None:
    """Raise `CommandError` for answers that cannot work, naming the option."""
    if answers.provider != "none" and not answers.model:
        raise CommandError(f"no model is named for {answers.provider}: add --model NAME")
    if answers.provider == "none" and (answers.model or answers.key):
        raise CommandError("a model or a key is named, and --provider none: choose messages or chat")
    values = {answers.key_variable: answers.key, **answers.service_values}
    for name, value in values.items():
        if any(sign.isspace() or not sign.isprintable() for sign in value):
            raise CommandError(f"{name} holds a space or an invisible character: it must be one line without any")
    public = answers.provider != "none" and not answers.url
    has_key = answers.key or answers.endpoint in settings.model_keys() or uses_openai_variables(answers, settings)
    if public and not has_key:
        host = host_of(PUBLIC_ADDRESSES[answers.provider])
        raise CommandError(f"{host} needs a key: type it, name --key-file, or set {answers.key_variable}")
    if answers.service != NO_SERVICE:
        known = settings.search_values() | {name: value for name, value in answers.service_values.items() if value}
        missing = [name for name in _service(answers.service).required_variables if name not in known]
        if missing:
            raise CommandError(
                f"{answers.service} needs {missing[0]}: type it, set it, or name a --search-key-file with lines of "
                "NAME=value"
            )


def uses_openai_variables(answers: InitAnswers, settings: Settings) -> bool:
    """Return true if the key of the variables `OPENAI_…` is the one to use, without an endpoint in the file."""
    return answers.provider == "chat" and not answers.url and not answers.key and settings.openai_api_key is not None


def _services() -> list[SearchDeclaration]:
    """Return the search services that need a key or an address."""
    declared = [search_declaration(name) for name in declared_names() if name != BY_MODEL]
    return [one for one in declared if _variables_of(one)]


def _service(name: str) -> SearchDeclaration:
    """Return a service by its name. Raises `CommandError`."""
    for one in _services():
        if one.name == name:
            return one
    names = ", ".join(one.name for one in _services())
    raise CommandError(f"there is no search service {quote(name)} with a key: choose one of {names}, or none")


def _variables_of(declaration: SearchDeclaration) -> list[str]:
    """Return the variables of a service that a person sets: its key, its address if it has none, further ones."""
    key = [declaration.key_variable] if declaration.key_variable else []
    address = [] if declaration.address else [declaration.address_variable]
    return [*key, *address, *declaration.other_variables]


# --- the files --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProposedFiles:
    """Files that lie beside the present ones, ready to take their place."""

    settings: Settings
    """As they would be."""
    moves: Mapping[Path, Path]
    """New file → the file that it replaces; only those that differ."""
    old_text: str
    new_text: str
    variables: Mapping[str, bool]
    """Variables that are set → true if they replace another value."""

    @property
    def differs(self) -> bool:
        """True if anything would change."""
        return bool(self.moves)

    def text_of_changes(self) -> str:
        """Return the differences as lines; of variables only the names."""
        lines = list(
            difflib.unified_diff(self.old_text.splitlines(), self.new_text.splitlines(), "now", FILE_NAME, lineterm="")
        )
        more = len(lines) - DIFF_LINES
        shown = [visible(line) for line in lines[:DIFF_LINES]] + [f"… {plural(more, 'more line')}"] * (more > 0)
        for name, is_replaced in self.variables.items():
            shown.append(f"{VARIABLES_FILE}: {name} is {'replaced' if is_replaced else 'set'}")
        return "\n".join(shown)

    def accept(self) -> None:
        """Put the new files in place, each at once; a link leads to its file as before."""
        for new, target in self.moves.items():
            new.replace(target.resolve())


@dataclass(frozen=True)
class SettingsFiles:
    """`research.toml` and `research.env` of a folder."""

    folder: Path

    @contextmanager
    def proposed(self, answers: InitAnswers, settings: Settings) -> Iterator[ProposedFiles]:
        """Write the new files beside the present ones for the block, and remove what is not accepted.

        Raises `CommandError` if the result would be no valid configuration.
        """
        toml = self.folder / FILE_NAME
        env = self.folder / VARIABLES_FILE
        old_text = _read(toml)
        new_text = edited(old_text, answers, settings)
        old_variables = read_variables(env)
        changes = {name: value for name, value in _variables(answers).items() if old_variables.get(name) != value}
        suffix = f".{secrets.token_hex(4)}.new"
        new_toml = self.folder / (FILE_NAME + suffix)
        new_env = self.folder / (VARIABLES_FILE + suffix)
        try:
            write_atomically(new_toml, new_text.encode())
            if toml.exists():
                shutil.copymode(toml, new_toml)
            _write_private(new_env, with_variables(_read(env), changes))
            try:
                proposed = load_settings(Flags(), suffix=suffix)
            except SettingsError as error:
                raise CommandError(f"that would be no valid configuration:\n{str(error).replace(suffix, '')}") from None
            moves = {}
            if changes:
                moves[new_env] = env
            if new_text != old_text:
                moves[new_toml] = toml
            yield ProposedFiles(proposed, moves, old_text, new_text, {name: name in old_variables for name in changes})
        finally:
            new_toml.unlink(missing_ok=True)
            new_env.unlink(missing_ok=True)


def with_variables(text: str, changes: Mapping[str, str]) -> str:
    """Return the text of a `research.env` with the variables in it; other lines stay as they are."""
    left = dict(changes)
    lines = []
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        lines.append(f"{name}={left.pop(name)}" if name in left else line)
    lines += [f"{name}={value}" for name, value in left.items()]
    return "".join(f"{line}\n" for line in lines)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def edited(text: str, answers: InitAnswers, settings: Settings) -> str:
    """Return the text of a `research.toml` with the answers in it; everything else stays as it is written."""
    document = tomlkit.parse(text)
    if _models_of(answers) != _models_of(current_answers(settings)) or answers.key:
        _edit_models(document, answers, by_variables=uses_openai_variables(answers, settings))
    if answers.cap_usd is not None and settings.runs.max_cost_usd != answers.cap_usd:
        _table(document, "runs")["max_cost_usd"] = answers.cap_usd
    if answers.corpus is not None:
        folders = {name: corpus.path for name, corpus in settings.corpus.items()}
        if answers.corpus not in folders.values():
            name = name_of_folder(answers.corpus, folders)
            _table(document, "corpus", name)["path"] = str(answers.corpus)
    return tomlkit.dumps(document)


def _models_of(answers: InitAnswers) -> tuple[str, ...]:
    return (answers.provider, answers.url, answers.model, answers.simple, answers.writing)


def _edit_models(document: tomlkit.TOMLDocument, answers: InitAnswers, *, by_variables: bool) -> None:
    """Name the models and their endpoint; without a provider, name no model. Prices and other endpoints stay."""
    if answers.provider == "none":
        models = document.get("models", {})
        for tier in ("default", "simple", "analytical", "complex"):
            models.pop(tier, None)
        return
    models = _table(document, "models")
    prefix = f"{CHAT_ENDPOINT}:" if answers.provider == "chat" and not by_variables else ""
    names = {"default": answers.model, "simple": answers.simple, "complex": answers.writing}
    models.pop("analytical", None)
    for tier, name in names.items():
        _set(models, tier, f"{prefix}{name}" if name else None)
    if prefix:
        is_new = CHAT_ENDPOINT not in models.get("endpoints", {})
        endpoint = _table(document, "models", "endpoints", CHAT_ENDPOINT)
        _set(endpoint, "base_url", answers.url or OPENAI_ADDRESS)
        _set(endpoint, "api", "chat")
        if is_new:
            endpoint.add(tomlkit.nl())
    else:
        _set(models, "base_url", answers.url or None)


def _set(table: Any, name: str, value: str | None) -> None:
    """Set a key, or remove it for None; an equal value stays as it is written."""
    if value is None:
        table.pop(name, None)
    elif value not in (table.get(name), *_first_of(table.get(name))):
        table[name] = value


def _first_of(value: Any) -> list[str]:
    """Return the preferred one of a list of models, which stays with its substitutes."""
    return [str(value[0])] if isinstance(value, list) and value else []


def _table(document: Any, *names: str) -> Any:
    """Return a table, made where it is missing."""
    table = document
    for number, name in enumerate(names):
        if name not in table:
            table[name] = tomlkit.table(is_super_table=number + 1 < len(names))
        table = table[name]
    return table


def _variables(answers: InitAnswers) -> dict[str, str]:
    """Return the variables that the answers set."""
    found = {answers.key_variable: answers.key} if answers.provider != "none" else {}
    if answers.service != NO_SERVICE:
        found |= answers.service_values
    return {name: value for name, value in found.items() if value}


def _write_private(path: Path, text: str) -> None:
    """Write a file that its owner alone can read, from its first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


# --- one call of each -------------------------------------------------------------------------------------------------


async def _try_all(settings: Settings, answers: InitAnswers, *, ask: bool) -> None:
    """Call each model and the search service once, and print what came back; a failure is a line, not the end."""
    if answers.provider != "none":
        for name in dict.fromkeys(settings.models.by_tier().values()):
            if _agrees(f"one call to {name} at {_host(settings, name)}, {_price(settings, name)}", ask=ask):
                await _report(lambda name=name: _try_model(settings, name), name)  # type: ignore[misc]
    if answers.service != NO_SERVICE:
        paid = "its plan may charge for it" if _service(answers.service).paid else "no charge"
        if _agrees(f"one search with {answers.service}, {paid}", ask=ask):
            await _report(lambda: _try_search(settings, answers.service), answers.service)


def _agrees(what: str, *, ask: bool) -> bool:
    if not ask:
        print_progress(f"trying {what}")
        return True
    with interruptible():
        return typer.confirm(f"try {what}?", default=True, err=True)


async def _report(attempt: Callable[[], Any], name: str) -> None:
    try:
        found = await attempt()
    except ProviderError as error:
        print_progress(f"  {name} does not work yet: {error}; `research doctor` tries again")
        return
    print_progress(f"  {found}")


def _host(settings: Settings, name: str) -> str:
    return host_of(settings.models.base_url_of(split_name(name, settings.models.endpoints)[0]))


def _price(settings: Settings, name: str) -> str:
    usage = Usage(input_tokens=TRIAL_INPUT_TOKENS, output_tokens=TRIAL_OUTPUT_TOKENS, cost_usd=0.0)
    model = split_name(name, settings.models.endpoints)[1]
    cost = PriceTable(settings.models.prices).cost_usd(model, usage, full_name=name)
    tokens = f"at most {TRIAL_INPUT_TOKENS + TRIAL_OUTPUT_TOKENS} tokens"
    return f"{tokens}, price unknown" if cost is None else f"{tokens}, at most {cost:.6f} USD"


async def _try_model(settings: Settings, name: str) -> str:
    """Send one short request to a model. Raises `ProviderError`."""
    from workers.composition import open_endpoint  # noqa: PLC0415  it costs half a second, and wrong input comes first

    endpoint_name, model = split_name(name, settings.models.endpoints)
    endpoint = open_endpoint(settings, endpoint_name)
    if endpoint.chat is None:
        raise NotConfigured(endpoint.remedy)
    capabilities = endpoint.capabilities(model)
    request = ChatRequest(
        model=model,
        system=TRIAL_SYSTEM,
        prompt=TRIAL_PROMPT,
        max_tokens=TRIAL_OUTPUT_TOKENS,
        timeout_seconds=TRIAL_SECONDS,
        silence_seconds=TRIAL_SECONDS,
        refuses=capabilities.refuses,
    )
    began = time.monotonic()  # importing a client takes longer than many a call
    try:
        reply: ChatReply | None = None
        for _ in range(MAX_REFUSALS):
            try:
                reply = await endpoint.chat.complete(request)
                break
            except InvalidCall as error:
                weaker = weakened(capabilities, request, error.kind)
                if weaker is None:
                    raise
                capabilities = weaker
                request = replace(request, refuses=weaker.refuses)
    finally:
        await endpoint.chat.close()
    if reply is None:
        raise NotConfigured(f"the endpoint refuses every form of the request: see models.endpoints.{endpoint_name}")
    cost = PriceTable(settings.models.prices).cost_usd(model, reply.usage, full_name=name)
    used = plural(reply.usage.input_tokens + reply.usage.output_tokens, "token")
    price = "price unknown" if cost is None else f"{cost:.6f} USD"
    return f"{name} answered after {time.monotonic() - began:.1f} s: {used}, {price}"


async def _try_search(settings: Settings, name: str) -> str:
    """Send one query to a search service. Raises `ProviderError`."""
    from workers.composition import open_search_providers  # noqa: PLC0415  as above

    query = SearchRequest(research_id="init", operation="search/init", provider=name, text=TRIAL_QUERY)
    async with open_search_providers(settings, [name]) as providers:
        began = time.monotonic()
        answer = await providers[name].search(query)
    return f"{name} answered after {time.monotonic() - began:.1f} s: {plural(len(answer.hits), 'hit')}"
