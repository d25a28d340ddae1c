"""Documents that try to drive the terminal, read by the real command on a real terminal."""

import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from fcntl import ioctl

import pytest

from tests.acceptance.bench import LONGEST_WAIT, QUESTION, Bench, benched, only_document

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(240)]

ATTACK = "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x9b31m\x08\x08\rover\u202eevil\u2066\u200b"
PAGE = (
    f"# Vacuum [red]markup[/red] [link=http://evil.example]here[/link] {ATTACK}\n\n"
    "Vacuum prevents transaction id wraparound: it marks old rows as frozen. "
    f"The setting vacuum_freeze_max_age {ATTACK} controls when vacuum happens; its default is 200 million.\n"
)
OWN_CODES = re.compile(
    r"\x1b\[[0-9;]*m|\x1b\[\?(?:25|2026)[lh]|\x1b\[[0-9]*[AK]|\x1b\[2K|\x1b\[1A|\r\n|\r(?=\x1b)|\x1b\]8;[^\x1b\x07]*\x1b\\"
)
"""Colours, the cursor, marks of a frame, cleared lines and links: what the live view itself needs."""
DRIVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A corpus with such a document, under such a name."""
    with benched(tmp_path_factory.mktemp("terminal")) as made:
        (made.work / "manual" / "evil\x1b[31m\u202e.md").write_text(PAGE, encoding="utf-8")
        made.environment |= {"TERM": "xterm-256color"}
        made.environment.pop("NO_COLOR", None)
        yield made


def on_terminal(bench: Bench, *arguments: str) -> str:
    """All that a command writes to a terminal of 100 columns."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen(
        bench.command(*arguments), stdin=slave, stdout=slave, stderr=slave, cwd=bench.work, env=bench.environment
    )
    os.close(slave)
    written = bytearray()
    while True:
        ready, _, _ = select.select([master], [], [], LONGEST_WAIT)
        assert ready, "nothing was written for too long"
        try:
            written += os.read(master, 65_536)
        except OSError:  # the last one closed the terminal
            break
    os.close(master)
    process.wait(LONGEST_WAIT)
    return written.decode("utf-8")


def assert_harmless(written: str) -> None:
    """Nothing but the command's own codes drives the terminal."""
    left = OWN_CODES.sub("", written)
    assert not DRIVES.search(left), [
        left[max(0, found.start() - 60) : found.end() + 40] for found in DRIVES.finditer(left)
    ][:3]
    assert "\x1b]0;" not in written
    assert "\x1b[31mred" not in written


READING = (
    ("sources", "evil"),
    ("report", "evil", "--format", "json"),
    ("status", "evil"),
    ("run", ATTACK, "--corpus", f"./none{ATTACK}"),
)


def test_no_document_drives_the_terminal(bench: Bench) -> None:
    """The live view, lists, reports and errors show foreign text as text."""
    arguments = ("run", f"{QUESTION} {ATTACK}", "--corpus", "manual", "--depth", "light", "--id", "evil")
    watched = on_terminal(bench, *arguments)
    assert "report.html" in watched
    assert_harmless(watched)
    for command in READING:
        written = on_terminal(bench, *command)
        assert written.strip()
        assert_harmless(written)
    sources = only_document(bench.run("sources", "evil", "--json").stdout)
    (evil,) = [source["id"] for source in sources if "evil" in source["url"]]
    shown = on_terminal(bench, "sources", "evil", evil)
    assert "[red]markup[/red]" in shown
    assert_harmless(shown)
