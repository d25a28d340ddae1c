"""Everything that the command says passes one guard."""

import io

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from client.cli import output

ATTACK = "\x1b]0;owned\x07\x9b31m\u202eevil"


def test_lines_are_safe_in_any_form(capfd: pytest.CaptureFixture[str]) -> None:
    """Lines of the result, cut ones, lines beside it, and JSON hold no control character, also in a pipe."""
    output.say(ATTACK)
    output.say_cut(Text(ATTACK))
    output.tell(ATTACK)
    output.document({"title": ATTACK})
    output.json_line({"title": ATTACK})
    said = "".join(capfd.readouterr())
    assert said.count("evil") == 5
    assert not set(said) & set("\x1b\x07\x9b\u202e")


def test_raw_bytes_stay_in_a_pipe(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Another program gets the bytes themselves."""
    output.raw(ATTACK.encode())
    assert capfdbinary.readouterr().out == ATTACK.encode()


def test_a_live_view_keeps_its_own_codes_alone() -> None:
    """Colours of ours pass; texts within tables cannot add any."""
    table = Table.grid()
    table.add_row(Text(ATTACK, style="red"))
    console = output.SafeConsole(file=io.StringIO(), force_terminal=True, width=80, color_system="standard")
    console.print(Group(table, Text(ATTACK)))
    plain = Console(file=io.StringIO(), force_terminal=True, width=80, color_system="standard")
    plain.print(Text("x", style="red"))
    written = console.file.getvalue()
    assert "\x1b[31m" in written
    assert "\x1b]" not in written
    assert not set(written) & set("\x07\x9b\u202e")


def test_a_path_stays_whole_on_a_narrow_terminal() -> None:
    """Lines break between words; a word that has no room is left to the terminal, which copies it in one piece."""
    path = "reports/2026-11-23-how-does-a-context-manager-suppress/report.html"
    console = output.SafeConsole(file=io.StringIO(), force_terminal=True, width=40)
    output._print_wrapped(console, Text(f"  {path}   (md and json lie beside it, as always)"))
    lines = console.file.getvalue().splitlines()
    assert lines == [f"  {path}", "     (md and json lie beside it, as", "  always)"]
