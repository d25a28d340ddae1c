"""The activities `search` and `read_source`, and the beats of all."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.assessment.source_assessment import create_judge
from activities.reading import ReadingActivities
from activities.searching import SearchingActivities
from contracts import failures
from contracts.evidence import DocumentRef, SearchHit, SectionHint, Validators
from contracts.messages import ReadRecord, ReadRequest, SearchRequest, SearchResponse
from contracts.notebooks import HitsEntry, SourceEntry
from contracts.vocabulary import Quality
from providers import errors
from providers.domains import ANYWHERE, Domains
from providers.interfaces import ExtractedDocument
from providers.storage.stored_notebooks import Notebooks
from tests.fakes.world import all_reachable
from tests.unit.activities.scripted import SOURCE, URL, MemoryStore, environment

NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Shelf:
    """A search provider and reader with one document."""

    name = "shelf"

    def __init__(self, given: Any) -> None:
        self.given = given
        self.domains = ANYWHERE
        self.known: Validators | None = None

    async def search(self, request: SearchRequest) -> SearchResponse:
        found: SearchResponse = await self._answer()
        return found

    async def read(
        self, url: str, *, tenant: str = "default", domains: Domains = ANYWHERE, given: DocumentRef | None = None
    ) -> ExtractedDocument:
        self.domains = domains
        read: ExtractedDocument = await self._answer()
        return read

    async def read_again(
        self, url: str, known: Validators | None, *, domains: Domains = ANYWHERE
    ) -> ExtractedDocument | None:
        self.domains, self.known = domains, known
        read: ExtractedDocument | None = await self._answer()
        return read

    async def _answer(self) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


def asked(provider: str = "shelf") -> SearchRequest:
    return SearchRequest(research_id="r-1", operation="search/1", provider=provider, text="vacuum", permitted=True)


def document(**changes: Any) -> ExtractedDocument:
    fields = {"url": URL, "title": "", "text": "Vacuum 🧹 text", "raw": b"<p>raw</p>", "media_type": "text/html"}
    return ExtractedDocument(**{**fields, **changes})


async def read(
    given: Any, content: MemoryStore | None = None, shelf: Shelf | None = None, **fields: Any
) -> tuple[ReadRecord, SourceEntry]:
    """The record of one read, and the entry that it refers to."""
    store = content or MemoryStore()
    quality = create_judge({"manual": "high", "notes": "splendid"}.get, {}, {"wiki": "low", "notes": None})
    activities = ReadingActivities(shelf or Shelf(given), store, quality, Notebooks(store), lambda: NOW)
    request = ReadRequest(**{"source_id": SOURCE, "url": URL, "title": "From the hit", "permitted": True, **fields})
    record = await environment().run(activities.read_source, request)
    return record, await Notebooks(store).read(record.entry, SourceEntry)


async def failed(call: Awaitable[Any]) -> ApplicationError:
    with pytest.raises(ApplicationError) as caught:
        await call
    return caught.value


def searching(given: Any, notebooks: Notebooks | None = None) -> SearchingActivities:
    store = MemoryStore()
    return SearchingActivities({"shelf": Shelf(given)}, all_reachable, notebooks or Notebooks(store), store)


async def test_hits_are_returned_by_reference() -> None:
    """The workflow sees addresses, DOIs and the first titles; the notebook has the shortened hits."""
    sections = [SectionHint(start=n, end=n + 1, heading="H" * 300, score=1.23456) for n in range(5)]
    first = SearchHit(url=URL, title="t" * 200, snippet="s" * 300, rank=1, doi="10.1/x", sections=sections)
    hits = [first, SearchHit(url=f"{URL}/2", title="second", rank=2)]
    notebooks = Notebooks(MemoryStore())
    request = asked().model_copy(update={"titled": 1, "questions": ["q"]})
    response = SearchResponse(provider="shelf", hits=hits)
    found = await environment().run(searching(response, notebooks).search, request)
    assert [(hit.url, hit.title, hit.doi) for hit in found.hits] == [(URL, "t" * 120, "10.1/x"), (f"{URL}/2", "", None)]
    assert {hit.snippet for hit in found.hits} == {""}
    entry = await notebooks.read(found.entry or "", HitsEntry)
    assert entry.questions == ["q"]
    assert (len(entry.hits[0].snippet), len(entry.hits[0].sections)) == (200, 3)
    chosen_by_a_role = request.model_copy(update={"snippet_characters": 160})
    shown = await environment().run(searching(response, notebooks).search, chosen_by_a_role)
    assert [len(hit.snippet) for hit in shown.hits] == [160, 0]
    nothing = await environment().run(searching(SearchResponse(provider="shelf")).search, asked())
    assert (nothing.hits, nothing.entry) == ([], None)


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (errors.RateLimited("the server asks to wait", retry_after=150), True),
        (errors.RateLimited("the server asks to wait", retry_after=181), False),
        (errors.Unavailable("the server answered 503"), True),
        (errors.Unavailable("the server answered 503", retry_after=11), False),
        (errors.StoreUnavailable("the content store does not answer", retry_after=200), True),
    ],
)
async def test_one_page_of_several_is_not_waited_for_long(error: errors.Retryable, retried: bool) -> None:
    """A site that asks to wait gets three minutes, one that fails ten seconds; a store of ours is always waited for."""
    assert (await failed(read(error))).non_retryable is not retried


async def test_what_a_page_says_of_itself_is_bounded() -> None:
    """Each text that is kept in the state is one short line without what nobody sees, whatever reads the page."""
    flood = "word\u202e\x07\n " * 100_000
    said = dict.fromkeys(("title", "publisher", "published_at", "media_type", "language"), flood)
    _, entry = await read(document(**said, authors=[flood] * 1_000, warnings=[flood] * 100))
    assert len(entry.model_dump_json()) < 25_000
    for text in [entry.title, entry.publisher, entry.published_at, entry.language, *entry.authors]:
        assert text
        assert text.rstrip("…").isprintable()
        assert len(text) <= 500


async def test_a_read_archives_raw_bytes_and_text() -> None:
    """Both are stored; the record describes the original and has no text (S0-055, S2-035, S2-049, S2-051)."""
    content = MemoryStore()
    record, entry = await read(document(), content)
    assert content.documents[entry.raw.hash] == b"<p>raw</p>"
    assert content.documents[record.text.hash].decode() == "Vacuum 🧹 text"
    assert record.content_hash == entry.raw.hash
    assert (entry.title, record.text.size) == ("From the hit", 13)
    assert entry.retrieved_at == "2026-11-21T00:00:00+00:00"
    assert record.media_type == entry.media_type == "text/html"
    assert "Vacuum 🧹" not in record.model_dump_json()


async def test_a_page_is_read_within_the_limits_of_the_run() -> None:
    """Domains go with the read; an address with private words is refused before the reader hears of it (S0-056)."""
    shelf = Shelf(document())
    await read(None, shelf=shelf, domains_allow=["A.test"], domains_deny=["b.test"])
    assert shelf.domains == Domains(("a.test",), ("b.test",))
    untouched = Shelf(AssertionError("the reader was asked"))
    failure = await failed(read(None, shelf=untouched, url="https://a.test/?d=1", exposes_private_text=True))
    assert (failure.type, failure.details[0]["kind"]) == (failures.SOURCE_UNREADABLE, "refused_private")
    assert failure.non_retryable
    assert untouched.domains == ANYWHERE


@pytest.mark.parametrize(
    ("url", "quality", "reason"),
    [
        (URL, Quality.HIGH, "your documents"),
        ("corpus:notes/a.md", Quality.UNKNOWN, ""),
        ("mcp:wiki/1", Quality.LOW, "your documents"),
        ("mcp:notes/1", Quality.LOW, "private source; undated; little text"),
    ],
)
async def test_quality_is_what_the_operator_declared(url: str, quality: Quality, reason: str) -> None:
    """Documents of a corpus have its declared authority; an unknown word or place is unknown, never high (C0-24)."""
    record, entry = await read(document(url=url))
    assert (record.quality, entry.quality_reason) == (quality, reason)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (errors.SourceUnreadable("encrypted", "locked"), "encrypted"),
        (errors.SourceUnreadable("not_found", "404"), "not_found"),
        (document(text=" \n\t"), "no_text"),
    ],
)
async def test_an_unreadable_document_is_a_failure_with_its_reason(given: Any, kind: str) -> None:
    """Read first or again: without usable text it fails for good, with the typed reason, and nothing is stored."""
    content = MemoryStore()
    known, _ = await read(document(), content)
    stored = set(content.documents)
    for entry in ("", known.entry):
        failure = await failed(read(given, content, known_entry=entry))
        assert (failure.type, failure.non_retryable) == (failures.SOURCE_UNREADABLE, True)
        assert failure.details[0] == {"kind": kind}
    assert set(content.documents) == stored


async def test_a_document_is_read_again_by_its_stored_entry() -> None:
    """The site's validators go with the request; the same text gives the stored entry, another one an entry of its own."""
    content, known = MemoryStore(), Validators(etag='"1"')
    first, entry = await read(document(validators=known, authors=["A. Writer"]), content, snippet="Words")
    for found in (None, document(raw=b"<p>other bytes</p>", title="New")):
        shelf = Shelf(found)
        again, _ = await read(found, content, shelf, known_entry=first.entry, domains_deny=["b.example"])
        assert (again.entry, again.text, again.content_hash) == (first.entry, first.text, first.content_hash)
        assert shelf.known == entry.validators == known
        assert shelf.domains != ANYWHERE
    changed, fresh = await read(document(text="Other text", title="New"), content, known_entry=first.entry)
    assert changed.text != first.text
    assert (changed.title, fresh.title, fresh.authors, fresh.validators) == ("New", "New", ["A. Writer"], None)
