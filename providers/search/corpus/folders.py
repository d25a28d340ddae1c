"""Named folders and their files: no device, pipe or link that leaves one is opened; keys and passwords are refused."""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from pydantic import Field

from contracts.base import StrictContract
from contracts.names import CORPUS_SCHEME
from contracts.resolved import NO_DOCUMENT, CorpusSnapshot, SkippedFile
from contracts.sentences import Message
from providers.errors import SourceUnreadable
from providers.reading.document_kinds import DOCUMENTS, MAX_FILE_BYTES, NO_DOCUMENTS

KEY_NAMES: Final = """
id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
*.pem *.key *.p12 *.pfx *.jks *.keystore *.ppk *.kdb *.kdbx *.ovpn
.env .env.* *.env .netrc _netrc .npmrc .yarnrc .pypirc .pgpass .my.cnf .htpasswd
.git-credentials .dockercfg .boto .s3cfg .vault-token credentials credentials.json
client_secret*.json service-account*.json service_account*.json serviceaccount*.json
*.tfstate *.tfvars kubeconfig
.aws .ssh .gnupg .kube .docker .azure .gcloud .password-store
""".split()
"""Patterns of file and folder names, in lower case."""
KEY_NAME: Final = re.compile("|".join(map(translate, KEY_NAMES)))
KEY_BYTES: Final = 65_536  # first bytes of a file: the key of a service account is near its beginning
PRIVATE_KEY: Final = re.compile(
    rb"\s*+(?:\xef\xbb\xbf\s*+)?(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-)"
    rb'|\s*+\{(?s:.)*?"private_key"\s*+:\s*+"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----'
)
KEY_REFUSAL: Final = Message("skip_key")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be read."""

    path: str
    """Relative to the folder, as in the file system."""
    address: str
    size: int
    mtime_ns: int


def unreadable(error: OSError | RuntimeError) -> SourceUnreadable:
    """Return the typed reason for an error of the operating system."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return SourceUnreadable("not_found", Message("skip_gone"))
    if isinstance(error, PermissionError):
        return SourceUnreadable("permission_denied", Message("skip_forbidden"))
    if isinstance(error, IsADirectoryError):
        return SourceUnreadable("not_a_file", Message("skip_not_regular"))
    return SourceUnreadable("malformed", Message("skip_disk"))


def read_regular_file(path: Path, root: Path | None = None) -> bytes:
    """Return the bytes of a regular file. Raises `SourceUnreadable`.

    It must be below `root` if that is given, a path that is resolved.
    """
    try:
        real = path.resolve(strict=True)
        if root is not None and not real.is_relative_to(root):
            raise SourceUnreadable("outside", Message("skip_outside"))
        # NONBLOCK: a pipe swapped in between listing and opening must not block.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            check_state(os.fstat(descriptor))
            return file.read(MAX_FILE_BYTES)
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for a loop of links
        raise unreadable(error) from error


def check_state(state: os.stat_result) -> None:
    """Refuse a file that cannot be a document because of its kind or its size. Raises `SourceUnreadable`."""
    if not stat.S_ISREG(state.st_mode):
        if stat.S_ISLNK(state.st_mode):
            reason = Message("skip_link")
        else:
            reason = Message("skip_not_regular")
        raise SourceUnreadable("not_a_file", reason)
    if state.st_size == 0:
        raise SourceUnreadable("empty", Message("skip_empty"))
    if state.st_size > MAX_FILE_BYTES:
        raise SourceUnreadable("too_large", Message("skip_large", size=MAX_FILE_BYTES))


def scan_folder(root: Path, selects: Callable[[str], bool]) -> tuple[list[FoundFile], list[SkippedFile]]:
    """Return all files of a folder in the order of their paths, and those that cannot be documents with reasons."""
    files: list[FoundFile] = []
    skipped: list[SkippedFile] = []
    root = root.resolve()
    pending = [""]

    def skip(path: str, error: OSError | SourceUnreadable) -> None:
        reason = unreadable(error) if isinstance(error, OSError) else error
        skipped.append(skipped_file(path_address(path), reason))

    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as iterator:
                entries = list(iterator)
        except OSError as error:
            skip(folder or ".", error)
            continue
        names = {entry.name for entry in entries}
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.name.startswith("."):  # hidden files are not reported, except for keys
                    refuse_key_name(entry.name)
                elif not entry.is_dir(follow_symlinks=False):
                    if selects(path):
                        refuse_key_name(path)
                        state = entry.stat(follow_symlinks=False)
                        check_state(state)
                        files.append(FoundFile(path, path_address(path), state.st_size, state.st_mtime_ns))
                elif entry.name != "_sources" or "objects.inv" not in names:  # Sphinx's copies of its page sources
                    pending.append(path)
            except (OSError, SourceUnreadable) as error:
                skip(path, error)
    return sorted(files, key=lambda file: file.address), sorted(skipped, key=lambda file: file.path)


def skipped_file(address: str, error: SourceUnreadable) -> SkippedFile:
    """Return the record of a skipped file; of kind `NO_DOCUMENT` if its name is not that of a document."""
    suffix = PurePosixPath(address.lower()).suffix
    if error.kind == "binary":
        relevant = suffix in DOCUMENTS
    else:
        relevant = error.kind == "secret" or suffix not in NO_DOCUMENTS
    return SkippedFile(path=address, kind=error.kind if relevant else NO_DOCUMENT, reason=error.reason)


def refuse_key_name(path: str) -> None:
    """Raise `SourceUnreadable` secret if any part of a relative path names a file or a folder of keys."""
    if any(map(KEY_NAME.fullmatch, path.lower().split("/"))):
        raise SourceUnreadable("secret", KEY_REFUSAL)


def refuse_key(content: bytes | str) -> None:
    """Raise `SourceUnreadable` secret for bytes or a text that is a private key, under any file name."""
    beginning = content[:KEY_BYTES]
    if PRIVATE_KEY.match(beginning.encode("utf-8", "replace") if isinstance(beginning, str) else beginning):
        raise SourceUnreadable("secret", KEY_REFUSAL)


# --- definitions and addresses ----------------------------------------------------------------------------------------
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
UNSAFE: Final = re.compile(rb"[\x00-\x20%#?\\<>\"\x7f]")  # bytes of a path that are escaped in addresses


class CorpusDefinition(StrictContract):
    """A named folder of documents."""

    name: str = Field(pattern=NAME)
    path: Path
    include: tuple[str, ...] = ()
    """Patterns of relative paths or file names (`*` matches any characters); empty: all files."""
    exclude: tuple[str, ...] = ()
    authority: str = Field(default="high", pattern="^(high|medium|low|unknown)$")
    """Authority of its documents, declared by the operator."""
    title: str = ""
    language: str = ""
    """Language of its documents; empty: detected when they are first indexed."""

    def snapshot(self, **state: Any) -> CorpusSnapshot:
        """Return a snapshot of the corpus; without values, that of a corpus without an index."""
        return CorpusSnapshot(name=self.name, title=self.title, authority=self.authority, **state)

    def selects(self, path: str) -> bool:
        """Return true for a relative path that belongs to the corpus; hidden names never do."""
        parts = PurePosixPath(path).parts
        names = (path, parts[-1])
        included = not self.include or any(fnmatchcase(name, pattern) for name in names for pattern in self.include)
        excluded = any(fnmatchcase(name, pattern) for name in names for pattern in self.exclude)
        return included and not excluded and not any(part.startswith(".") for part in parts)


def path_address(path: str) -> str:
    """Return a relative path as used in addresses and the index: Unicode with unsafe characters escaped."""
    escaped = UNSAFE.sub(lambda match: b"%%%02X" % match.group()[0], os.fsencode(path))
    try:
        return escaped.decode("utf-8")
    except UnicodeDecodeError:
        return re.sub(rb"[\x80-\xff]", lambda match: b"%%%02X" % match.group()[0], escaped).decode("ascii")


def address_path(address: str) -> str:
    """Invert `path_address`. Raises `SourceUnreadable` outside for a path that leaves its folder."""
    path = os.fsdecode(unquote_to_bytes(address))
    parts = path.split("/")
    if not path or "\0" in path or path.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        raise SourceUnreadable("outside", "the address leads out of the corpus")
    return path


def document_url(corpus: str, address: str) -> str:
    """Return the URL of a document."""
    return f"{CORPUS_SCHEME}{corpus}/{address}"


def split_url(url: str) -> tuple[str, str]:
    """Return corpus name and path address of a URL. Raises `SourceUnreadable` not_found for any other URL."""
    name, slash, address = url.removeprefix(CORPUS_SCHEME).partition("/")
    if not url.startswith(CORPUS_SCHEME) or not name or not slash or not address:
        raise SourceUnreadable("not_found", "no address of a document in a corpus")
    return name, address
