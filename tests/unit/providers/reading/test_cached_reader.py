"""Pages through the cache: the store that workers share holds only where they lie."""

from pathlib import Path

import pytest

from contracts.addresses import digest
from contracts.evidence import DocumentRef
from providers.domains import ANYWHERE, Domains, domains_named
from providers.errors import NotConfigured, SourceUnreadable
from providers.interfaces import ExtractedDocument
from providers.reading.reader import CachedReader
from providers.shared.cache import Cache
from providers.storage.content import ObstoreContentStore
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.shared_stores import MemorySharedStore

URL = "https://a.example/page"
WAY = (URL, "https://between.example/", "https://a.example/page/final")


class Site:
    """Reads a large page, and counts how often."""

    def __init__(self) -> None:
        self.read_urls: list[str] = []

    async def read(self, url: str, domains: Domains = ANYWHERE) -> ExtractedDocument:
        self.read_urls.append(url)
        for address in WAY:
            domains.check(address)
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
            links=["https://b.example/"],
            way=list(WAY),
        )


class Desk:
    """A reader over its site, content store and shared store."""

    def __init__(self, folder: Path) -> None:
        self.site, self.store, self.folder = Site(), MemorySharedStore(), folder

    def reader(self) -> CachedReader:
        return CachedReader(MemoryCorpus(), self.site, ObstoreContentStore(self.folder), Cache(self.store))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "content")


async def test_a_page_is_fetched_once_by_all_workers(desk: Desk) -> None:
    """Every field comes back as it was, marked as a copy; what workers share of a page of megabytes is small."""
    first = await desk.reader().read(URL)
    again = await desk.reader().read(URL)
    assert not first.cached
    assert again.cached
    assert {**vars(again), "cached": False} == {**vars(first), "stored": None}
    assert desk.site.read_urls == [URL]
    assert sum(len(value) for value, _ in desk.store._entries.values()) < 2_000


async def test_spellings_of_an_address_are_one_page_and_tenants_are_two(desk: Desk) -> None:
    """Identity is the canonical address; another tenant fetches for itself."""
    reader = desk.reader()
    await reader.read(URL)
    assert (await reader.read("HTTPS://A.example:443/page?utm_source=x#part")).cached
    assert not (await reader.read(URL, tenant="other")).cached
    assert not (await reader.read(URL + "?page=2")).cached


@pytest.mark.parametrize(("which", "damage"), [("raw", None), ("text", None), ("text", b"something else")])
async def test_a_page_that_the_content_store_lost_is_fetched_again(
    desk: Desk, which: str, damage: bytes | None
) -> None:
    """A missing or damaged document is a miss, for a process that does not remember it."""
    first = await desk.reader().read(URL)
    digits = digest(first.raw if which == "raw" else first.text.encode()).removeprefix("sha256:")
    path = desk.folder / digits[:2] / digits[2:]
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    again = await desk.reader().read(URL)
    assert (again.cached, again) == (False, first)
    assert len(desk.site.read_urls) == 2


async def test_a_cached_page_is_returned_to_those_whose_domains_allow_it(desk: Desk) -> None:
    """Fetched for one run, refused to another by any address on its way, and given to a third without asking again."""
    reader = desk.reader()
    await reader.read(URL)
    for domains, kind in (
        (domains_named([], ["between.example"]), "refused_domains_deny"),
        (domains_named(["a.example"], []), "refused_domains_allow"),
    ):
        with pytest.raises(SourceUnreadable) as raised:
            await reader.read(URL, domains=domains)
        assert raised.value.kind == kind
    assert (await reader.read(URL, domains=domains_named(["a.example", "example"], ["other.example"]))).cached
    assert desk.site.read_urls == [URL]


class Wiki:
    """A server of documents that counts what it reads."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, DocumentRef | None]] = []

    async def read(self, url: str, given: DocumentRef | None = None) -> ExtractedDocument:
        self.asked.append((url, given))
        return ExtractedDocument(url=url, address="https://wiki.example/1", text="Text.", raw=b"Text.", title="Wiki")


async def test_a_private_document_is_read_by_its_server_alone(desk: Desk) -> None:
    """Once a day for a tenant, from its text where that came with the hit; its web address must be in the domains."""
    wiki = Wiki()
    reader = CachedReader(
        MemoryCorpus(), desk.site, ObstoreContentStore(desk.folder), Cache(desk.store), {"wiki": wiki}
    )
    url = "mcp:wiki/a%2Fb"
    first, second = await reader.read(url), await reader.read(url)
    assert (first.cached, second.cached, second.address) == (False, True, "https://wiki.example/1")
    await reader.read(url, tenant="other")
    assert wiki.asked == [(url, None), (url, None)]
    given = DocumentRef(hash="sha256:" + "0" * 64)
    assert (await reader.read(url, given=given)).cached
    assert wiki.asked[-1] == (url, given)
    assert await reader.read_again(url, None) is not None
    assert len(wiki.asked) == 4
    with pytest.raises(SourceUnreadable):
        await reader.read(url, domains=Domains(deny=("wiki.example",)))
    with pytest.raises(NotConfigured, match=r"set search\.mcp\.other"):
        await reader.read("mcp:other/1")
    assert desk.site.read_urls == []
