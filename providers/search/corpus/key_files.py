"""Files that look like keys and passwords: they may lie in any folder, and are no documents.

Who names a folder means its texts. A private key that is quoted in a report, or sent to a model, is lost.
"""

import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final

from providers.errors import SourceUnreadable

NAMES: Final = (
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdb", "*.kdbx", "*.ovpn"),
    *(".env", ".env.*", "*.env", ".netrc", "_netrc", ".npmrc", ".yarnrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".git-credentials", ".dockercfg", ".boto", ".s3cfg", ".vault-token", "credentials", "credentials.json"),
    *("client_secret*.json", "service-account*.json", "service_account*.json", "serviceaccount*.json"),
    *("*.tfstate", "*.tfvars", "kubeconfig"),
)
"""Patterns of file names, in lower case."""
FOLDERS: Final = frozenset({".aws", ".ssh", ".gnupg", ".kube", ".docker", ".azure", ".gcloud", ".password-store"})
LOOKED_AT: Final = 65_536
"""Bytes: a key of a service account stands near the beginning of its file."""
PRIVATE_KEY: Final = re.compile(
    rb"\s*+(?:\xef\xbb\xbf\s*+)?(?:-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-)"
)
SERVICE_ACCOUNT: Final = re.compile(rb'"private_key"\s*+:\s*+"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----')
WHY: Final = "looks like a key or a password; a corpus holds documents"


def is_key_name(name: str) -> bool:
    """Whether a file or a folder is called as those are that hold keys."""
    lower = name.lower().removesuffix(".gz")
    return lower in FOLDERS or any(fnmatchcase(lower, pattern) for pattern in NAMES)


def refuse_key_name(path: str) -> None:
    """Raises `SourceUnreadable` secret if any part of a relative path is called so."""
    if any(is_key_name(part) for part in PurePosixPath(path).parts):
        raise SourceUnreadable("secret", WHY)


def refuse_key(content: bytes | str) -> None:
    """Raises `SourceUnreadable` secret for bytes or a text that is a private key, whatever its file is called."""
    start = content[:LOOKED_AT]
    if isinstance(start, str):
        start = start.encode("utf-8", "replace")
    if PRIVATE_KEY.match(start) or (start.lstrip()[:1] == b"{" and SERVICE_ACCOUNT.search(start)):
        raise SourceUnreadable("secret", WHY)
