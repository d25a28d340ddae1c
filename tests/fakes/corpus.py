"""A corpus in memory: real passages, simple ranking, the same Protocol as the indexed one."""

from collections import Counter
from collections.abc import Mapping

from contracts.addresses import digest
from contracts.evidence import SearchHit, SectionHint
from contracts.messages import SearchRequest, SearchResponse
from contracts.resolved import CorpusSnapshot, SkippedFile
from providers.errors import CorpusUnknown, SourceUnreadable
from providers.interfaces import ExtractedDocument, Progress
from providers.text import question_stems, stems

MANUAL = {
    "vacuum.md": """# Routine Vacuuming

## Preventing Transaction ID Wraparound Failures

The engine compares transaction IDs in circular order, so an ID that is too old would seem to lie in the future.
To prevent transaction ID wraparound, it is necessary to vacuum every table in every database at least once every two
billion transactions. Vacuuming marks old rows as frozen, which means that they count as older than every transaction.

The setting `freeze_max_age` controls the maximum age of a table before a vacuum is forced to prevent wraparound. By
default it is 200 million transactions. Raising it lets tables wait longer but makes each forced vacuum larger.

If vacuuming is neglected, the engine refuses to start new transactions once fewer than three million remain. This
wraparound protection does not delete any row; it only stops new writes until a vacuum has run.
""",
    "autovacuum.md": """# The Autovacuum Daemon

The autovacuum daemon vacuums tables automatically. It is started even when it is disabled if that is necessary to
prevent transaction ID wraparound. The number of workers is limited by `autovacuum_max_workers`, whose default is 3.

To check how close a database is to wraparound, query the age of the oldest transaction ID in each database and
compare it with the setting `freeze_max_age`.
""",
    "locks.md": """# Explicit Locking

A table lock is held until the end of the transaction. Locks do not prevent transaction ID wraparound; only vacuuming
does. A deadlock is detected after `deadlock_timeout`, which is one second by default.
""",
    "backup.md": """# Backup

A base backup copies all files of the cluster while it is running. Continuous archiving keeps the write-ahead log.
""",
}

LONG_PARAGRAPH = (
    "To prevent transaction ID wraparound, the engine vacuums table {table} of part {part} once every {age} million "
    "transactions. Clerk {part} of hall {table} counted {age} boxes that evening and wrote their weight into a green "
    "ledger. Rain fell on the roof of hall {table}, and the ladders of row {part} were wet until the next noon. "
    "Nobody moved the {age} crates of row {part}, although hall {table} had room for twice as many of them."
)


def long_manual(pages: int, paragraphs: int = 16) -> dict[str, str]:
    """Give so many pages of about 400 characters a paragraph, each with a sentence about the usual question."""
    return {
        f"hall-{page:02}.md": f"# Hall {page}\n\n"
        + "\n\n".join(LONG_PARAGRAPH.format(table=page, part=part, age=100 + part) for part in range(paragraphs))
        for page in range(pages)
    }


class MemoryCorpus:
    """One corpus, `manual`."""

    name = "corpus"

    def __init__(self, documents: Mapping[str, str] = MANUAL) -> None:
        self._documents = dict(documents)
        self._stems = {path: Counter(stems(text)) for path, text in self._documents.items()}
        self.searches: list[str] = []
        self.reads: list[str] = []
        self.found: dict[str, str] = {}
        """Address of each hit that a search gave → its title."""

    def add(self, documents: Mapping[str, str]) -> None:
        """Add documents, as a folder that somebody writes to."""
        self._documents |= documents
        self._stems = {path: Counter(stems(text)) for path, text in self._documents.items()}

    def remove(self, path: str) -> None:
        """Remove a document."""
        del self._documents[path]
        del self._stems[path]

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.searches.append(request.text)
        terms = question_stems(request.text)
        scored = []
        for path, held in self._stems.items():
            score = sum(min(held[term], 5) for term in terms)
            if score and len(set(terms) & set(held)) >= max(1, len(terms) // 3):
                scored.append((-score, path))
        hits = [self._hit(path, rank) for rank, (_, path) in enumerate(sorted(scored), start=1)]
        counts = {term: sum(term in held for held in self._stems.values()) for term in terms}
        kept = hits[: request.max_results]
        self.found |= {hit.url: hit.title for hit in kept}
        return SearchResponse(
            provider=self.name, hits=kept, documents_searched=len(self._documents), term_documents=counts
        )

    def _hit(self, path: str, rank: int) -> SearchHit:
        text = self._documents[path]
        return SearchHit(
            url=f"corpus:manual/{path}",
            title=text.splitlines()[0].lstrip("# "),
            rank=rank,
            provider=self.name,
            source_type="file",
            sections=[SectionHint(start=0, end=len(text))],
            content_hash=digest(text),
        )

    async def read(self, url: str) -> ExtractedDocument:
        self.reads.append(url)
        path = url.removeprefix("corpus:manual/")
        if path not in self._documents:
            raise SourceUnreadable("not_found", "no such file")
        text = self._documents[path]
        title = text.splitlines()[0].lstrip("# ")
        return ExtractedDocument(url=url, title=title, text=text, raw=text.encode(), media_type="text/markdown")

    async def describe(self, name: str) -> CorpusSnapshot:
        if name != "manual":
            raise CorpusUnknown("no such corpus")
        return CorpusSnapshot(
            name=name,
            title="The manual",
            digest="d1",
            files=len(self._documents),
            indexed_at="2026-11-21T12:00:00+00:00",
        )

    async def refresh(self, name: str, progress: Progress | None = None) -> CorpusSnapshot:
        return await self.describe(name)

    async def closest_titles(self, name: str, question: str, limit: int) -> list[str]:
        words = set(question.casefold().split())
        titles = {path: text.splitlines()[0].lstrip("# ") for path, text in self._documents.items()}
        return [f"{title} [{path}]" for path, title in titles.items() if words & set(title.casefold().split())][:limit]

    async def skipped(self, name: str) -> list[SkippedFile]:
        return []

    async def has(self, url: str) -> bool:
        return url.partition("/")[2] in self._documents
