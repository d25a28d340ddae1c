"""The content store: what was put in comes out, or an error says why not."""

import asyncio

import pytest

from contracts.evidence import DocumentRef
from providers.errors import ContentCorrupt, ContentMissing
from providers.storage.content import ObstoreContentStore, name_of


async def test_round_trip_of_bytes_and_text(tmp_path):
    """Bytes and text come back as they were; the size of a text is in characters."""
    store = ObstoreContentStore(tmp_path / "content")
    raw = await store.put(b"\0\xff" * 1_000, "application/pdf")
    text = await store.put_text("2^32 – é 😀")
    assert await store.get(raw) == b"\0\xff" * 1_000
    assert (raw.size, raw.media_type) == (2_000, "application/pdf")
    assert await store.get_text(text) == "2^32 – é 😀"
    assert text.size == 10


async def test_equal_content_is_stored_once_at_its_sharded_name(tmp_path):
    """Two puts of the same bytes give one reference and one file, also at the same time."""
    store = ObstoreContentStore(tmp_path)
    references = await asyncio.gather(*(store.put(b"same", "text/plain") for _ in range(8)))
    assert len(set(references)) == 1
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert files == [name_of(references[0])]


async def test_a_changed_file_is_corrupt(tmp_path):
    """A stored document that is not what its hash says is refused, never served (invariant 10)."""
    store = ObstoreContentStore(tmp_path)
    reference = await store.put(b"original", "text/plain")
    (tmp_path / name_of(reference)).write_bytes(b"0riginal")
    with pytest.raises(ContentCorrupt):
        await store.get(reference)


async def test_missing_and_deleted_documents(tmp_path):
    """What is gone is missing; deleting it twice is no error."""
    store = ObstoreContentStore(f"file://{tmp_path}")
    reference = await store.put(b"x", "text/plain")
    await store.delete(reference)
    await store.delete(reference)
    with pytest.raises(ContentMissing):
        await store.get(reference)
    with pytest.raises(ContentMissing):
        await store.get(DocumentRef(hash="sha256:" + "0" * 64))
