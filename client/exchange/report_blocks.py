"""A report as plain blocks of text, for documents that know no Markdown: nothing in a text is markup any more."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from markdown_it.tree import SyntaxTreeNode

from activities.reporting.links import Registry
from activities.reporting.markdown_layout import PARSER, plain_text
from activities.reporting.report_words import ReportWords
from client.exchange.exported_report import ExportedReport, safe_line, safe_text, web_address

BREAK = "\n"


@dataclass(frozen=True)
class TextRun:
    """Words of one look; `BREAK` alone is a line break."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    link: str | None = None


@dataclass(frozen=True)
class ReportBlock:
    """A part of a document."""

    kind: str
    """heading, paragraph, quote, list, code, table or rule."""
    runs: list[TextRun] = field(default_factory=list)
    level: int = 1
    """Of a heading, from 1."""
    text: str = ""
    """Of code."""
    parts: list[list["ReportBlock"]] = field(default_factory=list)
    """The blocks of each item of a list; the blocks of a quotation as the only part."""
    start: int | None = None
    """The first number of an ordered list."""
    rows: list[list[list[TextRun]]] = field(default_factory=list)
    """Cells of a table by rows, of which the first is its head."""


def title_of(report: ExportedReport) -> str:
    """The title of the report's text, else its question."""
    first = report.report.markdown.lstrip().partition("\n")[0]
    return safe_line(plain_text(first[2:])) if first.startswith("# ") else safe_line(report.query)


def blocks_of(report: ExportedReport) -> list[ReportBlock]:
    """The text of the report, and a list of its statements with what the check of each said."""
    quotes = (item.quote for item in report.evidence)
    registry = Registry.of([source.url for source in report.sources], report.query, quotes)
    tree = SyntaxTreeNode(PARSER.parse(safe_text(report.report.markdown)))
    return [*_blocks(tree, registry), *_statements(report)]


def _blocks(node: SyntaxTreeNode, registry: Registry) -> list[ReportBlock]:
    return [block for child in node.children for block in _block(child, registry)]


def _block(node: SyntaxTreeNode, registry: Registry) -> Iterator[ReportBlock]:
    match node.type:
        case "heading":
            yield ReportBlock("heading", _runs_of(node, registry), level=int(node.tag[1:]))
        case "paragraph":
            yield ReportBlock("paragraph", _runs_of(node, registry))
        case "blockquote":
            yield ReportBlock("quote", parts=[_blocks(node, registry)])
        case "bullet_list":
            yield ReportBlock("list", parts=[_blocks(item, registry) for item in node.children])
        case "ordered_list":
            start = int(node.attrs.get("start", 1))
            yield ReportBlock("list", parts=[_blocks(item, registry) for item in node.children], start=start)
        case "fence" | "code_block":
            yield ReportBlock("code", text=node.content.rstrip("\n"))
        case "table":
            rows = [row for part in node.children for row in part.children]
            yield ReportBlock("table", rows=[[_runs_of(cell, registry) for cell in row.children] for row in rows])
        case "hr":
            yield ReportBlock("rule")


def _runs_of(node: SyntaxTreeNode, registry: Registry) -> list[TextRun]:
    return [run for inline in node.children for run in _runs(inline, TextRun(""), registry) if run.text]


def _runs(node: SyntaxTreeNode, look: TextRun, registry: Registry) -> Iterator[TextRun]:
    match node.type:
        case "softbreak":
            yield replace(look, text=" ")
        case "hardbreak":
            yield TextRun(BREAK)
        case "code_inline":
            yield replace(look, text=node.content, code=True)
        case "text":
            yield replace(look, text=node.content)
        case _:
            inner = look
            if node.type == "strong":
                inner = replace(look, bold=True)
            elif node.type == "em":
                inner = replace(look, italic=True)
            elif node.type == "link":
                own = registry.registered(str(node.attrs.get("href", "")))
                inner = replace(look, link=web_address(own) if own else None)
            for child in node.children:
                yield from _runs(child, inner, registry)


def _statements(report: ExportedReport) -> Iterator[ReportBlock]:
    """A heading, and a paragraph for each statement: its verdict, its words, the reason."""
    if not report.claims:
        return
    say = ReportWords(report.language)
    yield ReportBlock("heading", [TextRun(say["statements"])], level=2)
    items = []
    for claim in report.claims:
        verdict = safe_line(say.name("judged", claim.verdict))
        method = safe_line(say.name("method", claim.method))
        words = safe_line(plain_text(claim.text))
        reason = TextRun(f" {safe_line(say.told(claim.reason))}", italic=True)
        runs = [TextRun(f"{verdict} ({method}): ", bold=True), TextRun(words), reason]
        items.append([ReportBlock("paragraph", runs)])
    yield ReportBlock("list", parts=items, start=1)
