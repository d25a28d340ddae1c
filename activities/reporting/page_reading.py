"""What the HTML form of a report shows, read back for the audit; whatever is no such page shows nothing."""

from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Final

VOID: Final = frozenset(("meta", "link", "br", "hr", "input", "img", "base", "area", "col", "embed", "source", "wbr"))
"""Elements without an end."""
ASIDE: Final = frozenset(("cite", "sign"))
"""Classes of what is no part of a sentence."""


def squeezed(texts: Iterable[str]) -> str:
    """Return texts without white space."""
    return "".join("".join(text.split()) for text in texts)


class ReadPage(HTMLParser):
    """The text, passages, verdicts and links of a page; texts are without white space."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.article = self.outcome = self.method = ""
        self.titles: list[str] = []
        self.quotes: set[str] = set()
        self.verdicts: dict[str, str] = {}
        self.links: list[str] = []
        self._open: list[tuple[str, frozenset[str]]] = []
        self._quote: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a place, a verdict or a link."""
        given = {name: value or "" for name, value in attrs}
        classes = frozenset(given.get("class", "").split())
        if "check" in classes:
            verdicts = [name.removeprefix("v-") for name in classes if name.startswith("v-")]
            self.verdicts[given.get("id", "")] = ",".join(sorted(verdicts))
        if not given.get("href", "#").startswith("#"):
            self.links.append(given["href"])
        if tag == "h3" and self._within("sources"):
            self.titles.append("")
        if tag not in VOID:
            self._open.append((tag, classes))

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and what was left open in it."""
        if tag == "mark":
            self.quotes.add("".join(self._quote))
            self._quote = []
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Add words to the part that they are in."""
        words, tags = squeezed([data]), {tag for tag, _ in self._open}
        if "article" in tags and not any(classes & ASIDE for _, classes in self._open):
            self.article += words
        if "mark" in tags:
            self._quote.append(words)
        if "h3" in tags and self._within("sources") and self.titles:
            self.titles[-1] += words
        if self._within("outcome"):
            self.outcome += words
        if "dl" in tags:
            self.method += words

    def _within(self, name: str) -> bool:
        return any(name in classes for _, classes in self._open)
