"""`search` and `fetch`: the corpora, the pages that runs have archived, and finished reports, without any cost."""

import asyncio
import re
import sqlite3
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final

import structlog

from client.assistants.answers import Document, Result, Results, pages_of
from client.cli.context import CommandContext
from client.cli.output import CommandError, quote
from contracts.messages import SearchRequest
from contracts.names import CORPUS_PROVIDER, CORPUS_SCHEME
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import SourceStatus
from providers.errors import ContentCorrupt, ContentMissing, KeyMissing, NewerSchema, ProviderError
from providers.storage.sessions import SAFE_ID
from providers.text import question_stems, stems

SCHEME: Final = "research://"
REPORT: Final = re.compile(r"research://([^/#]+)/report\.md")
SOURCE: Final = re.compile(r"research://([^/#]+)/sources/([A-Za-z0-9_-]+)")
PAGE_MARK: Final = re.compile(r"#page=(\d{1,6})")
FETCHED_BYTES: Final = 60_000
"""Most bytes of a fetched text; a longer one has pages."""
RESULTS: Final = 10
"""Documents of each corpus, and of the stored runs, that a search considers."""
SEARCHED_RUNS: Final = 200
"""Newest finished runs whose reports and pages are searched."""
SEARCHED_CHARACTERS: Final = 100_000
"""Characters at the beginning of a page by which it is found."""

logger = structlog.get_logger(__name__)


@dataclass
class DocumentLibrary:
    """Documents that an assistant can find and read.

    Texts of stored runs are indexed in memory as they are first searched; the index has no text, and is built again by
    another process.
    """

    _index: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect(":memory:", check_same_thread=False))
    _entries: list[tuple[str, Result]] = field(default_factory=list)
    """Run and document of each row of the index."""
    _indexed: set[tuple[str, str]] = field(default_factory=set)
    """Runs in the index, each with the time of its session."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._index.execute("CREATE VIRTUAL TABLE pages USING fts5(title, body, content='')")

    async def search(self, context: CommandContext, query: str) -> Results:
        """Return the documents that fit a query: the best of each corpus and of the stored runs in turn."""
        library = await context.stores.corpora()
        found: list[list[Result]] = []
        failures: list[ProviderError] = []
        for name in sorted(await library.searchable()):
            request = SearchRequest(
                research_id="",
                operation="search",
                provider=CORPUS_PROVIDER,
                corpus=name,
                text=query,
                max_results=RESULTS,
            )
            try:
                hits = (await library.search(request)).hits
            except ProviderError as error:  # a folder that is gone must not hide the others
                logger.warning("assistants.corpus_unusable", corpus=name, reason=str(error))
                failures.append(error)
                continue
            found.append([Result(id=hit.url, title=hit.title or hit.url, url=hit.url) for hit in hits])
        found.append(await self._stored(context, query))
        if failures and len(found) == 1 and not found[0]:  # no corpus could be searched, and nothing else was found
            raise failures[0]
        in_turn = chain.from_iterable(zip_longest(*found))
        return Results(results=[result for result in in_turn if result is not None][: 2 * RESULTS])

    async def fetch(self, context: CommandContext, document: str) -> Document:
        """Return a document by the id that `search` gave it. Raises `CommandError`, `ProviderError`."""
        match = PAGE_MARK.search(document)
        if match:
            name = document[: match.start()]
            number = int(match[1])
        else:
            name = document
            number = 1
        title, url, text, metadata = await self._read(context, name)
        pages = pages_of(text, FETCHED_BYTES)
        if not 1 <= number <= len(pages):
            raise CommandError(f"{quote(name)} has {plural(len(pages), 'page')}: there is no page {number}")
        if len(pages) > 1:
            metadata |= {"page": str(number), "pages": str(len(pages))}
        if number < len(pages):
            metadata |= {"next_id": f"{name}#page={number + 1}"}
        return Document(id=document, title=title, text=pages[number - 1], url=url, metadata=metadata)

    async def _read(self, context: CommandContext, name: str) -> tuple[str, str, str, dict[str, str]]:
        """Return title, address, text and metadata of a document."""
        if name.startswith(CORPUS_SCHEME):
            document = await (await context.stores.corpora()).read(name)
            return document.title or name, name, document.text, _known(date=document.published_at, kind="corpus")
        if match := REPORT.fullmatch(name):
            state = await _state(context, match[1])
            if state.work.result is None or not state.work.result.report:
                raise CommandError(f"the run {match[1]} has no finished report: see research_status")
            documents = await context.report_documents(state.work.result)
            metadata = _known(date=state.work.result.ended_at, kind="report", outcome=state.work.result.outcome.value)
            return _question(state), name, documents["md"].decode(), metadata
        if match := SOURCE.fullmatch(name):
            state = await _state(context, match[1])
            source = state.evidence.sources.get(match[2])
            if source is None or source.text is None:
                raise CommandError(f"nothing is archived as {quote(name)}: use an id that search gave")
            text = await context.stores.content.get_text(source.text)
            kind = "archived abstract" if source.abstract_only else "archived page"
            metadata = _known(date=source.published_at, kind=kind, research_id=match[1])
            return source.title or source.shown_url, source.shown_url, text, metadata
        raise CommandError(f"no document has the id {quote(name)}: use an id that search gave")

    async def _stored(self, context: CommandContext, query: str) -> list[Result]:
        """Return reports and archived pages of stored runs, best first, each address once."""
        sessions = [session for session in await context.sessions() if session.closed][:SEARCHED_RUNS]
        async with self._lock:
            for session in sessions:
                if (session.research_id, session.saved_at) not in self._indexed:
                    await self._add_run(context, session.research_id)
                    self._indexed.add((session.research_id, session.saved_at))
            rows = await asyncio.to_thread(self._match, query)
        present = {session.research_id for session in sessions}
        shown: dict[str, Result] = {}
        for run, result in (self._entries[row - 1] for row in rows):
            if run in present:
                shown.setdefault(result.url, result)
        return list(shown.values())[:RESULTS]

    async def _add_run(self, context: CommandContext, research_id: str) -> None:
        """Index the report of a run and the pages that it has read; a text that is gone is omitted."""
        try:
            state = await _state(context, research_id)
        except (ContentCorrupt, NewerSchema, KeyMissing, CommandError) as error:  # or just removed
            logger.warning("assistants.run_unusable", research_id=research_id, reason=str(error))
            return
        report = state.work.result.report if state.work.result else ""
        if report:
            address = f"{SCHEME}{research_id}/report.md"
            await self._add(research_id, Result(id=address, title=_question(state), url=address), report)
        for source in state.evidence.sources.values():
            if source.status is not SourceStatus.FULL or source.text is None or source.url.startswith(CORPUS_SCHEME):
                continue
            try:
                text = await context.stores.content.get_text(source.text)
            except (ContentMissing, ContentCorrupt):
                continue
            result = Result(
                id=f"{SCHEME}{research_id}/sources/{source.id}",
                title=source.title or source.shown_url,
                url=source.shown_url,
            )
            await self._add(research_id, result, text)

    async def _add(self, run: str, result: Result, text: str) -> None:
        def write() -> None:
            keys = (" ".join(stems(part)) for part in (result.title, text[:SEARCHED_CHARACTERS]))
            self._index.execute("INSERT INTO pages (title, body) VALUES (?, ?)", tuple(keys))

        await asyncio.to_thread(write)
        self._entries.append((run, result))

    def _match(self, query: str) -> list[int]:
        """Return the rows that have a word of the query, best first."""
        keys = question_stems(query)
        if not keys:
            return []
        expression = " OR ".join('"{}"'.format(key.replace('"', '""')) for key in keys)
        order = "SELECT rowid FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 4.0, 1.0) LIMIT 100"  # titles, texts
        return [int(row) for (row,) in self._index.execute(order, (expression,))]


async def _state(context: CommandContext, research_id: str) -> ResearchState:
    text = None
    if SAFE_ID.fullmatch(research_id):
        text = await context.stores.sessions.load(research_id)
    state = None if text is None else ResearchState.model_validate_json(text)
    if state is None or context.tenant not in (None, state.work.resolved and state.work.resolved.tenant):
        raise CommandError(f"there is no run {quote(research_id)}: use an id that search gave")
    return state


def _question(state: ResearchState) -> str:
    if state.work.resolved is None:
        return ""
    return state.work.resolved.query


def _known(**metadata: str | None) -> dict[str, str]:
    """Return the metadata that are known."""
    return {name: value for name, value in metadata.items() if value}
