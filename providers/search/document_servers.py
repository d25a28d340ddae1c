"""Servers of documents that the operator names, searched and read by the Model Context Protocol: private sources.

A document has the address `mcp:NAME/ID`, under which it is read again and cited. A web address that the server gives
for it is shown to people, and never opened. What the server returns is text from outside, like a page: it is bounded,
read in a child process, and archived.
"""

import asyncio
import base64
import binascii
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from contracts.addresses import digest, short_hash
from contracts.evidence import DocumentRef, SearchHit
from contracts.messages import SearchRequest, SearchResponse
from contracts.names import SERVER_PREFIX, SERVER_SCHEME
from contracts.sentences import Message
from providers.errors import AnswerMalformed, ContentMissing, InvalidCall, NotConfigured, SourceUnreadable, Unavailable
from providers.interfaces import ContentStore, ExtractedDocument
from providers.isolation.pool import SubprocessPool
from providers.reading.canonical_text import iso_date
from providers.reading.document_kinds import parse_content_type
from providers.reading.reader import extract_in_child
from providers.search.declarations import FieldNames, ServerDefinition, search_declaration
from providers.search.filters import Filters, filters_of, unmet
from providers.search.hits import (
    MAX_RESULTS,
    MAX_SNIPPET_LENGTH,
    MAX_TITLE_LENGTH,
    MAX_URL_LENGTH,
    hit_limit,
    plain,
    shorten_query,
    usable_url,
)

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from providers.search.server_connection import ServerConnection

MAX_QUERY_CHARACTERS: Final = 1_000
MAX_DOCUMENT_BYTES: Final = 3_000_000
"""Of the text of one document, all of its pages together."""
MAX_DOCUMENT_PAGES: Final = 30
"""Answers that one document may take."""
CONSIDERED_RESULTS: Final = 4 * MAX_RESULTS
"""Results of one answer that are looked at."""
MAX_STARTS: Final = 3
START_WINDOW_SECONDS: Final = 60.0
"""At most so many connections are made within this time: a program that always ends is not started for ever."""


@dataclass(frozen=True)
class _Found:
    """One result, in the words of the server but bounded."""

    id: str
    title: str
    text: str
    url: str
    date: str | None


class DocumentServer:
    """One server: a search provider, and the reader of its documents.

    It is connected when it is first used, used again, and connected again after its end.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        pool: SubprocessPool,
        content: ContentStore,
        *,
        user_agent: str = "",
        permit: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Set the limits under which documents are fetched; searches have those of any provider."""
        self.name = definition.name
        self.definition = definition
        self.address = definition.url or None
        shape = [definition.command, definition.url, definition.search_tool, definition.fetch_tool, definition.fields]
        self.instance = digest(repr(shape))
        self._pool = pool
        self._content = content
        self._user_agent = user_agent
        self._permit = permit
        self._connection: ServerConnection | None = None
        self._opening = asyncio.Lock()
        self._starts: deque[float] = deque(maxlen=MAX_STARTS)

    async def tools(self) -> dict[str, list[str]]:
        """Return the names of its tools, each with those of its arguments. Raises `ProviderError`."""
        return (await self._connected()).tools

    async def close(self) -> None:
        """End the connection, if there is one."""
        if self._connection is not None:
            await self._connection.close()

    # --- searching ----------------------------------------------------------------------------------------------------
    async def search(self, request: SearchRequest) -> SearchResponse:
        """Return hits in rank order; a text that is the whole document is stored. Raises `ProviderError`."""
        definition = self.definition
        names = definition.fields
        arguments: dict[str, Any] = {names.query: shorten_query(request.text, MAX_QUERY_CHARACTERS)}
        if names.limit:
            arguments[names.limit] = hit_limit(request)
        answer = await self._call(definition.search_tool, arguments)
        if answer.is_error:
            raise InvalidCall(f"{self.name}: its tool reports an error in place of results")
        results = results_of(_data_of(answer), names)
        if results is None:
            raise AnswerMalformed(f"{self.name}: its answer has no list at “{names.results}”: see its fields")
        found = [_read_result(result, names) for result in results[:CONSIDERED_RESULTS]]
        usable = [one for one in found if one is not None]
        if found and not usable:
            raise AnswerMalformed(f"{self.name}: its results have no “{names.id}”, “{names.url}” or “{names.text}”")
        is_whole = not await self._fetches()
        hits = await self._hits(request, [one for one in found if one and (one.text.strip() or not is_whole)], is_whole)
        return SearchResponse(provider=self.name, hits=hits, warnings=unmet(request, search_declaration(self.name)))

    async def _hits(self, request: SearchRequest, found: Sequence[_Found], is_whole: bool) -> list[SearchHit]:
        filters = filters_of(request)
        hits: dict[str, SearchHit] = {}
        for rank, one in enumerate(found, start=1):
            url = document_url(self.name, one.id)
            published = iso_date(one.date)
            if len(url) > MAX_URL_LENGTH or url in hits or not _is_wanted(one, published, filters):
                continue
            if len(hits) >= hit_limit(request):
                break
            hits[url] = SearchHit(
                url=url,
                address=one.url,
                title=plain(one.title, MAX_TITLE_LENGTH) or one.url or plain(one.id, MAX_TITLE_LENGTH),
                snippet=plain(one.text, MAX_SNIPPET_LENGTH),
                rank=rank,
                provider=self.name,
                published_at=published,
                document=await self._content.put_text(one.text, self.definition.media_type) if is_whole else None,
            )
        return list(hits.values())

    async def _fetches(self) -> bool:
        """Return whether documents are fetched; else the text of a result is the document."""
        tool = self.definition.fetch_tool
        return bool(tool) and tool in await self.tools()

    # --- reading ------------------------------------------------------------------------------------------------------
    async def read(self, url: str, given: DocumentRef | None = None) -> ExtractedDocument:
        """Read a document, from the text that came with its hit if there is one.

        Raises `SourceUnreadable`, and as `search` does.
        """
        if given is not None:
            try:
                text = await self._content.get_text(given)
            except ContentMissing:
                raise SourceUnreadable(
                    "not_found", "the text of this result is no longer stored: search again"
                ) from None
            return await self._extract(url, text.encode(), given.media_type)
        if not await self._fetches():
            raise SourceUnreadable("not_found", f"{self.name} has no tool to fetch a document again")
        return await self._fetch(url, document_id(url))

    async def _fetch(self, url: str, identity: str) -> ExtractedDocument:
        """Fetch a document, all of its pages: `metadata.next_id` of an answer names the next."""
        names = self.definition.fields
        body = b""
        first: Mapping[str, Any] = {}
        media_type = self.definition.media_type
        next_id: str | None = identity
        for number in range(MAX_DOCUMENT_PAGES):
            async with self._permit():
                answer = await self._call(self.definition.fetch_tool, {names.id: next_id})
            if answer.is_error:
                raise SourceUnreadable("not_found", f"{self.name} does not give this document")
            data = _data_of(answer)
            first = data if number == 0 and isinstance(data, dict) else first
            part, media_type = _body_of(answer, data, names, media_type)
            body = b"\n\n".join(filter(None, (body, part)))
            if len(body) > MAX_DOCUMENT_BYTES:
                raise SourceUnreadable("too_large", Message("skip_large", size=MAX_DOCUMENT_BYTES))
            next_id = _text_at(data, "metadata.next_id")
            if not next_id:
                break
        document = await self._extract(url, body, media_type)
        return replace(
            document,
            title=_text_at(first, names.title) or document.title,
            address=usable_url(_text_at(first, names.url)) or "",
            published_at=_text_at(first, names.date) or _text_at(first, "metadata.date") or document.published_at,
        )

    async def _extract(self, url: str, body: bytes, declared: str) -> ExtractedDocument:
        media_type, charset = parse_content_type(declared)
        extraction = await extract_in_child(self._pool, "read_page", body, media_type, charset or "utf-8", "")
        return ExtractedDocument(url=url, text=extraction.text, raw=body, **extraction.facts())

    # --- the connection -----------------------------------------------------------------------------------------------
    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        connection = await self._connected()
        if tool not in connection.tools:
            raise NotConfigured(f"{self.name}: its server has no tool “{tool}”: see `research doctor`")
        return await connection.call(tool, arguments)

    async def _connected(self) -> "ServerConnection":
        """Return a usable connection. Raises `ProviderError`; a server is not started more often than the bound."""
        from providers.search.server_connection import Endpoint, ServerConnection  # noqa: PLC0415  the SDK: 26 MB

        definition = self.definition
        if problem := definition.problem():
            raise NotConfigured(f"{self.name}: {problem}")
        async with self._opening:
            if self._connection is not None and not self._connection.broken:
                return self._connection
            if self._connection is not None:
                await self._connection.close()
                self._connection = None
            now = time.monotonic()
            if len(self._starts) == MAX_STARTS and now - self._starts[0] < START_WINDOW_SECONDS:
                pause = START_WINDOW_SECONDS - (now - self._starts[0])
                raise Unavailable(f"{self.name}: its server ended again and again", retry_after=pause)
            self._starts.append(now)
            endpoint = Endpoint(
                name=self.name,
                command=definition.command,
                environment=definition.environment,
                url=definition.url,
                headers=definition.headers,
                user_agent=self._user_agent,
                seconds=definition.seconds,
            )
            connection = ServerConnection(endpoint)
            await connection.open()
            self._connection = connection
            return connection


# --- addresses -------------------------------------------------------------------------------------------------------
def document_url(provider: str, identity: str) -> str:
    """Return the address of a document of a provider `mcp.NAME`; any id has one."""
    return f"{SERVER_SCHEME}{provider.removeprefix(SERVER_PREFIX)}/{quote(identity, safe='')}"


def document_id(url: str) -> str:
    """Return the id of a document by its address."""
    return unquote(url.removeprefix(SERVER_SCHEME).partition("/")[2])


# --- answers: data of any shape --------------------------------------------------------------------------------------
def results_of(data: Any, names: FieldNames) -> list[Any] | None:
    """Return the list of results in the data of an answer; None if there is none."""
    if isinstance(data, dict) and set(data) == {"result"}:  # in which SDKs wrap an answer that is no object
        data = data["result"]
    if isinstance(data, list):
        return data
    found = _at(data, names.results)
    if not isinstance(found, list):
        return None
    return found


def _data_of(answer: "CallToolResult") -> Any:
    """Return the structured content of an answer, else the JSON of its texts; None for plain text."""
    if answer.structured_content is not None:
        return answer.structured_content
    values: list[Any] = []
    for text in _texts_of(answer):
        try:
            values.append(json.loads(text))
        except (ValueError, RecursionError):
            return None
    return values[0] if len(values) == 1 else values


def _texts_of(answer: "CallToolResult") -> list[str]:
    return [block.text for block in answer.content if block.type == "text"]


def _body_of(answer: "CallToolResult", data: Any, names: FieldNames, media_type: str) -> tuple[bytes, str]:
    """Return the bytes of a document and their media type: a resource in the answer, else its text."""
    for block in answer.content:
        if block.type == "resource":
            resource = block.resource
            kind = resource.mime_type or media_type
            if hasattr(resource, "text"):
                return resource.text.encode(), kind
            try:
                return base64.b64decode(resource.blob), kind
            except binascii.Error:
                raise SourceUnreadable("malformed", Message("skip_damaged")) from None
    if isinstance(data, dict):
        text = _text_at(data, names.text)
    else:
        text = "\n\n".join(_texts_of(answer))
    if text is None:
        raise SourceUnreadable("malformed", f"its answer has no text at “{names.text}”")
    return text.encode(), media_type


def _read_result(result: Any, names: FieldNames) -> _Found | None:
    """Return a result; None for one that cannot be read again or shown. Without an id, its address or text is one."""
    text = _text_at(result, names.text) or ""
    url = _text_at(result, names.url) or ""
    identity = _text_at(result, names.id) or url or (f"text-{short_hash(text)}" if text.strip() else "")
    if not identity:
        return None
    title = _text_at(result, names.title) or ""
    return _Found(identity, title, text, usable_url(url) or "", _text_at(result, names.date))


def _is_wanted(one: _Found, published: str | None, filters: Filters) -> bool:
    """Return whether a result is within the request; its domains are for results that have a web address."""
    if one.url and not filters.domains.admit(one.url):
        return False
    return published is None or not filters.days.exclude(published)


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text_at(value: Any, path: str) -> str | None:
    """Return the text or number at a path; None for anything else."""
    found = _at(value, path)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return str(found).encode("utf-8", "replace").decode()  # JSON can have halves of characters
