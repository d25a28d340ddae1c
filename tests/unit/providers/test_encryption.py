"""Encryption of what is stored: keys, documents, records, paid answers and shared values."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.tokens import ArchiveRecord
from providers import encryption
from providers.encryption import Keyring
from providers.errors import ContentCorrupt, ContentMissing, KeyMissing, SharedStateUnavailable
from providers.interfaces import SharedStore
from providers.schemas import DAY
from providers.shared.answer_spool import AnswerSpool, ReservedRoom
from providers.shared.shared_value import SharedValue
from providers.shared.stores.encrypted_store import EncryptedSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from providers.storage.content import ObstoreContentStore
from providers.storage.content_archive import RecordArchive
from providers.storage.sessions import UNREADABLE, RecordSessionStore
from providers.storage.stored_records import Records

WORD = "quindlebrack"
TEXT = f"The {WORD} is a page. " * 40
OLD = bytes(range(32))
NEW = bytes(range(1, 33))
FIRST = Keyring({"k1": OLD}, "k1")
ROTATED = Keyring({"k1": OLD, "k2": NEW}, "k2")
WITHOUT = Keyring({"k2": NEW}, "k2")
PLAIN = Keyring()
STATE = json.dumps({"schema_version": 0, "resolved": {"query": f"What is a {WORD}?"}})


class Count(BaseModel):
    n: int = 0


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def names_below(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]


def test_what_is_sealed_opens_in_its_place_alone() -> None:
    """A ciphertext that is moved, changed, cut or of a key of the same id is refused, and never read as plain."""
    sealed = FIRST.seal(b"a question", "place")
    assert len(sealed) == len(b"a question") + FIRST.overhead
    assert FIRST.open(sealed, "place") == b"a question"
    changed = [sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:30], sealed[:20], sealed[:6]]
    for wrong in (*changed, sealed[: len(sealed) - 16]):
        with pytest.raises((ContentCorrupt, KeyMissing)):
            FIRST.open(wrong, "place")
    with pytest.raises(ContentCorrupt):
        FIRST.open(sealed, "another place")
    with pytest.raises(ContentCorrupt, match="the key k1 is not the one"):
        Keyring({"k1": NEW}, "k1").open(sealed, "place")


def test_equal_texts_have_different_ciphertexts() -> None:
    """Neither nonce nor salt is used twice, in one process or in two."""
    twice = {
        FIRST.seal(b"same", "place"),
        FIRST.seal(b"same", "place"),
        Keyring({"k1": OLD}, "k1").seal(b"same", "place"),
    }
    assert len(twice) == 3


def test_a_derived_key_seals_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the bound for random nonces another key is derived; both stay readable."""
    monkeypatch.setattr(encryption, "MAX_MESSAGES", 2)
    keyring = Keyring({"k1": OLD}, "k1")
    sealed = [keyring.seal(b"text", "place") for _ in range(4)]
    salts = [data[8:24] for data in sealed]
    assert salts[0] == salts[1] != salts[2] == salts[3]
    assert [FIRST.open(data, "place") for data in sealed] == [b"text"] * 4


def test_keys_are_rotated_and_a_missing_one_is_named() -> None:
    """An older key still opens; without it the error has its id; without any key, too."""
    sealed = FIRST.seal(b"text", "place")
    assert ROTATED.open(sealed, "place") == b"text"
    for keyring in (WITHOUT, PLAIN):
        with pytest.raises(KeyMissing, match=r"the encryption key k1 is missing: name its file in \[encryption.keys\]"):
            keyring.open(sealed, "place")


def test_a_missing_key_is_logged_once_a_minute() -> None:
    """The log names the id, and is not filled by everything that is tried again meanwhile; an error comes each time."""
    sealed = FIRST.seal(b"text", "place")
    keyring = Keyring({"k2": NEW}, "k2")
    with capture_logs() as logged:
        for _ in range(3):
            with pytest.raises(KeyMissing):
                keyring.open(sealed, "place")
    assert [(line["event"], line["key"]) for line in logged] == [("encryption.key_missing", "k1")]


def test_plain_texts_are_read_unless_encryption_is_required() -> None:
    """What was stored before encryption was switched on is read, until it is required."""
    assert FIRST.open(b"plain", "place") == b"plain"
    with pytest.raises(ContentCorrupt, match="not encrypted"):
        Keyring({"k1": OLD}, "k1", required=True).open(b"plain", "place")


@pytest.mark.parametrize(("keys", "current"), [({"k1": b"short"}, "k1"), ({"K 1": OLD}, ""), ({"k1": OLD}, "k2")])
def test_malformed_keys_are_refused(keys: dict[str, bytes], current: str) -> None:
    """A key of another length, an id that no folder could have, and a current key that is not there."""
    with pytest.raises(ValueError, match="key"):
        Keyring(keys, current)


async def test_documents_and_their_names_are_encrypted(tmp_path: Path) -> None:
    """Neither a word of a page nor the hash of its text is in the store, and the address of the page is as before."""
    reference = await ObstoreContentStore(tmp_path, FIRST).put_text(TEXT)
    before = bytes_below(tmp_path)
    await ObstoreContentStore(tmp_path, FIRST).put_text(TEXT)
    assert bytes_below(tmp_path) == before, "what is there is not written again"
    assert reference.hash == digest(TEXT.encode())
    assert WORD.encode() not in bytes_below(tmp_path)
    (name,) = names_below(tmp_path)
    assert name.startswith("encrypted/k1/")
    assert reference.hash[-20:] not in name
    assert await ObstoreContentStore(tmp_path, FIRST).get_text(reference) == TEXT


async def test_documents_are_read_through_switching_on_rotation_and_loss(tmp_path: Path) -> None:
    """Plain documents and those of an older key are read; a lost key is named, and nothing is called missing for it."""
    plain = await ObstoreContentStore(tmp_path).put_text("before")
    first = await ObstoreContentStore(tmp_path, FIRST).put_text(TEXT)
    rotated = ObstoreContentStore(tmp_path, ROTATED)
    assert [await rotated.get_text(plain), await rotated.get_text(first)] == ["before", TEXT]
    for keyring in (WITHOUT, PLAIN):
        with pytest.raises(KeyMissing, match="k1"):
            await ObstoreContentStore(tmp_path, keyring).get_text(first)
    absent = DocumentRef(hash=digest(b"absent"))
    with pytest.raises(ContentMissing):
        await rotated.get_text(absent)
    required = ObstoreContentStore(tmp_path, Keyring({"k1": OLD}, "k1", required=True))
    with pytest.raises(ContentMissing):
        await required.get_text(plain)


async def test_an_encrypted_document_of_another_is_refused(tmp_path: Path) -> None:
    """A document that was put in the place of another one is not taken for it."""
    store = ObstoreContentStore(tmp_path, FIRST)
    reference = await store.put_text(TEXT)
    await store.put_text("another")
    one, other = (path for path in sorted(tmp_path.rglob("*")) if path.is_file())
    texts = one.read_bytes(), other.read_bytes()
    one.write_bytes(texts[1])
    other.write_bytes(texts[0])
    with pytest.raises(ContentCorrupt):
        await ObstoreContentStore(tmp_path, FIRST).get_text(reference)


async def test_documents_are_removed_under_every_name(tmp_path: Path) -> None:
    """Removal reaches plain and encrypted copies; what is in use stays, and so does what an unknown key has encrypted."""
    await ObstoreContentStore(tmp_path).put_text(TEXT)
    used = await ObstoreContentStore(tmp_path, FIRST).put_text(TEXT)
    await ObstoreContentStore(tmp_path, FIRST).put_text("unused")
    later = datetime.now(UTC) + timedelta(days=1)
    assert await ObstoreContentStore(tmp_path, WITHOUT).delete_others({used.hash}, unless_put_since=later) == 0
    assert await ObstoreContentStore(tmp_path, ROTATED).delete_others({used.hash}, unless_put_since=later) == 1
    assert len(names_below(tmp_path)) == 2
    assert await ObstoreContentStore(tmp_path, ROTATED).delete(used)
    assert names_below(tmp_path) == []


def test_large_files_are_encrypted_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A published index is unreadable in the store, and whole again on another host; one that was cut is refused."""
    monkeypatch.setattr("providers.storage.content.CHUNK_BYTES", 1_000)
    index = tmp_path / "index.sqlite3"
    index.write_bytes(TEXT.encode() * 3 + os.urandom(100))
    store = ObstoreContentStore(tmp_path / "store", FIRST)
    reference = store.put_file(index, "application/vnd.sqlite3")
    assert WORD.encode() not in bytes_below(tmp_path / "store")
    copy = tmp_path / "copy.sqlite3"
    ObstoreContentStore(tmp_path / "store", ROTATED).get_file(reference, copy)
    assert copy.read_bytes() == index.read_bytes()
    (stored,) = (path for path in (tmp_path / "store").rglob("*") if path.is_file())
    stored.write_bytes(stored.read_bytes()[: 1_000 + FIRST.overhead + 4])
    with pytest.raises(ContentCorrupt):
        store.get_file(reference, copy)
    assert names_below(tmp_path)[:1] == ["copy.part"]
    assert copy.read_bytes() == index.read_bytes()


async def test_sessions_are_encrypted_and_listed(tmp_path: Path) -> None:
    """A question is in no file; lists and documents are read as before, and a session of a lost key stays in the list."""
    state = json.loads(STATE) | {"notebook": [digest(b"entry")]}
    sessions = RecordSessionStore(Records(tmp_path, "sessions", FIRST))
    await sessions.save("r-1", json.dumps(state), closed=False)
    assert WORD.encode() not in bytes_below(tmp_path)
    assert digest(b"entry").encode() not in bytes_below(tmp_path)
    for keyring in (FIRST, ROTATED):
        read = RecordSessionStore(Records(tmp_path, "sessions", keyring))
        (listed,) = await read.list()
        assert WORD in listed.query
        assert await read.documents() == {"r-1": {digest(b"entry")}}
    lost = RecordSessionStore(Records(tmp_path, "sessions", WITHOUT))
    assert [session.status for session in await lost.list()] == [UNREADABLE]
    assert await lost.documents() == {"r-1": None}
    with pytest.raises(KeyMissing, match="k1"):
        await lost.load("r-1")


def test_a_record_cannot_be_put_in_the_place_of_another(tmp_path: Path) -> None:
    """A record under another name is refused; one written before encryption is read."""
    records = Records(tmp_path, "sessions", FIRST)
    records.write("a", b'{"one": 1,\n"two": 2}\n')
    assert records.read("a") == b'{"one": 1,\n"two": 2}\n'
    (tmp_path / "sessions" / "b.json").write_bytes((tmp_path / "sessions" / "a.json").read_bytes())
    with pytest.raises(ContentCorrupt):
        records.read("b")
    Records(tmp_path, "sessions").write("c", b'{"plain": 1}\n')
    assert records.read("c") == b'{"plain": 1}\n'


async def test_archived_texts_are_found_under_hidden_names(tmp_path: Path) -> None:
    """A record of the archive has no hash in its name; one of before is moved when it changes; a lost key is named."""
    text = digest(TEXT.encode())
    record = ArchiveRecord(
        item_id="s-1",
        item_type="page",
        content_hash=text,
        content=DocumentRef(hash=text),
        archived_at=datetime.now(UTC),
        archive_reason="of no use",
        metadata={},
        runs={"r-1": datetime.now(UTC) + timedelta(days=9)},
    )
    plain = RecordArchive(None, tmp_path)
    (tmp_path / "archive").mkdir()
    await plain.put([record])
    archive = RecordArchive(None, tmp_path, keyring=FIRST)
    await archive.put([record.with_fields(runs={"r-2": datetime.now(UTC) + timedelta(days=9)})])
    names = [name for name in names_below(tmp_path / "archive") if name != ".lock"]
    assert len(names) == 1
    assert names[0].startswith("k1.")
    read = (await archive.read())[text]
    assert read is not None
    assert set(read.runs) == {"r-1", "r-2"}
    assert await RecordArchive(None, tmp_path, keyring=WITHOUT).read() == {}


async def test_spooled_answers_are_encrypted(tmp_path: Path) -> None:
    """A paid answer that waits on the disk of a worker is unreadable there, and is delivered."""
    room = ReservedRoom(tmp_path / "room", 10)
    spool = AnswerSpool(tmp_path / "answers", room, FIRST)
    await spool.put("r-1", "calls/r-1/answer/x", TEXT)
    assert WORD.encode() not in bytes_below(tmp_path)
    assert await AnswerSpool(tmp_path / "answers", room, ROTATED).get("r-1", "calls/r-1/answer/x") == TEXT
    with pytest.raises(KeyMissing, match="k1"):
        await AnswerSpool(tmp_path / "answers", room, WITHOUT).get("r-1", "calls/r-1/answer/x")


async def test_shared_values_are_encrypted_and_swapped(tmp_path: Path) -> None:
    """Compare and swap holds over encryption, over values of before, and over a rotation."""
    inner = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False)
    first: SharedStore = EncryptedSharedStore(inner, FIRST)
    rotated: SharedStore = EncryptedSharedStore(inner, ROTATED)
    off: SharedStore = EncryptedSharedStore(inner, PLAIN)
    value = TEXT.encode()
    assert await first.swap("k", None, value)
    assert not await first.swap("k", None, b"other")
    assert not await first.swap("k", b"wrong", b"other")
    assert await first.swap("k", value, value)
    assert await rotated.swap("k", value, b"next")
    assert (await first._inner.get("k")).value not in (b"next", None)
    with pytest.raises(KeyMissing, match="k2"):
        await first.get("k")
    assert await rotated.swap("k", b"next", None)
    assert await off.swap("lease", None, b"making 1")
    assert await first.swap("lease", b"making 1", b"making 1")
    assert (await rotated.get("lease")).value == b"making 1"
    with pytest.raises(KeyMissing, match="k1"):
        await off.swap("lease", b"making 1", None)
    await inner.close()
    assert WORD.encode() not in bytes_below(tmp_path)


async def test_a_forged_shared_value_counts_as_absent(tmp_path: Path) -> None:
    """A value of another key, and a plain one where encryption is required, are replaced, and never read."""
    inner = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False)
    required = EncryptedSharedStore(inner, Keyring({"k1": OLD}, "k1", required=True))
    await inner.swap("plain", None, b"forged")
    assert (await required.get("plain")).value is None
    assert not await required.swap("plain", b"forged", b"own")
    assert await required.swap("plain", None, b"own")
    await inner.swap("moved", None, (await inner.get("plain")).value)
    assert (await required.get("moved")).value is None
    assert (await required.get("plain")).value == b"own"
    await inner.close()


async def test_shared_models_change_by_compare_and_swap(tmp_path: Path) -> None:
    """Limits, the queue and the money of a day work on encrypted values, also where workers race; one that was changed is
    not begun anew.
    """
    inner = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False)
    values = [SharedValue(EncryptedSharedStore(inner, keyring), Count, DAY, None) for keyring in (ROTATED, ROTATED)]
    for number in range(6):
        await values[number % 2].update("n", lambda count, _: (Count(n=count.n + 1), None))
    assert await values[0].update("n", lambda count, _: (count, count.n)) == 6
    sealed = (await inner.get("n")).value
    assert sealed is not None
    assert await inner.swap("n", sealed, sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(SharedStateUnavailable, match="restore the value of the key n, or delete that key"):
        await values[0].update("n", lambda count, _: (Count(n=count.n + 1), None))
    await inner.close()
