"""One read or one search as a worker makes it, and the results of checks as `doctor` prints them."""

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from client.cli.context import CommandContext
from client.cli.corpus import find_corpus, index_corpus
from client.cli.output import CommandError, ExitCode, print_json, print_progress, print_result, quote
from client.view.words import pasteable, printable
from contracts.addresses import digest
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import CORPUS_SCHEME, SERVER_PREFIX, SERVER_SCHEME
from contracts.packages import PackageFault
from contracts.texts import plural
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, SourceUnreadable, Unavailable
from providers.interfaces import ExtractedDocument, SearchProvider
from providers.search.corpus.library import ingest_file
from providers.search.declarations import search_declaration
from providers.shared.limits import Limiter
from workers.composition import open_firecrawl, open_search_providers, open_servers, open_web_reader
from workers.resolution_inputs import search_choices
from workers.shared_state import open_shared_state

SHOWN_CHARACTERS: Final = 1_500
SNIPPET_CHARACTERS: Final = 300
SEARCH_REMEDIES: Final = {
    RateLimited: "try again later; a key raises the limits of some services",
    Unavailable: "check the network, and try again later",
    NotConfigured: "correct the variable that is named, or leave the provider out of search.providers",
    InvalidCall: "try other words",
}
"""What to do after the failure of a search, by its kind."""
ADDRESS: Final = re.compile(r"//|\s*[a-z][a-z0-9+.\s-]+:", re.IGNORECASE)
"""A URL, even a malformed one; a single letter before the colon is a drive."""


@dataclass(frozen=True)
class Check:
    """A line of the report: subject, severity, finding, remedy."""

    name: str
    grade: Literal["ok", "warn", "fail"]
    found: str
    remedy: str = ""


def print_check(check: Check) -> None:
    """Print a check with its remedy on a line of its own."""
    remedy = f"\n{'':<18}→ {check.remedy}" if check.remedy else ""
    print_result(pasteable(f"{check.grade:<5}{check.name:<12} {check.found}{remedy}"))


def print_checks(checks: Sequence[Check], *, as_json: bool) -> None:
    """Print all checks, as lines or as one JSON list."""
    if as_json:
        print_json([asdict(check) for check in checks])
        return
    for check in checks:
        print_check(check)


async def try_reads(context: CommandContext, inputs: list[str], *, as_json: bool) -> int:
    """Read documents as a worker does; exit code 4 if any of them cannot be read.

    With `as_json`, each input gives one line with the same fields, for a document or an error.
    """
    code = ExitCode.COMPLETED
    for target in inputs:
        record = {"input": target, "ok": True, "title": None, "url": None, "content_hash": None, "characters": 0}
        try:
            document = await _read(context, target)
        except ProviderError as error:
            code = ExitCode.FAILED
            if isinstance(error, SourceUnreadable):
                kind = error.kind
            else:
                kind = type(error).__name__
            if as_json:
                print_json(record | {"ok": False, "error": {"type": kind, "message": str(error)}}, indent=None)
            else:
                print_progress(f"{quote(target)}: {kind}: {error}")
            continue
        if as_json:
            record |= {"title": document.title, "url": document.url, "content_hash": digest(document.raw)}
            print_json(record | {"characters": len(document.text), "error": None}, indent=None)
            continue
        title = printable(document.title) or target
        print_result(f"{title}   {document.media_type}   {len(document.text):,} characters")
        for warning in document.warnings:
            print_result(printable(warning))
        text = document.text[:SHOWN_CHARACTERS]
        print_result(text if text == document.text else f"{text}\n…")
    return code


async def _read(context: CommandContext, target: str) -> ExtractedDocument:
    if target.startswith(CORPUS_SCHEME):
        return await (await context.stores.corpora()).read(target)
    if target.startswith(SERVER_SCHEME):
        name = SERVER_PREFIX + target.removeprefix(SERVER_SCHEME).partition("/")[0]
        children = await context.stores.children()
        async with open_servers(context.settings, children, context.stores.content) as servers:
            if name not in servers:
                raise NotConfigured(f"no server of documents is set up as {quote(name)}: see [search.mcp]")
            return await servers[name].read(target)
    if ADDRESS.match(target):
        children = await context.stores.children()
        async with AsyncExitStack() as stack:
            browser = None
            if context.settings.web.firecrawl is not None:
                shared = await stack.enter_async_context(open_shared_state(context.settings))
                limiter = Limiter(shared.store, {})
                browser = await stack.enter_async_context(open_firecrawl(context.settings, shared.store, limiter))
            reader = await stack.enter_async_context(open_web_reader(context.settings, children, browser=browser))
            return await reader.read(target)
    return await ingest_file(await context.stores.children(), Path(target))


async def try_search(
    context: CommandContext, query: str, corpus: str | None, provider: str | None, *, as_json: bool
) -> int:
    """Send one query to a corpus or a provider as a worker does. Raises `CommandError`."""
    if corpus is not None and provider is not None:
        raise CommandError("name one place to search: --corpus ./folder, --corpus NAME or --provider NAME")
    if corpus is None and provider is None:
        return await _try_every_provider(context, query, as_json=as_json)
    request = _search_request(query, provider or "corpus")
    if corpus is not None:
        cluster = context.settings.uses_cluster
        stores = context.stores
        name, folder = find_corpus(corpus, await stores.corpus_folders(), cluster=cluster)
        if folder is not None:
            await index_corpus(context, name, folder, quiet=as_json)
        answer = await (await stores.corpora()).search(request.with_fields(corpus=name))
    else:
        answer = await _search_web(context, request)
    if as_json:
        print_json(answer.model_dump(mode="json"))
        return ExitCode.COMPLETED
    for hit in answer.hits:
        extent = "   (abstract only)" if hit.abstract_only else ""
        print_result(f"{hit.rank:>2}. {printable(hit.title)}   {printable(hit.url)}{extent}")
        if hit.snippet:
            print_result(f"    {printable(hit.snippet)[:SNIPPET_CHARACTERS]}")
    for warning in answer.warnings:
        print_progress(f"{answer.provider} {warning}")
    print_progress(plural(len(answer.hits), "hit") + (f", {answer.cost_usd:.4f} USD" if answer.cost_usd else ""))
    return ExitCode.COMPLETED


async def _try_every_provider(context: CommandContext, query: str, *, as_json: bool) -> int:
    """Send one query to every provider that is set up, and print what each found, or its failure with the remedy."""
    settings = context.settings
    choices = [choice for choice in search_choices(settings, settings.search.providers) if choice.available]
    if not choices:
        raise CommandError("no search provider is set up: see `research doctor`", ExitCode.NOTHING_TO_WORK_WITH)

    async def check(name: str) -> Check:
        try:
            answer = await _search_web(context, _search_request(query, name))
        except ProviderError as error:
            remedy = next((text for kind, text in SEARCH_REMEDIES.items() if isinstance(error, kind)), "")
            return Check(name, "fail", str(error), remedy)
        except PackageFault as error:
            return Check(name, "fail", str(error))
        cost = f", {answer.cost_usd:.4f} USD" if answer.cost_usd else ""
        return Check(name, "ok", plural(len(answer.hits), "hit") + cost, "; ".join(answer.warnings))

    checks = await asyncio.gather(*(check(choice.name) for choice in choices))
    print_checks(checks, as_json=as_json)
    if any(check.grade == "fail" for check in checks):
        return ExitCode.INTERNAL
    return ExitCode.COMPLETED


def _search_request(query: str, provider: str) -> SearchRequest:
    return SearchRequest(research_id="command-line", operation="search/command-line", provider=provider, text=query)


async def _search_web(context: CommandContext, request: SearchRequest) -> SearchResponse:
    settings = context.settings
    name = request.provider
    choices = {choice.name: choice for choice in search_choices(settings)}
    if name not in choices:
        raise CommandError(f"there is no search provider {quote(name)}: choose one of {', '.join(choices)}")
    if not choices[name].available:
        problem = f"the provider {name} is not available: {choices[name].reason}"
        raise CommandError(problem, ExitCode.NOTHING_TO_WORK_WITH)
    if name.startswith(SERVER_PREFIX):
        async with open_servers(settings, await context.stores.children(), context.stores.content) as servers:
            return await servers[name].search(request)
    async with open_search_providers(settings, [name]) as providers:
        return await _ask(providers[name], request)


async def _ask(provider: SearchProvider, request: SearchRequest) -> SearchResponse:
    """Return a provider's answer. Raises `ProviderError`, and `PackageFault` for a defect of a package's provider."""
    try:
        answer = await provider.search(request)
        if not isinstance(answer, SearchResponse):
            raise TypeError(f"it answers with {type(answer).__name__}, not with a SearchResponse")  # noqa: TRY301
    except ProviderError:
        raise
    except Exception as error:  # noqa: BLE001  the code of a package may raise anything
        raise search_declaration(request.provider).failed(error) or error from None
    return answer
