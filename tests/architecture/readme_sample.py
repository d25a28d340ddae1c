"""The sample report of the README, made from the demo: `python -m tests.architecture.readme_sample` writes it anew."""

import asyncio
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.passages import answer
from providers.isolation.pool import SubprocessPool
from providers.search.corpus import CorpusLibrary
from tests.architecture.repository import ROOT

README = ROOT / "README.md"
DEMO = ROOT / "examples" / "demo.sh"
EXPORT = ROOT / "examples" / "export_python_docs.py"
NAME = "python-docs"
BLOCK = re.compile(
    r"(?P<open><!-- sample of the demo, Python (?P<python>[\d.]+) -->\n```markdown\n)(?P<sample>.*?)"
    r"(?P<close>```\n<!-- end of the sample -->)",
    re.DOTALL,
)
PASSAGES = 2
"""Passages that are shown."""
SOURCES = 2


def python_version() -> str:
    """The version whose documentation the demo exports: `3.11`."""
    return ".".join(platform.python_version_tuple()[:2])


def question_of_the_demo() -> str:
    """The first question that `make demo` asks."""
    found = re.search(r'^ask 0 "(.+)"$', DEMO.read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]


async def report_of_the_demo(folder: Path) -> str:
    """`report.md` of a whole run over the exported documents, without a server."""
    documents = folder / NAME
    async with SubprocessPool(1) as pool:
        library = CorpusLibrary(folder / "home", pool)
        library.add(NAME, documents)
        await library.refresh(NAME)
        markdown, *_ = await answer(library, NAME, question_of_the_demo())
    return markdown


def sample_of(report: str) -> str:
    """The beginning of a report and the first of its sources; what is left out is marked, dates are left out."""
    body, _, rest = report.partition("\n## Sources\n\n")
    sources = [re.sub(r" · read [\d-]+", "", line) for line in rest.split("\n\n")[0].splitlines()]
    passages = re.split(r"\n(?=\*[^*])", body)
    shown = "\n".join(passages[: 1 + PASSAGES]).rstrip()
    return f"{shown}\n\n…\n\n## Sources\n\n" + "\n".join(sources[:SOURCES]) + "\n…\n"


def make_sample() -> str:
    """The sample as the code of today makes it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(EXPORT), str(Path(folder) / NAME)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return sample_of(asyncio.run(report_of_the_demo(Path(folder))))


if __name__ == "__main__":
    text = README.read_text("utf-8")
    block = BLOCK.search(text)
    assert block is not None
    opening = block["open"].replace(block["python"], python_version())
    README.write_text(text[: block.start()] + opening + make_sample() + block["close"] + text[block.end() :], "utf-8")
