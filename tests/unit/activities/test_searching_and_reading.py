"""The activities `search` and `read_source`, and the beats of all."""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
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
from tests.fakes import states
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
    given: Any, content: MemoryStore | None = None, shelf: Shelf | None = None, at: datetime = NOW, **fields: Any
) -> tuple[ReadRecord, SourceEntry]:
    """The record of one read, and the entry that it refers to."""
    store = content or MemoryStore()
    quality = create_judge({"manual": "high", "notes": "splendid"}.get, {}, {"wiki": "low", "notes": None})
    activities = ReadingActivities(shelf or Shelf(given), store, quality, Notebooks(store), lambda: at)
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


# --- what the thread above a run has archived -------------------------------------------------------------------------
PAGE = "https://docs.example/vacuum"


def page(**changes: Any) -> ExtractedDocument:
    return document(**{"url": PAGE, **changes})


async def _offered(store: MemoryStore, entry: str, text: DocumentRef, pages: DocumentRef | None = None) -> list[str]:
    """The entries of a search that found a page which an earlier run of the thread has archived."""
    notebooks = Notebooks(store)
    resolved = await notebooks.write(states.resolved(tenant="default", web=True))
    hit = SearchHit(url=PAGE, title="Vacuum", provider="earlier", rank=1)
    archived = hit.with_fields(archived=entry, archived_pages=pages, content_hash=text.hash)
    found = await notebooks.write(
        HitsEntry(questions=["vacuum"], date="2026-11-21", resolved_entry=resolved, hits=[hit])
    )
    return [found, await notebooks.write(HitsEntry(hits=[archived]))]


async def test_a_page_of_the_thread_is_not_fetched_again() -> None:
    """Its archived text, its own facts and the day of its reading are used; no site is asked."""
    store = MemoryStore()
    pages = [0, 4]
    first, known = await read(page(pages=pages, authors=["A. Writer"], links=["https://a.example/"]), store, url=PAGE)
    entries = await _offered(store, first.entry or "", first.text, first.pages)
    record, entry = await read(
        AssertionError("a site was asked"), store, at=NOW + timedelta(days=9), url=PAGE, hit_entries=entries
    )
    assert record.earlier
    assert record.cached
    assert (record.text, record.content_hash, record.pages) == (first.text, first.content_hash, first.pages)
    assert (entry.authors, entry.links, entry.retrieved_at) == (
        ["A. Writer"],
        ["https://a.example/"],
        known.retrieved_at,
    )


async def test_a_page_whose_archived_text_is_gone_or_no_longer_allowed_is_not_taken_from_the_thread() -> None:
    """It is read from its site, where the request allows that; the same text counts as the thread's, another does not."""
    store = MemoryStore()
    first, _ = await read(page(), store, url=PAGE)
    entries = await _offered(store, first.entry or "", first.text)
    await store.delete(first.text)
    other, _ = await read(page(text="Another text"), store, url=PAGE, hit_entries=entries)
    assert not other.earlier
    same, _ = await read(page(), store, url=PAGE, hit_entries=entries)
    assert same.earlier
    denied = states.resolved(tenant="default", web=True).search.with_fields(domains_deny=["docs.example"])
    notebooks = Notebooks(store)
    resolved = await notebooks.write(states.resolved(search=denied))
    hit = SearchHit(url=PAGE, title="Vacuum", archived=first.entry or "", content_hash=first.text.hash)
    refused = await notebooks.write(HitsEntry(date="2026-11-21", resolved_entry=resolved, hits=[hit]))
    assert (await failed(read(page(), store, url=PAGE, hit_entries=[refused]))).type == failures.SOURCE_UNREADABLE


async def test_passages_of_the_thread_are_ranked_by_its_archived_texts() -> None:
    """A source is offered for what its text says, with the place; one without a fitting passage, or text, is not."""
    store = MemoryStore()
    texts = {
        "https://a.example/": "# Locks\n\nA table lock is held until the end of the transaction that has taken it.",
        "https://d.example/": "# Seats\n\nThe rows of the theatre are numbered from the stage to the last door of the hall.",
        "https://b.example/": "# Vacuum\n\nDead rows are removed by vacuum, which leaves their space to later rows.",
    }
    hits = [
        SearchHit(
            url=url, title="T", rank=rank, content_hash=(await store.put_text(text)).hash, archived="sha256:" + "0" * 64
        )
        for rank, (url, text) in enumerate(texts.items(), start=1)
    ]
    hits.append(SearchHit(url="https://c.example/", title="Vacuum rows", rank=4, content_hash="sha256:" + "1" * 64))
    notebooks = Notebooks(store)
    entry = await notebooks.write(HitsEntry(hits=hits))
    activities = SearchingActivities({}, all_reachable, notebooks, store)
    request = asked("earlier").with_fields(text="How does vacuum remove dead rows?", earlier_entry=entry)
    found = await environment().run(activities.search, request)
    [hit] = found.hits
    assert (hit.url, hit.archived) == ("https://b.example/", hits[2].archived)
    [stored] = (await notebooks.read(found.entry or "", HitsEntry)).hits
    text = texts["https://b.example/"]
    assert text[stored.sections[0].start : stored.sections[0].end].startswith("Dead rows are removed")
    elsewhere = request.with_fields(text="How does the vacuum between moons and rings of Saturn bend light?")
    assert (await environment().run(activities.search, elsewhere)).hits == [], "one word of six is not the question"
