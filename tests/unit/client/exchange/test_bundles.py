"""Bundles: whole ones pass the audit with nothing else at hand, hostile ones get a clear error."""

import copy
import hashlib
import importlib
import io
import json
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from activities.reporting.render import render
from client.cli import audit as audit_command
from client.cli.errors import CommandError
from client.exchange import bundle as bundles
from client.exchange.bundle import MANIFEST, BundleReader, BundleUnusable, compose_bundle, text_path
from contracts.addresses import digest
from contracts.report import LARGEST_REPORT
from providers.errors import ContentCorrupt
from tests.unit.activities.reporting.sample import DOCUMENTS, SKIPPED, VACUUM, Sample

SAMPLE = Sample()
RENDERING = render(SAMPLE.state(), SAMPLE.draft, SAMPLE.texts, SKIPPED, "0.1.0")
FILES = {
    "report.json": RENDERING.document.encode(),
    "report.md": RENDERING.markdown.encode(),
    "report.html": RENDERING.html.encode(),
}
TEXTS = {text_path(digest(text)): text.encode() for _, text in DOCUMENTS.values()}


def bundle(files: dict[str, bytes] | None = None, *, quotes_only: bool = False) -> bytes:
    """A bundle of the sample run, or of these files."""
    given = FILES | ({} if quotes_only else TEXTS) if files is None else files
    return compose_bundle(given, research_id="r-1", product_version="0.1.0", quotes_only=quotes_only)


def rewritten(change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]) -> bytes:
    """A ZIP file made by hand of the files of the sample's bundle."""
    whole = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(bundle())) as made, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as changed:
        files = {name: made.read(name) for name in made.namelist()}
        change(changed, files)
        for name, data in files.items():
            changed.writestr(name, data)
    return whole.getvalue()


class SameProcess:
    """Calls that are made here: a process of its own for each of these cases would take a second."""

    def __init__(self, size: int, *, memory_bytes: int) -> None:
        assert size == 1
        assert memory_bytes <= 1_000_000_000

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """The function's answer."""
        del seconds
        module, _, name = function.partition(":")
        return getattr(importlib.import_module(module), name)(*arguments)


@pytest.fixture
def same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started to read and to compare."""
    monkeypatch.setattr(audit_command, "SubprocessPool", SameProcess)


@pytest.fixture
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without settings, home and stores."""

    def nothing(*_: object, **__: object) -> None:
        raise AssertionError("a bundle needs no store")

    monkeypatch.setattr(audit_command, "open_context", nothing)


async def audited(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `research audit FILE.zip --json` says."""
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
    said = await audited(tmp_path, bundle(), capsys)
    assert said["problems"] == []
    assert said["checked"]["stored texts"] == 3
    assert said["checked"]["passages"] == 6
    assert said["checked"]["claims judged by rules"] == 2
    assert said["checked"]["files of the bundle"] == len(FILES | TEXTS)
    assert said["unchecked"] == {
        "stored originals that are left out": 3,
        "headings that the stored text does not have": 6,
    }
    assert said["research_id"] == "r-20261121-7k3f"


@pytest.mark.usefixtures("no_store", "same_process")
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


def edited(edit: Callable[[dict[str, Any]], None]) -> dict[str, bytes]:
    """The files with another `report.json`."""
    report = copy.deepcopy(json.loads(FILES["report.json"]))
    edit(report)
    return FILES | TEXTS | {"report.json": json.dumps(report).encode()}


def move(report: dict[str, Any]) -> None:
    report["evidence"][0]["start"] += 3
    report["evidence"][0]["end"] += 3


FORGED: list[tuple[str, dict[str, bytes]]] = [
    ("text_missing", FILES | dict(list(TEXTS.items())[1:])),
    ("text_differs", FILES | TEXTS | {text_path(digest(VACUUM)): VACUUM.replace("two", "six").encode()}),
    ("text_differs", FILES | TEXTS | {text_path(digest(VACUUM)): b"\xff\xfe"}),
    ("markdown_differs", FILES | TEXTS | {"report.md": FILES["report.md"].replace(b"two", b"six")}),
    ("html_differs", FILES | TEXTS | {"report.html": FILES["report.html"].replace(b"two", b"six")}),
    ("offset_differs", edited(move)),
    ("evidence_without_source", edited(lambda report: report["sources"].pop(0))),
    ("verdict_differs", edited(lambda report: report["claims"][5].update(verdict="supported"))),
    ("malformed", FILES | TEXTS | {"report.json": b"{}"}),
]


@pytest.mark.usefixtures("no_store", "same_process")
@pytest.mark.parametrize(("kind", "files"), FORGED, ids=[f"{kind}-{n}" for n, (kind, _) in enumerate(FORGED)])
async def test_a_forged_bundle_whose_hashes_are_right_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, files: dict[str, bytes]
) -> None:
    """Whoever changes a file and writes a new manifest is found by what the files say; each difference has a remedy."""
    said = await audited(tmp_path, bundle(files), capsys)
    assert kind in {problem["kind"] for problem in said["problems"]}
    assert all(problem["message"] and problem["remedy"] for problem in said["problems"])


@pytest.mark.usefixtures("no_store", "same_process")
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("file_differs", lambda _, files: files.update({"report.md": b"[]"})),
        ("file_missing", lambda _, files: files.pop("report.md")),
        ("file_unlisted", lambda _, files: files.update({text_path("0" * 64): b"more"})),
    ],
)
async def test_a_file_other_than_the_manifest_says_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, change: Callable[..., None]
) -> None:
    """Changed, missing or smuggled in: named with its path."""
    said = await audited(tmp_path, rewritten(change), capsys)
    assert kind in [problem["kind"] for problem in said["problems"]]


def with_name(name: str) -> bytes:
    """A bundle with one more file."""
    return rewritten(lambda archive, _: archive.writestr(name, b"x"))


def symbolic_link() -> bytes:
    """A bundle whose text is a link to somewhere else."""

    def change(archive: zipfile.ZipFile, files: dict[str, bytes]) -> None:
        entry = zipfile.ZipInfo("report.md")
        entry.external_attr = 0o120777 << 16
        del files["report.md"]
        archive.writestr(entry, b"/etc/passwd")

    return rewritten(change)


def lying_size(size: int) -> bytes:
    """A bundle whose directory declares another size for a file than it has."""
    data = bytearray(rewritten(lambda _, files: None))
    place = data.index(b"PK\x01\x02")
    while data[place + 46 : place + 46 + len(b"report.md")] != b"report.md":
        place = data.index(b"PK\x01\x02", place + 4)
    data[place + 24 : place + 28] = struct.pack("<I", size)
    return bytes(data)


def damaged_manifest(manifest: bytes) -> bytes:
    """A bundle with these words for a manifest."""
    return rewritten(lambda _, files: files.update({MANIFEST: manifest}))


def twice() -> bytes:
    """A bundle with two files of one name."""
    with pytest.warns(UserWarning, match="Duplicate name"):
        return rewritten(lambda archive, files: archive.writestr("report.md", files["report.md"]))


LISTED = json.loads(zipfile.ZipFile(io.BytesIO(bundle())).read(MANIFEST))
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "no zip": (lambda: b"PK\x03\x04 and no more", "is no ZIP file"),
    "cut": (lambda: bundle()[:-40], "is no ZIP file"),
    "foreign zip": (lambda: rewritten(lambda _, files: files.pop(MANIFEST)), "no file manifest.json"),
    "traversal": (lambda: with_name("texts/../../x.txt"), "does not belong into a bundle"),
    "absolute": (lambda: with_name("/etc/passwd"), "does not belong into a bundle"),
    "windows": (lambda: with_name("texts\\..\\x.txt"), "does not belong into a bundle"),
    "symbolic link": (symbolic_link, "symbolic link"),
    "large": (lambda: lying_size(bundles.BYTE_LIMIT + 1), "unpacks to"),
    "large file": (lambda: lying_size(LARGEST_REPORT + 1), "larger than any file of a bundle"),
    "large manifest": (lambda: damaged_manifest(b" " * 4_000_001), "larger than any file of a bundle"),
    "twice": (twice, "twice"),
    "manifest deep": (lambda: damaged_manifest(b"[" * 100_000), "manifest.json is not valid"),
    "manifest of later": (
        lambda: damaged_manifest(json.dumps(LISTED | {"schema_version": 3}).encode()),
        "schema_version",
    ),
}


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


def test_equal_reports_give_equal_bundles() -> None:
    """No clock is in a bundle; the manifest has the SHA-256 of each file."""
    assert bundle() == bundle()
    assert LISTED["files"] == {path: hashlib.sha256(data).hexdigest() for path, data in (FILES | TEXTS).items()}


@pytest.mark.usefixtures("no_store", "same_process")
async def test_the_command_refuses_a_bundle_in_one_line(tmp_path: Path) -> None:
    """As wrong usage: nothing was audited."""
    without_report = rewritten(lambda _, files: files.pop("report.json"))
    for name, data, words in (("a.zip", b"x", "no ZIP file"), ("b.zip", without_report, r"no file report\.json")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CommandError, match=words):
            await audit_command.audit(str(tmp_path / name), as_json=False)
    with pytest.raises(CommandError, match="no such file"):
        await audit_command.audit(str(tmp_path / "none.zip"), as_json=False)


def keys_of(folder: Path, name: str) -> tuple[Path, Path]:
    """The files of a key pair, as `ssh-keygen` writes it."""
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


@pytest.mark.usefixtures("no_store", "same_process")
async def test_a_signature_shows_who_made_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the bundle as it was made, with the key that made it, passes; without a key a signature is not compared."""
    private, public = keys_of(tmp_path, "mine")
    key = bundles.private_key(private.read_bytes())
    path = tmp_path / "b.zip"
    made = {"research_id": LISTED["research_id"], "product_version": "0.1.0", "quotes_only": False, "key": key}
    path.write_bytes(compose_bundle(FILES | TEXTS, **made))
    assert await signed_problems(path, public, capsys) == []
    assert await signed_problems(path, keys_of(tmp_path, "other")[1], capsys) == ["signature_differs"]
    said = await audited(tmp_path, path.read_bytes(), capsys)
    assert (said["passed"], said["unchecked"]["signature, which --key compares"]) == (True, 1)
    path.write_bytes(bundle())
    assert await signed_problems(path, public, capsys) == ["signature_missing"]
    whole = io.BytesIO(compose_bundle(FILES | TEXTS, **made))
    with zipfile.ZipFile(whole) as archive:
        signature = archive.read("manifest.sig")
    path.write_bytes(rewritten(lambda _, files: files.update({"manifest.sig": signature, "report.md": b"# Else\n"})))
    assert "file_differs" in await signed_problems(path, public, capsys)
    forged = json.dumps(LISTED | {"product_version": "9"}).encode()
    path.write_bytes(rewritten(lambda _, files: files.update({"manifest.sig": signature, MANIFEST: forged})))
    assert "signature_differs" in await signed_problems(path, public, capsys)


def test_keys_are_ed25519_without_a_password(tmp_path: Path) -> None:
    """Those of `ssh-keygen` are read; what else is named is refused with the remedy."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    bundles.public_key(public).verify(bundles.private_key(private).sign(b"x"), b"x")
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    for data in (b"", b"words", public, locked, private[:-60]):
        with pytest.raises(bundles.KeyUnusable, match="ssh-keygen -t ed25519"):
            bundles.private_key(data)
    for data in (b"", b"ssh-words", private):
        with pytest.raises(bundles.KeyUnusable, match=r"KEYFILE\.pub"):
            bundles.public_key(data)
