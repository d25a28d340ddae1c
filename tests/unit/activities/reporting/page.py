"""A strict reader of our HTML: every tag closed, every attribute known."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt

VOID = {"meta", "br", "hr", "input"}
ALLOWED = {"html", "head", "meta", "title", "style", "body", "a", "span", "div", "nav", "ol", "ul", "li", "header", "p"}
ALLOWED |= {"h1", "h2", "h3", "h4", "h5", "h6", "main", "article", "section", "details", "summary", "footer", "mark"}
ALLOWED |= {"blockquote", "strong", "em", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "dl", "dt", "dd"}
ALLOWED |= {"fieldset", "legend", "label"}
ALLOWED |= VOID


class Page(HTMLParser):
    """What a page has: tags with their attributes, ids, links, text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(html)
        self.close()
        self.unbalanced += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Every tag closes the last one that is open."""
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        """Note text outside the style sheet."""
        if "style" not in self._open:
            self.text.append(data)

    @property
    def links(self) -> list[str]:
        return [attributes["href"] for tag, attributes in self.tags if tag == "a" and "href" in attributes]

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    def with_class(self, name: str) -> list[dict[str, str]]:
        return [attributes for _, attributes in self.tags if name in attributes.get("class", "").split()]


class _EveryLink(MarkdownIt):
    """A parser that also reports the links which others refuse by their scheme."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name
        return bool(url)


def link_targets(markdown: str) -> list[str]:
    """The targets of every link and image that a plain Markdown parser sees, definitions included."""
    tokens = _EveryLink("commonmark", {"html": False}).enable("table").parse(markdown)
    children = [child for token in tokens for child in token.children or []]
    return [str(child.attrs[name]) for child in children for name in ("href", "src") if name in child.attrs]
