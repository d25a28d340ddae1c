"""A text on one line of a terminal, cut at a word."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text


class OneLine:
    """A text on one line: what has no room is left out from a word on, and `…` says so."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield cut_at_word(self._text, options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, self._text.cell_len))


def cut_at_word(text: Text, width: int) -> Text:
    """The text within so many cells of a terminal; a word that has no room goes as a whole, if it is no giant."""
    line = text.copy()
    line.no_wrap, line.overflow = True, "ellipsis"
    if line.cell_len <= width:
        return line
    line.truncate(max(0, width - 1), overflow="crop")
    at_word = text.plain[len(line.plain) : len(line.plain) + 1] == " "
    last = len(line.plain) if at_word else line.plain.rfind(" ")
    if last > len(line.plain) // 2:
        line = line[:last]
    line.rstrip()
    return line.append("…")
