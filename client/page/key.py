"""The key of the page, which the printed address has; this module costs a `serve` without visitors nothing."""

import os
import secrets
from pathlib import Path
from typing import Final

KEY_FILE: Final = "page.key"
KEY_PARAMETER: Final = "key"


def stored_key(path: Path) -> str:
    """Return the key in a file that only its owner can read, writing one if there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text("ascii").strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(key := secrets.token_urlsafe(24))
    return key
