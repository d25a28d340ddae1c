"""Pages through the cache: the store that workers share holds only where they lie."""

import asyncio
from pathlib import Path

import pytest

from providers.domains import ANYWHERE, Domains, domains_named
from providers.errors import SourceUnreadable
from providers.interfaces import ExtractedDocument
from providers.reading.reader import CachedReader
from providers.shared.cache import Cache
from providers.storage.content import ObstoreContentStore, hash_of
from tests.fakes.memory_store import MemorySharedStore

URL = "https://a.example/page"
WAY = (URL, "https://between.example/", "https://a.example/page/final")


class Site:
    """Reads a large page, and counts how often."""

    def __init__(self) -> None:
        self.read_urls: list[str] = []
        self.error: SourceUnreadable | None = None
        self.gate: asyncio.Event | None = None

    async def read(self, url: str, domains: Domains = ANYWHERE) -> ExtractedDocument:
        self.read_urls.append(url)
        if self.gate is not None:
            await self.gate.wait()
        for address in WAY:
            domains.check(address)
        if self.error:
            raise self.error
        return ExtractedDocument(
            url="https://a.example/page/final",
            title="Ünïcode",
            text="text 🔑 " * 200_000,
            raw=b"<html>\xff\x00" + b"x" * 2_000_000,
            media_type="text/html",
            authors=["A", "B"],
            publisher="P",
            published_at="2024-02-29",
            language="de",
            warnings=["cut"],
            pages=[0, 70, 140],
            way=list(WAY),
        )


class Desk:
    """A reader over its site, content store and shared store."""

    def __init__(self, folder: Path) -> None:
        self.site, self.store, self.folder = Site(), MemorySharedStore(), folder

    def reader(self) -> CachedReader:
        return CachedReader(self.site, ObstoreContentStore(self.folder), Cache(self.store))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk with an empty content store."""
    return Desk(tmp_path / "content")


async def test_a_page_is_fetched_once_by_all_workers(desk: Desk) -> None:
    """Every field comes back as it was, and the copy says that no site was asked."""
    first = await desk.reader().read(URL)
    again = await desk.reader().read(URL)
    assert not first.cached
    assert again.cached
    assert {**vars(again), "cached": False} == {**vars(first), "stored": None}
    assert desk.site.read_urls == [URL]


async def test_the_page_itself_stays_out_of_the_shared_store(desk: Desk) -> None:
    """Text and bytes of a page of megabytes lie in the content store; what workers share is small."""
    await desk.reader().read(URL)
    assert sum(len(value) for value, _ in desk.store._entries.values()) < 2_000


async def test_spellings_of_an_address_are_one_page_and_tenants_are_two(desk: Desk) -> None:
    """Identity is the canonical address; another tenant fetches for itself."""
    reader = desk.reader()
    await reader.read(URL)
    assert (await reader.read("HTTPS://A.example:443/page?utm_source=x#part")).cached
    assert not (await reader.read(URL, tenant="other")).cached
    assert not (await reader.read(URL + "?page=2")).cached


@pytest.mark.parametrize("damage", ["gone", "changed"])
@pytest.mark.parametrize("which", ["raw", "text"])
async def test_a_page_that_the_content_store_lost_is_fetched_again(desk: Desk, damage: str, which: str) -> None:
    """A missing or damaged document is a miss: in the process that read it and in any other."""
    reader = desk.reader()
    first = await reader.read(URL)
    digits = hash_of(first.raw if which == "raw" else first.text.encode()).removeprefix("sha256:")
    path = desk.folder / digits[:2] / digits[2:]

    def blocking() -> None:
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(b"something else")

    await asyncio.to_thread(blocking)
    again = await reader.read(URL)
    assert not again.cached
    assert again == first
    assert len(desk.site.read_urls) == 2
    assert (await desk.reader().read(URL)).cached


async def test_a_cached_page_is_returned_to_those_whose_domains_allow_it(desk: Desk) -> None:
    """Fetched for one run, refused to another by any address on its way, and given to a third without asking again."""
    reader = desk.reader()
    await reader.read(URL)
    for domains, kind in (
        (domains_named([], ["between.example"]), "refused_domains_deny"),
        (domains_named([], ["A.example."]), "refused_domains_deny"),
        (domains_named(["a.example"], []), "refused_domains_allow"),
    ):
        with pytest.raises(SourceUnreadable) as raised:
            await reader.read(URL, domains=domains)
        assert raised.value.kind == kind
    assert (await reader.read(URL, domains=domains_named(["a.example", "example"], ["other.example"]))).cached
    assert desk.site.read_urls == [URL]


async def test_a_page_refused_to_one_is_read_for_another(desk: Desk) -> None:
    """Who waits for the same page is not given the refusal that another run's domains caused."""
    desk.site.gate = asyncio.Event()
    reader = desk.reader()
    strict = asyncio.ensure_future(reader.read(URL, domains=domains_named([], ["between.example"])))
    while not desk.site.read_urls:
        await asyncio.sleep(0)
    free = asyncio.ensure_future(reader.read(URL))
    for _ in range(20):
        await asyncio.sleep(0)
    desk.site.gate.set()
    with pytest.raises(SourceUnreadable, match=r"search\.domains_deny"):
        await strict
    assert (await free).title == "Ünïcode"


async def test_a_page_that_cannot_be_read_is_tried_again(desk: Desk) -> None:
    """A failure is raised as it is, and never cached."""
    desk.site.error = SourceUnreadable("http_status", "the site answers 503")
    for _ in range(2):
        with pytest.raises(SourceUnreadable):
            await desk.reader().read(URL)
    assert len(desk.site.read_urls) == 2
