"""`read` and `search`: the parts of a worker, one at a time."""

import re
from pathlib import Path
from typing import Any

from client.cli import output
from client.cli.command_context import CommandContext, open_context
from client.cli.command_errors import CommandError, ExitCode, quote
from client.cli.corpus import index, registered_folders
from client.cli.folders import find_corpus
from client.cli.options import SearchCommandOptions, command_settings
from client.view.rendering import printable
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import CORPUS_SCHEME
from contracts.request import SourceType
from contracts.texts import plural
from providers.errors import ProviderError, SourceUnreadable
from providers.interfaces import ExtractedDocument
from providers.storage.content import hash_of
from workers.search_providers import open_search_providers, search_model

SHOWN_CHARACTERS = 1_500
SNIPPET_CHARACTERS = 300
LONGEST_QUERY = 2_000
"""More than any service takes."""
ADDRESS = re.compile(r"//|\s*[a-z][a-z0-9+.\s-]+:", re.IGNORECASE)
"""Two letters at least before the colon: one is a drive. What is no http(s) URL is refused by the reader."""


async def read(inputs: list[str], *, as_json: bool) -> int:
    """Read documents; exit code 4 if any of them cannot be read."""
    failed = 0
    async with open_context() as context:
        for given in inputs:
            try:
                document = await _read_one(context, given)
            except ProviderError as error:
                failed += 1
                _tell_failure(given, error, as_json=as_json)
                continue
            _tell_document(given, document, as_json=as_json)
    return ExitCode.FAILED if failed else ExitCode.COMPLETED


async def search(options: SearchCommandOptions) -> int:
    """Ask a provider one query."""
    query = options.query
    if not query.strip():
        raise CommandError("the query is empty")
    if len(query) > LONGEST_QUERY:
        raise CommandError(f"a search has at most {LONGEST_QUERY:,} characters, and this one has {len(query):,}")
    if options.provider == "corpus":
        answer = await _search_corpus(options)
    else:
        answer = await search_web(options)
    if options.as_json:
        output.document(answer.whole())
        return ExitCode.COMPLETED
    _tell_hits(answer)
    return ExitCode.COMPLETED


def _tell_hits(answer: SearchResponse) -> None:
    for hit in answer.hits:
        output.say(f"{hit.rank:>2}. {printable(hit.title)}   {printable(hit.url)}")
        for section in hit.sections[:1]:
            output.say(f"    § {printable(section.heading)}" if section.heading else "    §")
        if hit.snippet:
            output.say(f"    {printable(hit.snippet)[:SNIPPET_CHARACTERS]}")
    documents = answer.documents_searched
    of_all = "" if documents is None else f" in {plural(documents, 'document')}"
    output.tell(f"{plural(len(answer.hits), 'hit')}{of_all}")
    for warning in answer.warnings:
        output.tell(f"{answer.provider} {warning}")
    if answer.cost_usd:
        output.tell(f"cost: ${answer.cost_usd:.4f}")


async def _search_corpus(options: SearchCommandOptions) -> SearchResponse:
    """Ask a folder one query, its index being up to date."""
    corpus = options.corpus
    if options.narrow_the_web:
        raise CommandError(
            "--domain, --not-domain, --language, --from, --to and --type need a provider of the web: --provider NAME"
        )
    async with open_context() as context:
        registered = await registered_folders(context)
        if corpus is None:
            raise CommandError("nothing says where to search: add --corpus ./folder, --corpus NAME or --provider NAME")
        name, folder = find_corpus(corpus, registered)
        if folder is not None:
            await index(context, name, folder, quiet=options.as_json)
        request = SearchRequest(
            research_id="command-line",
            operation="search/command-line",
            provider="corpus",
            corpus=name,
            text=options.query,
            max_results=options.limit,
        )
        return await (await context.stores.corpora()).search(request)


async def _read_one(context: CommandContext, given: str) -> ExtractedDocument:
    if given.startswith(CORPUS_SCHEME):
        return await (await context.stores.corpora()).read(given)
    if is_address(given):
        return await (await context.stores.web()).read(given)
    return await context.stores.ingest(Path(given))


def is_address(given: str) -> bool:
    """Whether an argument is meant as a URL, a malformed one included; a file is named by its path alone."""
    return ADDRESS.match(given) is not None


def _tell_document(given: str, document: ExtractedDocument, *, as_json: bool) -> None:
    if as_json:
        output.json_line(_line(given, document))
        return
    output.say(f"{printable(document.title) or given}   {document.media_type}   {len(document.text):,} characters")
    for line in [_origin(document), *document.warnings]:
        if line:
            output.say(printable(line))
    output.say(document.text[:SHOWN_CHARACTERS] + ("\n…" if len(document.text) > SHOWN_CHARACTERS else ""))


def _origin(document: ExtractedDocument) -> str:
    """Who wrote it, where and when, in which language, as far as that is known."""
    known = [", ".join(document.authors), document.publisher, document.published_at, document.language]
    return " · ".join(part for part in known if part)


def _tell_failure(given: str, error: ProviderError, *, as_json: bool) -> None:
    kind = error.kind if isinstance(error, SourceUnreadable) else type(error).__name__
    if as_json:
        output.json_line(_line(given, None, error={"type": kind, "message": str(error)}))
    else:
        output.tell(f"{quote(given)}: {kind}: {error}")


def _line(given: str, document: ExtractedDocument | None, error: dict[str, str] | None = None) -> dict[str, Any]:
    """One line of `--json`: the same fields whether it could be read or not."""
    return {
        "input": given,
        "ok": document is not None,
        "title": document and document.title,
        "url": document and document.url,
        "content_hash": document and hash_of(document.raw),
        "characters": len(document.text) if document else 0,
        "media_type": document and document.media_type,
        "language": document and document.language,
        "authors": document.authors if document else [],
        "publisher": document and document.publisher,
        "published_at": document and document.published_at,
        "warnings": document.warnings if document else [],
        "error": error,
    }


async def search_web(options: SearchCommandOptions) -> SearchResponse:
    """Ask one service one query. Raises `CommandError` for one that is unknown or lacks something (exit code 7)."""
    settings, provider = command_settings(), options.provider
    model = search_model(settings)
    choices = {choice.name: choice for choice in settings.web_search.choices(model_offers_search=model is not None)}
    chosen = choices.get(provider)
    if chosen is None:
        known = ", ".join(["corpus", *choices])
        raise CommandError(f"no search provider is called {quote(provider)}; there are: {known}")
    if options.corpus is not None:
        raise CommandError("--corpus cannot be combined with --provider: leave one of the two out")
    request = request_of(options)
    if not chosen.available:
        message = f"the provider {provider} cannot be asked: {chosen.reason}"
        raise CommandError(message, ExitCode.NOTHING_TO_WORK_WITH)
    contact = settings.web.contact
    async with open_search_providers(settings.web_search, [provider], contact=contact, model=model) as providers:
        return await providers[provider].search(request)


def request_of(options: SearchCommandOptions) -> SearchRequest:
    """The request that a run would make. Raises `CommandError` for a type that there is not."""
    types = {source_type.value: source_type for source_type in SourceType}
    wanted = types.get(options.source_type or SourceType.WEB.value)
    if wanted is None:
        raise CommandError(f"--type is one of {', '.join(types)}, not {quote(options.source_type or '')}")
    return SearchRequest(
        research_id="command-line",
        operation="search/command-line",
        provider=options.provider,
        text=options.query,
        max_results=options.limit,
        source_type=wanted,
        domains_allow=options.domains,
        domains_deny=options.not_domains,
        language=options.language,
        published_from=options.first,
        published_to=options.last,
    )
