"""Collects real documents of public packages into a folder, for `benchmarks.reading`.

    python -m benchmarks.real_files FOLDER

Needs `apt-get` with Debian 12's packages, `dpkg-deb` and `pip`; nothing is installed. Of each package and each suffix
the `EACH` files are taken whose contents have the lowest SHA-256, so the same versions give the same files. The list,
with package, version and digest, is written into `files.json` beside them.
"""

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

EACH = 40
MAX_BYTES = 4_000_000
SUFFIXES = frozenset((".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".eml", ".epub", ".ipynb", ".html", ".txt", ".csv"))
MAILS = {
    "django-mailbox": "tests/messages/*.eml",
    "dkimpy": "dkim/tests/data/*m*s*g*",
    "flufl.bounce": "tests/data/*.txt",
    "hyperkitty": "tests/testdata/*.txt",
    "libpython3.11-testsuite": "test_email/data/msg_*.txt",
    "mail-parser": "tests/mails/mail_*",
    "mailman": "tests/data/*.eml",
    "spamassassin": "examples/sample-*spam.txt",
    "talon": "tests/fixtures/standard_replies/*.eml",
}
"""Where packages have mails, which have any name; no other files of these are taken."""
DEBIAN = (
    "debian-policy",
    "developers-reference",
    "docbook-xsl-doc-pdf",
    "git-doc",
    "gnuplot-doc",
    "libpython3.11-testsuite",
    "libreoffice-help-en-us",
    "maint-guide-ja",
    "postgresql-doc-15",
    "r-doc-pdf",
    "spamassassin",
    "sqlite3-doc",
    "texlive-lang-arabic",
    "texlive-latex-base-doc",
)
PYPI = (
    "django-mailbox==4.10.1",
    "dkimpy==1.1.8",
    "docx2python==3.7.1",
    "docxcompose==2.2.0",
    "docxtpl==0.20.2",
    "flufl.bounce==6.0.0",
    "hyperkitty==1.3.12",
    "mail-parser==4.8.0",
    "mailman==3.3.10",
    "nbconvert==7.17.2",
    "nbformat==5.11.1",
    "odfpy==1.4.1",
    "openpyxl==3.1.5",
    "pdfminer.six==20260107",
    "pdfplumber==0.11.10",
    "pyexcel==0.7.6",
    "pyexcel-xlsx==0.6.1",
    "pypdf==7.1.1",
    "python-docx==1.2.0",
    "python-pptx==1.0.2",
    "talon==1.4.4",
)


def debian(name: str, folder: Path) -> str:
    """Unpack a package of Debian, and return its version."""
    subprocess.run(["apt-get", "download", "--quiet", name], cwd=folder, check=True, capture_output=True)
    archive = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "--extract", archive, folder / "files"], check=True)
    shown = subprocess.run(["dpkg-deb", "--field", archive, "Version"], check=True, capture_output=True, text=True)
    return shown.stdout.strip()


def pypi(pinned: str, folder: Path) -> str:
    """Unpack the source archive of a package of PyPI, and return its version."""
    name, _, version = pinned.partition("==")  # what builds the package may be binary
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name, pinned]
    subprocess.run([*command, "--dest", folder], check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "files", filter="data")
    return version


def documents(folder: Path, mails: str | None = None) -> dict[str, dict[str, bytes]]:
    """Return the documents below a folder by suffix and digest; some texts of Debian's are compressed.

    With `mails`, the end of their paths, only those files are taken.
    """
    found: defaultdict[str, dict[str, bytes]] = defaultdict(dict)
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name = path.name.removesuffix(".gz")
        suffix = Path(name).suffix.lower() if mails is None else ".eml" if path.match(mails) else ""
        if suffix in SUFFIXES and 0 < path.stat().st_size <= MAX_BYTES:
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found[suffix].setdefault(f"{hashlib.sha256(raw).hexdigest()}/{name}", raw)
    return found


def main() -> None:
    """Collect the documents."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    target = parser.parse_args().folder
    chosen = []
    for source, names in ((debian, DEBIAN), (pypi, PYPI)):
        for package in names:
            with tempfile.TemporaryDirectory() as temporary:
                version = source(package, Path(temporary))
                for suffix, files in documents(
                    Path(temporary) / "files", MAILS.get(package.partition("==")[0])
                ).items():
                    for key in sorted(files)[:EACH]:
                        digest, _, name = key.partition("/")
                        place = target / suffix[1:] / f"{digest[:6]}_{name.removesuffix(suffix)}{suffix}"
                        place.parent.mkdir(parents=True, exist_ok=True)
                        place.write_bytes(files[key])
                        chosen.append({"file": str(place.relative_to(target)), "package": package.partition("==")[0],
                                       "version": version, "sha256": digest})  # fmt: skip
    (target / "files.json").write_text(json.dumps(chosen, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(chosen)} files of {len(DEBIAN) + len(PYPI)} packages")


if __name__ == "__main__":
    main()
