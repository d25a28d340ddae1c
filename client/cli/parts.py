"""`read` and `search`: the parts of a worker, one at a time."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from client.cli import output
from client.cli.asking import find_corpus
from client.cli.corpora import index, registered_folders
from client.cli.desk import Desk, open_desk
from client.cli.exit_codes import ExitCode
from client.cli.failures import CommandError, quoted
from client.rendering import plural, printable
from contracts.activities import SearchRequest
from contracts.names import CORPUS_SCHEME
from providers.content_store import hash_of
from providers.errors import ProviderError, Rejected, SourceUnreadable
from providers.interfaces import ExtractedDocument

SHOWN_CHARACTERS = 1_500
SNIPPET_CHARACTERS = 300


async def read(inputs: list[str], *, as_json: bool) -> int:
    """Read documents; exit code 4 if any of them cannot be read."""
    failed = 0
    async with open_desk() as desk:
        for given in inputs:
            try:
                document = await _read_one(desk, given)
            except ProviderError as error:
                failed += 1
                _tell_failure(given, error, as_json=as_json)
                continue
            _tell_document(given, document, as_json=as_json)
    return ExitCode.FAILED if failed else ExitCode.COMPLETED


async def search(query: str, *, provider: str, corpus: str | None, limit: int, as_json: bool) -> int:
    """Ask a provider one query."""
    if provider != "corpus":
        raise CommandError(f"the provider {provider!r} is not available yet; there is: corpus")
    if not query.strip():
        raise CommandError("there is nothing to search for")
    async with open_desk() as desk:
        registered = await registered_folders(desk)
        if corpus is None:
            raise CommandError("say where: --corpus ./folder, or the name of a corpus")
        name, folder = find_corpus(corpus, registered)
        if folder is not None:
            await index(desk, name, folder, quiet=as_json)
        request = SearchRequest(
            research_id="command-line",
            operation="search/command-line",
            provider=provider,
            corpus=name,
            text=query,
            max_results=limit,
        )
        library = await desk.stores.corpora()
        answer = await library.search(request)
    if as_json:
        output.document(answer.model_dump(mode="json"))
        return ExitCode.COMPLETED
    for hit in answer.hits:
        output.say(f"{hit.rank:>2}. {printable(hit.title)}   {printable(hit.url)}")
        for section in hit.sections[:1]:
            output.say(f"    § {printable(section.heading)}" if section.heading else "    §")
        if hit.snippet:
            output.say(f"    {printable(hit.snippet)[:SNIPPET_CHARACTERS]}")
    documents = answer.documents_searched
    of_all = "" if documents is None else f" in {plural(documents, 'document')}"
    output.tell(f"{plural(len(answer.hits), 'hit')}{of_all}")
    return ExitCode.COMPLETED


async def _read_one(desk: Desk, given: str) -> ExtractedDocument:
    library = await desk.stores.corpora()
    if given.startswith(CORPUS_SCHEME):
        return await library.read(given)
    if given.startswith(("http://", "https://")):
        raise Rejected("web pages cannot be read yet: give a file, or corpus:NAME/path")
    path = Path(unquote(urlsplit(given).path)) if given.startswith("file:") else Path(given)
    return await desk.stores.ingest(path)


def _tell_document(given: str, document: ExtractedDocument, *, as_json: bool) -> None:
    if as_json:
        output.json_line(
            _line(given, document.title, document.url, hash_of(document.raw), len(document.text), error=None)
        )
        return
    output.say(f"{printable(document.title) or given}   {document.media_type}   {len(document.text):,} characters")
    output.say(document.text[:SHOWN_CHARACTERS] + ("\n…" if len(document.text) > SHOWN_CHARACTERS else ""))


def _tell_failure(given: str, error: ProviderError, *, as_json: bool) -> None:
    kind = error.kind if isinstance(error, SourceUnreadable) else type(error).__name__
    if as_json:
        output.json_line(_line(given, None, None, None, 0, error={"type": kind, "message": str(error)}))
    else:
        output.tell(f"{quoted(given)}: {kind}: {error}")


def _line(
    given: str, title: str | None, url: str | None, content_hash: str | None, characters: int, *, error: Any
) -> dict[str, Any]:
    return {
        "input": given,
        "ok": error is None,
        "title": title,
        "url": url,
        "content_hash": content_hash,
        "characters": characters,
        "error": error,
    }
