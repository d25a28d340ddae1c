"""Bundles: a ZIP file of a report, the stored texts behind it, and a manifest of hashes.

A bundle may come from strangers: no file is unpacked to disk, and only declared and bounded files are read.
"""

import hashlib
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from pydantic import Field, ValidationError

from client.client_errors import BundleUnusable
from contracts.base import StrictContract
from contracts.parse_request import error_lines
from contracts.report import MAX_REPORT_BYTES
from providers.errors import ContentCorrupt, ContentMissing

MANIFEST: Final = "manifest.json"
SIGNATURE: Final = "manifest.sig"
"""Ed25519 signature of the manifest, 64 bytes; `openssl pkeyutl -verify -rawin` can check it, too."""
MEMBER: Final = re.compile(r"manifest\.json|manifest\.sig|report\.(?:md|html|json)|texts/[0-9a-f]{64}\.txt")
"""Every file name allowed in a bundle: no other folders, and no links."""
FILE_LIMIT: Final = 20_000  # files of a bundle: twenty times those of a large report
BYTE_LIMIT: Final = 200_000_000
"""Limit of all files together, unpacked: twice the size of a report with a thousand sources."""
DIRECTORY_LIMIT: Final = FILE_LIMIT * 150
"""Bytes of a ZIP file's directory, which is parsed before its entries are counted: one of a bundle takes 120."""
MANIFEST_LIMIT: Final = 4_000_000  # bytes: 200 for each file
FIXED_TIMESTAMP: Final = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every file, so that equal reports give equal bundles."""


class Manifest(StrictContract):
    """`manifest.json`: the content of a bundle."""

    schema_version: Literal[2] = 2
    kind: Literal["durable-research-bundle"] = "durable-research-bundle"
    research_id: str
    product_version: str
    quotes_only: bool
    """True if the full source texts are not included."""
    files: dict[str, str] = Field(max_length=FILE_LIMIT)
    """SHA-256 of each file as hexadecimal digits, by path."""


def text_path(text_hash: str) -> str:
    """Return the path of the stored text of a hash (`sha256:<hex>`)."""
    return f"texts/{text_hash.removeprefix('sha256:')}.txt"


# --- writing ---------------------------------------------------------------------------------------------------------
def compose_bundle(
    files: Mapping[str, bytes],
    *,
    research_id: str,
    product_version: str,
    quotes_only: bool,
    key: Ed25519PrivateKey | None = None,
) -> bytes:
    """Make a ZIP file from files by path, with a manifest of their hashes, signed if a key is given.

    Equal files and keys give equal bytes.
    """
    ordered = sorted(files.items())
    manifest = Manifest(
        research_id=research_id,
        product_version=product_version,
        quotes_only=quotes_only,
        files={path: hashlib.sha256(data).hexdigest() for path, data in ordered},
    )
    buffer = io.BytesIO()
    manifest_json = manifest.model_dump_json(indent=1).encode() + b"\n"
    signed = []
    if key is not None:
        signed = [(SIGNATURE, key.sign(manifest_json))]
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [(MANIFEST, manifest_json), *signed, *ordered]:
            entry = zipfile.ZipInfo(path, FIXED_TIMESTAMP)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, data)
    return buffer.getvalue()


def private_key(data: bytes) -> Ed25519PrivateKey:
    """Read an unencrypted Ed25519 key, as `ssh-keygen` writes it. Raises `BundleUnusable`."""
    with suppress(ValueError, TypeError, UnsupportedAlgorithm):
        key = load_ssh_private_key(data, password=None)
        if isinstance(key, Ed25519PrivateKey):
            return key
    raise BundleUnusable("no private Ed25519 key without a password: make one with `ssh-keygen -t ed25519 -f KEYFILE`")


def public_key(data: bytes) -> Ed25519PublicKey:
    """Read the public part of such a key. Raises `BundleUnusable`."""
    with suppress(ValueError, UnsupportedAlgorithm):
        key = load_ssh_public_key(data)
        if isinstance(key, Ed25519PublicKey):
            return key
    raise BundleUnusable("no public Ed25519 key: name the file KEYFILE.pub of the key that signed")


# --- reading ---------------------------------------------------------------------------------------------------------
class DirectoryTooLarge(Exception):
    """The directory of a ZIP file is larger than that of any bundle."""


class DirectoryFile(io.FileIO):
    """A file whose directory is being read: a single read beyond `DIRECTORY_LIMIT` is refused.

    `zipfile` reads the whole directory at once, by the size that the end of the file states, and makes an object of
    each entry: 192 MB of it took 1.6 GB and 54 s.
    """

    is_open = False
    """True once the directory was read."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read. Raises `DirectoryTooLarge`."""
        if not self.is_open and size is not None and size > DIRECTORY_LIMIT:
            raise DirectoryTooLarge
        return super().read(-1 if size is None else size) or b""


class BundleReader:
    """An opened bundle. Opening one raises `BundleUnusable`, or OSError if the file cannot be read."""

    def __init__(self, path: Path) -> None:
        size = path.stat().st_size
        if size > BYTE_LIMIT:
            raise BundleUnusable(f"{path} has {size:,} bytes; a bundle has at most {BYTE_LIMIT:,}")
        file = DirectoryFile(path)
        try:
            self._archive = zipfile.ZipFile(file)
        except DirectoryTooLarge:
            file.close()
            raise BundleUnusable(f"{path} has too many files; a bundle has at most {FILE_LIMIT:,}") from None
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, ValueError, EOFError):
            file.close()
            raise BundleUnusable(f"{path} is no ZIP file: make one with `research export ID --bundle`") from None
        file.is_open = True
        self._file = file
        try:
            self._entries = _checked_entries(self._archive.infolist())
            self.manifest = self._read_manifest()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._archive.close()
        self._file.close()

    def differences(self) -> list[tuple[str, str, str]]:
        """Return kind, path and message for each file that is missing, unlisted, or does not match its hash."""
        problems = []
        for path, sha256 in self.manifest.files.items():
            try:
                if hashlib.sha256(self.read(path)).hexdigest() != sha256:
                    problems.append(("file_differs", path, "the file is not what its hash says"))
            except ContentCorrupt:
                problems.append(("file_differs", path, "the file is damaged: it cannot be unpacked"))
            except ContentMissing:
                problems.append(("file_missing", path, "the manifest lists this file, and it is not there"))
        extra = sorted(set(self._entries) - set(self.manifest.files) - {MANIFEST, SIGNATURE})
        return [*problems, *(("file_unlisted", path, "the manifest does not list this file") for path in extra)]

    @property
    def is_signed(self) -> bool:
        """True if there is a signature, by any key."""
        return SIGNATURE in self._entries

    def is_signed_by(self, key: Ed25519PublicKey) -> bool:
        """Return true if the manifest was signed with the private part of this key. Raises `ContentCorrupt`."""
        try:
            key.verify(self.read(SIGNATURE), self.read(MANIFEST))
        except (InvalidSignature, ContentMissing):
            return False
        return True

    def read(self, path: str) -> bytes:
        """Return a whole file. Raises `ContentMissing`, `ContentCorrupt`."""
        entry = self._entries.get(path)
        if entry is None:
            raise ContentMissing(f"the bundle has no file {path}")
        try:
            with self._archive.open(entry) as file:
                data = file.read(entry.file_size + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError):
            raise ContentCorrupt(f"{path} cannot be unpacked") from None
        if len(data) != entry.file_size:
            raise ContentCorrupt(f"{path} has another size than the bundle declares")
        return data

    async def text(self, text_hash: str) -> str:
        """Return the stored text of a hash. Raises `ContentMissing`, `ContentCorrupt`."""
        try:
            return self.read(text_path(text_hash)).decode("utf-8")
        except UnicodeDecodeError:
            raise ContentCorrupt(f"{text_hash} is no text") from None

    def _read_manifest(self) -> Manifest:
        try:
            return Manifest.model_validate_json(self.read(MANIFEST))
        except ContentMissing as error:
            raise BundleUnusable(f"{error}: it is no bundle of `research export`") from None
        except ValidationError as error:
            lines = "; ".join(error_lines(error)[:3])
            raise BundleUnusable(f"{MANIFEST} is not valid: {lines}") from None


def _checked_entries(entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Check the files before anything is unpacked, and return them by path. Raises `BundleUnusable`."""
    if len(entries) > FILE_LIMIT:
        raise BundleUnusable(f"the ZIP file has {len(entries):,} files; a bundle has at most {FILE_LIMIT:,}")
    total = sum(entry.file_size for entry in entries)
    if total > BYTE_LIMIT:
        raise BundleUnusable(f"the ZIP file unpacks to {total:,} bytes; a bundle has at most {BYTE_LIMIT:,}")
    files: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        limit = MANIFEST_LIMIT if entry.filename == MANIFEST else MAX_REPORT_BYTES
        problems = {
            "is a symbolic link": stat.S_ISLNK(entry.external_attr >> 16),
            "does not belong into a bundle": not MEMBER.fullmatch(entry.orig_filename),
            "is there twice": entry.filename in files,
            "is larger than any file of a bundle": entry.file_size > limit,
        }
        for problem, applies in problems.items():
            if applies:
                raise BundleUnusable(f"{entry.filename[:80]!r} {problem}: do not use this ZIP file")
        files[entry.filename] = entry
    return files
