"""Read a bundle from strangers: nothing is unpacked to disk, and nothing is read that was not declared and bounded."""

import hashlib
import stat
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from client.exchange.bundle import (
    LARGEST_BYTES,
    LARGEST_RATIO,
    MANIFEST,
    MEMBER,
    MOST_FILES,
    SMALLEST_SUSPECT_BYTES,
    Manifest,
    text_path,
)
from providers.errors import ContentCorrupt, ContentMissing

PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1


class BundleUnusable(Exception):
    """A file is no bundle, or one that is not safe to read; the message says why."""


@dataclass(frozen=True)
class FileDifference:
    """A file that is not what the manifest says."""

    kind: str
    """`file_differs`, `file_missing` or `file_unlisted`."""
    path: str
    message: str


class BundleReader:
    """An opened bundle. Making one raises `BundleUnusable`, or OSError for a file that cannot be read."""

    def __init__(self, path: Path) -> None:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise BundleUnusable(f"{path} has {size:,} bytes; a bundle has at most {LARGEST_BYTES:,}")
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, ValueError, EOFError):
            raise BundleUnusable(
                f"{path} is no ZIP file: make a bundle with `research export ID --bundle FILE.zip`"
            ) from None
        try:
            self._entries = _checked_entries(self._archive.infolist())
            self.manifest = self._read_manifest()
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()

    def differences(self) -> list[FileDifference]:
        """Every file that is missing, not listed, or other than its hash."""
        found = []
        listed = {file.path: file for file in self.manifest.files}
        for path, file in listed.items():
            try:
                data = self.read(path)
            except ContentCorrupt:
                found.append(FileDifference("file_differs", path, "the file is damaged: it cannot be unpacked"))
            except ContentMissing:
                found.append(FileDifference("file_missing", path, "the manifest lists this file, and it is not there"))
            else:
                if hashlib.sha256(data).hexdigest() != file.sha256:
                    found.append(FileDifference("file_differs", path, "the file is not what its hash says"))
        extra = [path for path in self._entries if path not in listed and path != MANIFEST]
        unlisted = "the manifest does not list this file"
        return [*found, *(FileDifference("file_unlisted", path, unlisted) for path in extra)]

    def read(self, path: str) -> bytes:
        """A file whole. Raises `ContentMissing`, `ContentCorrupt`."""
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
        """The stored text of a hash. Raises `ContentMissing`, `ContentCorrupt`."""
        data = self.read(text_path(text_hash))
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise ContentCorrupt(f"{text_hash} is no text") from None

    def _read_manifest(self) -> Manifest:
        try:
            manifest = Manifest.model_validate_json(self.read(MANIFEST))
        except ContentMissing:
            raise BundleUnusable(f"the ZIP file has no {MANIFEST}: it is no bundle of `research export`") from None
        except ContentCorrupt:
            raise BundleUnusable(f"{MANIFEST} is damaged: ask for the bundle again") from None
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise BundleUnusable(f"{MANIFEST} is not valid: {place + ': ' if place else ''}{first['msg']}") from None
        paths = [file.path for file in manifest.files]
        if len(set(paths)) != len(paths):
            raise BundleUnusable(f"{MANIFEST} lists a file twice: do not use this bundle")
        return manifest


def _checked_entries(entries: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """The files by path, before anything is unpacked. Raises `BundleUnusable`."""
    if len(entries) > MOST_FILES:
        raise BundleUnusable(f"the ZIP file has {len(entries):,} files; a bundle has at most {MOST_FILES:,}")
    whole = sum(entry.file_size for entry in entries)
    if whole > LARGEST_BYTES:
        raise BundleUnusable(f"the ZIP file unpacks to {whole:,} bytes; a bundle has at most {LARGEST_BYTES:,}")
    files: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        shown = repr(entry.filename[:80])
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise BundleUnusable(f"{shown} is a symbolic link: a bundle has files alone; do not use it")
        if not MEMBER.fullmatch(entry.orig_filename):
            raise BundleUnusable(f"the name {shown} does not belong into a bundle; do not unpack this ZIP file")
        if entry.filename in files:
            raise BundleUnusable(f"{shown} is there twice: do not use this bundle")
        if entry.flag_bits & ENCRYPTED or entry.compress_type not in PACKINGS:
            raise BundleUnusable(f"{shown} is encrypted or packed in a way that bundles do not use")
        if entry.file_size > max(SMALLEST_SUSPECT_BYTES, entry.compress_size * LARGEST_RATIO):
            raise BundleUnusable(f"{shown} unpacks to {entry.file_size:,} bytes, too many for its size: a ZIP bomb")
        files[entry.filename] = entry
    return files
