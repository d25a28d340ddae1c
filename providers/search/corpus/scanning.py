"""The files of a folder, without opening one, and refusal of keys and passwords among them.

An operator who names a folder means its texts. A private key that is quoted in a report, or sent to a model, is lost.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from providers.errors import SourceUnreadable
from providers.interfaces import NO_DOCUMENT, SkippedFile
from providers.reading.document_kinds import is_meant_as_document
from providers.reading.regular_files import check_state, unreadable
from providers.search.corpus.definitions import path_address

KEY_NAMES: Final = """
id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
*.pem *.key *.p12 *.pfx *.jks *.keystore *.ppk *.kdb *.kdbx *.ovpn
.env .env.* *.env .netrc _netrc .npmrc .yarnrc .pypirc .pgpass .my.cnf .htpasswd
.git-credentials .dockercfg .boto .s3cfg .vault-token credentials credentials.json
client_secret*.json service-account*.json service_account*.json serviceaccount*.json
*.tfstate *.tfvars kubeconfig
.aws .ssh .gnupg .kube .docker .azure .gcloud .password-store
""".split()
"""Patterns of names of files and folders, in lower case."""
KEY_BYTES: Final = 65_536
"""Bytes of a file that are looked at: a key of a service account is near the beginning of its file."""
PRIVATE_KEY: Final = re.compile(
    rb"\s*+(?:\xef\xbb\xbf\s*+)?(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-)"
    rb'|\s*+\{(?s:.)*?"private_key"\s*+:\s*+"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----'
)
WHY: Final = "looks like a key or a password; a corpus holds documents"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that may be read."""

    path: str
    """Relative to the folder, as the file system has it."""
    address: str
    size: int
    mtime_ns: int


def scan_folder(root: Path, selects: Callable[[str], bool]) -> tuple[list[FoundFile], list[SkippedFile]]:
    """Return all files of a folder in the order of their paths, and what cannot be a document with its reason."""
    files, skipped, root, waiting = list[FoundFile](), list[SkippedFile](), root.resolve(), [""]

    def skip(path: str, error: SourceUnreadable) -> None:
        skipped.append(skipped_file(path_address(path), error))

    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as found:
                entries = list(found)
        except OSError as error:
            skip(folder or ".", unreadable(error))
            continue
        names = {entry.name for entry in entries}
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.name.startswith("."):  # hidden files are not worth a line, except for keys
                    refuse_key_name(entry.name)
                elif not entry.is_dir(follow_symlinks=False):
                    if selects(path):
                        refuse_key_name(path)
                        state = entry.stat(follow_symlinks=False)
                        check_state(state)
                        files.append(FoundFile(path, path_address(path), state.st_size, state.st_mtime_ns))
                elif entry.name != "_sources" or "objects.inv" not in names:  # Sphinx's pages once more, as typed
                    waiting.append(path)
            except OSError as error:
                skip(path, unreadable(error))
            except SourceUnreadable as error:
                skip(path, error)
    return sorted(files, key=lambda file: file.address), sorted(skipped, key=lambda one: one.path)


def skipped_file(address: str, error: SourceUnreadable) -> SkippedFile:
    """A file that is not used; of kind `NO_DOCUMENT` if it never was to be one."""
    meant = is_meant_as_document(address, error.kind)
    return SkippedFile(address, error.kind if meant else NO_DOCUMENT, str(error))


def is_key_name(name: str) -> bool:
    """Return true for a file or a folder with the name of one that has keys."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in KEY_NAMES)


def refuse_key_name(path: str) -> None:
    """Raise `SourceUnreadable` secret if any part of a relative path has such a name."""
    if any(is_key_name(part) for part in PurePosixPath(path).parts):
        raise SourceUnreadable("secret", WHY)


def refuse_key(content: bytes | str) -> None:
    """Raise `SourceUnreadable` secret for bytes or a text that is a private key, under any file name."""
    start = content[:KEY_BYTES]
    if PRIVATE_KEY.match(start.encode("utf-8", "replace") if isinstance(start, str) else start):
        raise SourceUnreadable("secret", WHY)
