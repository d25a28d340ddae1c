"""Preformatted text: its characters as they stand on the screen, line by line."""

from typing import Final

from providers.reading.html.rules import BLOCKS, DROPPED, Element, is_hidden

CELLS: Final = frozenset(("td", "th"))
"""Beside one another, not below."""


def code_of(element: Element) -> str:
    """The characters of a preformatted block without what readers do not see; each line of it ends once."""
    lines = _Lines()
    lines.read(element)
    return "".join(lines.parts)


class _Lines:
    """Text that is being gathered, and where its last line stands."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.begun = False
        """Whether the last line has characters."""
        self.owed = False
        """Whether the next characters stand on a new line."""

    def read(self, element: Element) -> None:
        """Append the words of an element."""
        self._add(element.text)
        for child in element:
            tag = child.tag
            if tag == "br":
                self._break()
                self.parts.append("\n")
                self.begun = False
            elif isinstance(tag, str) and tag not in DROPPED and not is_hidden(child):
                self._part(child, is_line=tag in BLOCKS and tag not in CELLS)
            self._add(child.tail)

    def _part(self, element: Element, *, is_line: bool) -> None:
        self.owed = self.owed or (is_line and self.begun)
        if is_line:
            self._break()
        elif element.tag in CELLS and self.begun and not self.owed:
            self._add("\t")
        self.read(element)
        self.owed = self.owed or (is_line and self.begun)

    def _break(self) -> None:
        """Begin the new line that is owed."""
        if self.owed:
            self.parts.append("\n")
        self.begun, self.owed = self.begun and not self.owed, False

    def _add(self, words: str | None) -> None:
        if not words:
            return
        if words.startswith("\n"):
            self.owed = False  # a line that ends anyway
        self._break()
        self.parts.append(words)
        self.begun = not words.endswith("\n")
