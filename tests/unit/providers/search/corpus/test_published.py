"""Corpora that hosts without their folder search: published snapshots in an object store."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import ContentCorrupt, CorpusUnknown, SourceUnreadable, Unavailable
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusDefinition, CorpusLibrary, published
from providers.search.corpus.published import open_library
from tests.fakes.corpus import MANUAL
from tests.fakes.object_store import ObjectStoreServer


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ObjectStoreServer]:
    """A bucket, named by this process's environment."""
    async with ObjectStoreServer() as made:
        for name, value in made.environment("/team").items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
async def pool() -> AsyncIterator[SubprocessPool]:
    """Children that read documents."""
    async with SubprocessPool(1) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Documents that lie on one host."""
    made = tmp_path / "documents"
    made.mkdir()
    for name, text in MANUAL.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def library_of(store: ObjectStoreServer, home: Path, pool: SubprocessPool, folder: Path) -> CorpusLibrary:
    """The corpora as a host with this home and this configuration opens them."""
    url = store.environment("/team")["RESEARCH_CONTENT_URL"]
    definition = CorpusDefinition(name="manual", path=folder, title="The manual", authority="medium")
    return open_library(url, home, home, pool, [definition])


async def ask(library: CorpusLibrary, text: str) -> SearchResponse:
    """A query of a run."""
    return await library.search(
        SearchRequest(research_id="r", operation="o", provider="corpus", corpus="manual", text=text)
    )


async def test_a_host_without_the_folder_searches_and_reads(
    store: ObjectStoreServer, tmp_path: Path, pool: SubprocessPool, folder: Path
) -> None:
    """It finds and reads the same as the host with the folder; what is published is neither written nor fetched again."""
    here = library_of(store, tmp_path / "here", pool, folder)
    there = library_of(store, tmp_path / "there", pool, tmp_path / "no-such-folder")
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
        assert document == await here.read(f"corpus:manual/{name}")
    assert await there.skipped("manual") == []
    assert there.authority("manual") == "medium"
    store.requests.clear()
    await here.refresh("manual")
    await ask(there, "autovacuum workers")
    assert {(method, key) for method, key, _ in store.requests} == {("GET", "team/corpora/manual.json")}
    with pytest.raises(SourceUnreadable):
        await there.read("corpus:manual/none.md")


async def test_every_host_searches_the_newest_state(
    store: ObjectStoreServer, tmp_path: Path, pool: SubprocessPool, folder: Path
) -> None:
    """After documents have changed, other hosts search and read what there is now; a removed corpus is searched by none."""
    url, home = store.environment("/team")["RESEARCH_CONTENT_URL"], tmp_path / "here"
    here = open_library(url, home, home, pool, [])
    here.add("manual", folder)
    there = library_of(store, tmp_path / "there", pool, tmp_path / "no-such-folder")
    before = await here.refresh("manual")
    assert not (await ask(there, "zebras stripes")).hits
    (folder / "locks.md").write_text("# Zebras\n\nZebras have stripes, as every zebra keeper knows.\n")
    assert (await here.refresh("manual")).digest != before.digest
    assert (await ask(there, "zebras stripes")).hits
    assert "Zebras" in (await there.read("corpus:manual/locks.md")).text
    assert list(await here.searchable()) == ["manual"]
    await here.remove("manual")
    assert await here.searchable() == {}
    with pytest.raises(CorpusUnknown):
        await ask(there, "zebras stripes")


async def test_an_unpublished_corpus_is_unknown(store: ObjectStoreServer, tmp_path: Path, pool: SubprocessPool) -> None:
    """The error of a host without the folder names the remedy; an unpublished state has the same."""
    there = library_of(store, tmp_path / "there", pool, tmp_path / "no-such-folder")
    assert (await there.describe("manual")).indexed_at == ""
    for attempt in (there.refresh("manual"), ask(there, "zebra")):
        with pytest.raises(CorpusUnknown, match="index it where its folder is"):
            await attempt


async def test_damage_is_an_error(store: ObjectStoreServer, tmp_path: Path, pool: SubprocessPool, folder: Path) -> None:
    """A damaged index file or record is refused, and a store that is down is no empty one."""
    here = library_of(store, tmp_path / "here", pool, folder)
    there = library_of(store, tmp_path / "there", pool, tmp_path / "no-such-folder")
    await here.refresh("manual")
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


async def test_old_index_files_are_removed(
    store: ObjectStoreServer, tmp_path: Path, pool: SubprocessPool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some time after its successor in the store, and on a host when it has that."""
    monkeypatch.setattr(published, "RETAINED", timedelta(days=-1))
    here = library_of(store, tmp_path / "here", pool, folder)
    await here.refresh("manual")
    assert (await ask(here, "autovacuum")).hits
    (folder / "zebras.md").write_text("# Zebras\n\nZebras have stripes.\n")
    await here.refresh("manual")
    assert (await ask(here, "zebras stripes")).hits
    assert len(list((tmp_path / "here" / "cache" / "indexes").rglob("*.sqlite3"))) == 1
    assert len([key for key, data in store.objects.items() if data.startswith(b"SQLite")]) == 1
