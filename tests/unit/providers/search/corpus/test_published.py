"""Corpora that hosts without their folder search: published snapshots in an object store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import ContentCorrupt, CorpusUnknown, NewerSchema, SourceUnreadable, Unavailable
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.folders import CorpusDefinition
from providers.search.corpus.index import FORMAT
from providers.search.corpus.library import CorpusLibrary, open_library
from tests.fakes.corpus import MANUAL
from tests.fakes.object_store import ObjectStoreServer

pytestmark = pytest.mark.usefixtures("no_children")


class Hosts:
    """Hosts with one bucket: `here` has the folder of documents, `there` has it not."""

    def __init__(self, store: ObjectStoreServer, place: Path, pool: SubprocessPool) -> None:
        self.store, self.place, self.pool = store, place, pool
        self.folder = place / "documents"
        self.folder.mkdir()
        for name, text in MANUAL.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        self.here = self.library("here", self.configured(self.folder))
        self.there = self.library("there", self.configured(place / "no-such-folder"))

    @staticmethod
    def configured(folder: Path) -> CorpusDefinition:
        return CorpusDefinition(name="manual", path=folder, title="The manual", authority="medium")

    def library(self, name: str, *definitions: CorpusDefinition) -> CorpusLibrary:
        home = self.place / name
        return open_library(self.store.environment("/team")["RESEARCH_CONTENT_URL"], home, home, self.pool, definitions)


@pytest.fixture
async def hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Hosts]:
    """Two hosts and a bucket that this process's environment names."""
    async with ObjectStoreServer() as store, SubprocessPool(1) as pool:
        for name, value in store.environment("/team").items():
            monkeypatch.setenv(name, value)
        yield Hosts(store, tmp_path, pool)


async def ask(library: CorpusLibrary, text: str) -> SearchResponse:
    return await library.search(
        SearchRequest(research_id="r", operation="o", provider="corpus", corpus="manual", text=text)
    )


async def test_a_host_without_the_folder_searches_and_reads(hosts: Hosts) -> None:
    """It finds and reads the same as the host with the folder; what is published is neither written nor fetched again."""
    here, there = hosts.here, hosts.there
    snapshot = await here.refresh("manual")
    assert snapshot.files == len(MANUAL)
    assert await there.describe("manual") == await there.refresh("manual") == await here.describe("manual") == snapshot
    found = await ask(there, "autovacuum workers")
    assert found.hits
    assert found == await ask(here, "autovacuum workers")
    for name, text in MANUAL.items():
        document = await there.read(f"corpus:manual/{name}")
        assert (document.raw, document.media_type) == (document.text.encode(), "text/markdown")
        assert text.split()[-1] in document.text
    assert await there.skipped("manual") == []
    assert there.authority("manual") == "medium"
    with pytest.raises(SourceUnreadable):
        await there.read("corpus:manual/none.md")
    hosts.store.requests.clear()
    await here.refresh("manual")
    await ask(there, "autovacuum workers")
    assert {(method, key) for method, key, _ in hosts.store.requests} == {("GET", "team/corpora/manual.json")}


async def test_every_host_searches_the_newest_state(hosts: Hosts) -> None:
    """After documents have changed, other hosts search and read what there is now; a removed corpus is searched by none."""
    here, there = hosts.library("owner"), hosts.there
    here.add("manual", hosts.folder)
    before = await here.refresh("manual")
    assert not (await ask(there, "zebras stripes")).hits
    (hosts.folder / "locks.md").write_text("# Zebras\n\nZebras have stripes, as every zebra keeper knows.\n")
    assert (await here.refresh("manual")).digest != before.digest
    assert (await ask(there, "zebras stripes")).hits
    assert "Zebras" in (await there.read("corpus:manual/locks.md")).text
    await here.remove("manual")
    assert await here.searchable() == {}
    with pytest.raises(CorpusUnknown):
        await ask(there, "zebras stripes")


async def test_an_unpublished_corpus_is_unknown(hosts: Hosts) -> None:
    """The error of a host without the folder names the remedy; an unpublished state has the same."""
    assert (await hosts.there.describe("manual")).indexed_at == ""
    for attempt in (hosts.there.refresh("manual"), ask(hosts.there, "zebra")):
        with pytest.raises(CorpusUnknown, match="index it where its folder is"):
            await attempt


async def test_an_index_of_a_newer_version_is_left_alone(hosts: Hosts) -> None:
    """No host replaces it, and each names it with the way back; one of an older version is published again."""
    await hosts.here.refresh("manual")
    record = hosts.store.objects["team/corpora/manual.json"]
    newer = record.replace(f'"format":"{FORMAT}"'.encode(), b'"format":"99.1"')
    assert newer != record
    hosts.store.objects["team/corpora/manual.json"] = newer
    (hosts.folder / "locks.md").write_text("# Locks\n\nLocks wait.\n")
    for attempt in (ask(hosts.there, "autovacuum"), hosts.here.refresh("manual")):
        with pytest.raises(
            NewerSchema, match=r"the index manual has the format 99\.1.*`research corpus remove manual`"
        ):
            await attempt
    assert hosts.store.objects["team/corpora/manual.json"] == newer
    hosts.store.objects["team/corpora/manual.json"] = newer.replace(b"99.1", b"1.1")
    with pytest.raises(CorpusUnknown, match="published by another version"):
        await ask(hosts.there, "autovacuum")
    await hosts.here.refresh("manual")
    assert (await ask(hosts.there, "locks wait")).hits


async def test_damage_is_an_error(hosts: Hosts) -> None:
    """A damaged index file or record is refused, and a store that is down is no empty one."""
    store, there = hosts.store, hosts.there
    await hosts.here.refresh("manual")
    for key, data in store.objects.items():
        if data.startswith(b"SQLite format 3"):
            store.objects[key] = data[:-1] + b"?"
    with pytest.raises(ContentCorrupt):
        await ask(there, "autovacuum")
    store.down = True
    with pytest.raises(Unavailable):
        await ask(there, "autovacuum")
    store.down = False
    store.objects["team/corpora/manual.json"] = b"{"
    with pytest.raises(ContentCorrupt):
        await there.describe("manual")
