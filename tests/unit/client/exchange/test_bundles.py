"""Bundles: whole ones pass the audit with nothing else at hand, hostile ones get a clear error."""

import io
import json
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from activities.reporting.picture import add_pictures
from client.cli import audit as audit_command
from client.exchange import bundle as bundles
from client.exchange.bundle import MANIFEST, BundleReader, BundleUnusable, compose_bundle, text_path
from client.run_calls import Call
from client.view.picture import draw
from contracts.addresses import digest
from contracts.report import MAX_REPORT_BYTES
from providers.errors import ContentCorrupt
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.sample import DOCUMENTS, VACUUM, rendered

RENDERING = rendered()
FILES = {
    "report.json": RENDERING.document.encode(),
    "report.md": RENDERING.markdown.encode(),
    "report.html": RENDERING.html.encode(),
}
TEXTS = {text_path(digest(text)): text.encode() for _, text in DOCUMENTS.values()}


def bundle(files: dict[str, bytes] | None = None, *, quotes_only: bool = False) -> bytes:
    given = FILES | ({} if quotes_only else TEXTS) if files is None else files
    return compose_bundle(given, research_id="r-1", product_version="0.1.0", quotes_only=quotes_only)


def rewritten(change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(bundle())) as made, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as changed:
        files = {name: made.read(name) for name in made.namelist()}
        change(changed, files)
        for name, data in files.items():
            changed.writestr(name, data)
    return whole.getvalue()


@pytest.fixture
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("a bundle needs no store")

    monkeypatch.setattr(audit_command, "open_context", nothing)


@pytest.fixture
def same_process(no_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool of processes without a process: one for each of these cases would take a second."""

    def pool(size: int, *, memory_bytes: int) -> AbstractAsyncContextManager[HereCalls]:
        assert (size, memory_bytes <= 1_000_000_000) == (1, True)
        return nullcontext(HereCalls())

    monkeypatch.setattr(audit_command, "SubprocessPool", pool)


async def audited(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path = tmp_path / "b.zip"
    path.write_bytes(data)
    code = await audit_command.audit(str(path), as_json=True)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (0 if said["passed"] else 1)
    return said


@pytest.mark.usefixtures("no_store")
async def test_a_bundle_is_audited_with_nothing_else_at_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts, passages, claims and all forms are compared; what a bundle leaves out is counted."""
    assert bundle() == bundle(), "no clock is in a bundle"
    found = await audited(tmp_path, bundle(), capsys)
    assert (found["problems"], found["research_id"]) == ([], "r-20261121-7k3f")
    counts = {"stored texts": 3, "passages": 6, "claims judged by rules": 4, "files of the bundle": len(FILES | TEXTS)}
    assert found["checked"] | counts == found["checked"]
    left_out = {"stored originals that are left out": 3, "headings that the stored text does not have": 6}
    assert found["unchecked"] == left_out


@pytest.mark.usefixtures("same_process")
async def test_a_bundle_of_quotes_is_audited_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quotes against their hashes, claims against the quotes; what needs whole texts is counted as not compared."""
    data = bundle(quotes_only=True)
    assert VACUUM[:60].encode() not in b"".join(zipfile.ZipFile(io.BytesIO(data)).read(name) for name in FILES)
    said = await audited(tmp_path, data, capsys)
    assert said["problems"] == []
    assert said["checked"]["word for word claims"] == 6
    assert said["unchecked"]["passages without their text"] == 6
    changed = json.loads(FILES["report.json"])
    changed["evidence"][0]["quote"] += " And more."
    files = FILES | {"report.json": json.dumps(changed).encode()}
    said = await audited(tmp_path, bundle(files, quotes_only=True), capsys)
    assert "quote_differs" in {problem["kind"] for problem in said["problems"]}
    page = FILES["report.html"].replace(b'<p class="reason">', b'<p class="reason">Surely: ')
    forms = changed["forms"] | {"report.html": digest(page)}
    sealed = json.loads(FILES["report.json"]) | {"forms": forms}
    files = FILES | {"report.json": json.dumps(sealed).encode(), "report.html": page}
    said = await audited(tmp_path, bundle(files, quotes_only=True), capsys)
    assert {problem["kind"] for problem in said["problems"]} == {"page_differs"}


@pytest.mark.usefixtures("same_process")
async def test_a_picture_of_calls_changes_nothing_in_the_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is counted as not compared; a page that is changed beside it is found."""
    page = add_pictures(FILES["report.html"].decode(), [draw([Call("plan", "", "models", 0.0, 1.0, 2.0)], now=2)])
    said = await audited(tmp_path, bundle(FILES | TEXTS | {"report.html": page.encode()}), capsys)
    assert said["problems"] == []
    assert said["unchecked"]["pictures of calls, which come from the histories of a server"] == 1
    changed = page.replace("two", "six").encode()
    said = await audited(tmp_path, bundle(FILES | TEXTS | {"report.html": changed}), capsys)
    assert {problem["kind"] for problem in said["problems"]} == {"html_differs", "page_differs"}


def with_entry(name: str, *, link: bool = False, replaced: bool = False) -> bytes:
    """A bundle with one more file of that name, which may be a symbolic link, or one in another's place."""

    def change(archive: zipfile.ZipFile, files: dict[str, bytes]) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = 0o120777 << 16 if link else 0
        if replaced:
            del files[name]
        archive.writestr(entry, b"/etc/passwd")

    return rewritten(change)


def forged(name: str, data: bytes) -> bytes:
    """A bundle with another file, and a manifest that fits it."""
    return bundle(FILES | TEXTS | {name: data})


def with_file(name: str, data: bytes) -> bytes:
    return rewritten(lambda _, files: files.update({name: data}))


def without(name: str) -> bytes:
    return rewritten(lambda _, files: files.pop(name) and None)


def lying_size(size: int) -> bytes:
    """A bundle whose directory declares another size for a file than it has."""
    data = bytearray(rewritten(lambda _, files: None))
    place = data.index(b"PK\x01\x02")
    while data[place + 46 : place + 46 + len(b"report.md")] != b"report.md":
        place = data.index(b"PK\x01\x02", place + 4)
    data[place + 24 : place + 28] = struct.pack("<I", size)
    return bytes(data)


LISTED = json.loads(zipfile.ZipFile(io.BytesIO(bundle())).read(MANIFEST))
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "no zip": (lambda: b"PK\x03\x04 and no more", "is no ZIP file"),
    "cut": (lambda: bundle()[:-40], "is no ZIP file"),
    "foreign zip": (lambda: without(MANIFEST), "no file manifest.json"),
    "traversal": (lambda: with_entry("texts/../../x.txt"), "does not belong into a bundle"),
    "absolute": (lambda: with_entry("/etc/passwd"), "does not belong into a bundle"),
    "windows": (lambda: with_entry("texts\\..\\x.txt"), "does not belong into a bundle"),
    "symbolic link": (lambda: with_entry("report.md", link=True, replaced=True), "symbolic link"),
    "large": (lambda: lying_size(bundles.BYTE_LIMIT + 1), "unpacks to"),
    "large file": (lambda: lying_size(MAX_REPORT_BYTES + 1), "larger than any file of a bundle"),
    "twice": (lambda: with_entry("report.md"), "twice"),
    "manifest deep": (lambda: with_file(MANIFEST, b"[" * 100_000), "manifest.json is not valid"),
    "manifest of later": (
        lambda: with_file(MANIFEST, json.dumps(LISTED | {"schema_version": 3}).encode()),
        "schema_version",
    ),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("make", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_bundle_is_refused_before_anything_is_unpacked(
    tmp_path: Path, make: Callable[[], bytes], words: str
) -> None:
    """One clear sentence each, and nothing is written anywhere."""
    path = tmp_path / "b.zip"
    path.write_bytes(make())
    with pytest.raises(BundleUnusable, match=words):
        BundleReader(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 10, 40_000])
def test_a_file_with_another_size_than_declared_is_damaged(tmp_path: Path, size: int) -> None:
    """The directory of a ZIP file is not believed: no more is unpacked than it declares, and that is compared."""
    path = tmp_path / "b.zip"
    path.write_bytes(lying_size(size))
    with closing(BundleReader(path)) as reader:
        with pytest.raises(ContentCorrupt, match=r"report\.md"):
            reader.read("report.md")
        assert [kind for kind, *_ in reader.differences()] == ["file_differs"]


@pytest.mark.parametrize("stated", [True, False])
def test_a_large_directory_is_not_parsed(tmp_path: Path, stated: bool) -> None:
    """Its size counts, not the number of files that the end of the file states: 3.5 million entries take no memory."""
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *[0] * 6, *[0] * 3, *[0] * 5, *[0] * 2)
    number = bundles.DIRECTORY_LIMIT // len(entry) + 1
    directory = entry * number
    count = min(number, 0xFFFF) if stated else 1
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, len(directory), 0, 0)
    path = tmp_path / "b.zip"
    path.write_bytes(directory + end)
    tracemalloc.start()
    try:
        with pytest.raises(BundleUnusable, match="too many files"):
            BundleReader(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_bundle_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bundle has at most so many files, and a file larger than any bundle is not opened."""
    path = tmp_path / "b.zip"
    path.write_bytes(bundle())
    monkeypatch.setattr(bundles, "FILE_LIMIT", len(FILES | TEXTS))
    with pytest.raises(BundleUnusable, match="a bundle has at most"):
        BundleReader(path)
    with path.open("wb") as file:
        file.truncate(bundles.BYTE_LIMIT + 1)
    with pytest.raises(BundleUnusable, match="200,000,001 bytes"):
        BundleReader(path)


@pytest.mark.usefixtures("same_process")
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("text_differs", lambda: forged(text_path(digest(VACUUM)), VACUUM.replace("two", "six").encode())),
        ("text_differs", lambda: forged(text_path(digest(VACUUM)), b"\xff\xfe")),
        ("html_differs", lambda: forged("report.html", FILES["report.html"].replace(b"two", b"six"))),
        ("malformed", lambda: forged("report.json", b"{}")),
        ("file_differs", lambda: with_file("report.md", b"[]")),
        ("file_missing", lambda: without("report.md")),
        ("file_unlisted", lambda: with_file(text_path("0" * 64), b"more")),
    ],
)
async def test_a_changed_file_is_found_also_behind_a_new_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, make: Callable[[], bytes]
) -> None:
    """By what the manifest says, or by what the files say of each other; each difference has a remedy."""
    found = await audited(tmp_path, make(), capsys)
    assert kind in {problem["kind"] for problem in found["problems"]}
    assert all(problem["message"] and problem["remedy"] for problem in found["problems"])


def keys_of(folder: Path, name: str) -> tuple[Path, Path]:
    key, private, public = Ed25519PrivateKey.generate(), folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH))
    return private, public


async def signed_problems(path: Path, key: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The kinds of difference of a bundle that is compared with a key."""
    code = await audit_command.audit(str(path), key=key, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert code == (1 if said["problems"] else 0)
    assert said["checked"]["signature"] == 1
    return [problem["kind"] for problem in said["problems"]]


@pytest.mark.usefixtures("same_process")
async def test_a_signature_shows_who_made_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the bundle as it was made, with the key that made it, passes; without a key a signature is not compared."""
    private, public = keys_of(tmp_path, "mine")
    key = bundles.private_key(private.read_bytes())
    path = tmp_path / "b.zip"
    made = {"research_id": LISTED["research_id"], "product_version": "0.1.0", "quotes_only": False, "key": key}
    path.write_bytes(compose_bundle(FILES | TEXTS, **made))
    assert await signed_problems(path, public, capsys) == []
    assert await signed_problems(path, keys_of(tmp_path, "other")[1], capsys) == ["signature_differs"]
    without_key = await audited(tmp_path, path.read_bytes(), capsys)
    assert (without_key["passed"], without_key["unchecked"]["signature, which --key compares"]) == (True, 1)
    path.write_bytes(bundle())
    assert await signed_problems(path, public, capsys) == ["signature_missing"]
    with zipfile.ZipFile(io.BytesIO(compose_bundle(FILES | TEXTS, **made))) as archive:
        signature = archive.read("manifest.sig")
    forged = json.dumps(LISTED | {"product_version": "9"}).encode()
    for kind, changes in (("file_differs", {"report.md": b"# Else\n"}), ("signature_differs", {MANIFEST: forged})):
        files = {"manifest.sig": signature, **changes}
        path.write_bytes(rewritten(lambda _, parts, files=files: parts.update(files)))  # type: ignore[misc]
        assert kind in await signed_problems(path, public, capsys)


def test_keys_are_ed25519_without_a_password(tmp_path: Path) -> None:
    """Those of `ssh-keygen` are read; what else is named is refused with the remedy."""
    private, public = (path.read_bytes() for path in keys_of(tmp_path, "mine"))
    bundles.public_key(public).verify(bundles.private_key(private).sign(b"x"), b"x")
    locked = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
    )
    for data in (b"", b"words", public, locked, private[:-60]):
        with pytest.raises(BundleUnusable, match="ssh-keygen -t ed25519"):
            bundles.private_key(data)
    for data in (b"", b"ssh-words", private):
        with pytest.raises(BundleUnusable, match=r"KEYFILE\.pub"):
            bundles.public_key(data)
