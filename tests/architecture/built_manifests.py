"""What kustomize makes of the overlays of deploy/kubernetes; `make kubernetes` builds them anew, with the kustomize of kubectl."""

import hashlib
import subprocess
from pathlib import Path

from tests.architecture.repository import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
BUILT = Path(__file__).parent / "manifests"
OVERLAYS = ("small", "large")
SOURCES = ("deploy/kubernetes", "deploy/valkey", "deploy/searxng")


def digest_of_sources() -> str:
    """A hash of all files that kustomize reads."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def heading() -> str:
    """The first line of a built file, which says what it was built from."""
    return f"# Built by `make kubernetes` from files with the digest {digest_of_sources()}\n"


def build(overlay: str) -> str:
    """The objects of an overlay, as `kubectl apply -k` would send them."""
    command = ["kubectl", "kustomize", str(KUBERNETES / "overlays" / overlay)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    for name in OVERLAYS:
        (BUILT / f"{name}.yaml").write_text(heading() + build(name), encoding="utf-8")
