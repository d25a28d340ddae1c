"""Write a bundle: the same report gives the same bytes."""

import io
import zipfile
from collections.abc import Mapping
from typing import Final

from client.exchange.bundle import MANIFEST, Manifest, bundled_file

NO_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The date of every file, so that equal reports give equal bundles."""
READABLE: Final = 0o100644


def compose_bundle(files: Mapping[str, bytes], *, research_id: str, product_version: str, quotes_only: bool) -> bytes:
    """A ZIP file of these files by path, behind a manifest of their hashes."""
    manifest = Manifest(
        research_id=research_id,
        product_version=product_version,
        quotes_only=quotes_only,
        files=[bundled_file(path, data) for path, data in sorted(files.items())],
    )
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, MANIFEST, manifest.model_dump_json(indent=1).encode() + b"\n")
        for path, data in sorted(files.items()):
            _add(archive, path, data)
    return whole.getvalue()


def _add(archive: zipfile.ZipFile, path: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(path, NO_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = READABLE << 16
    archive.writestr(entry, data)
