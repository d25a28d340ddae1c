"""Quotes as Markdown: page text escaped, code as code, lists as lists, a row of a table under its header."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from providers.extractive.text_structure import MARKER_LIKE, Structure, TextBlock, TextBlockKind

_ALWAYS: Final = re.compile(r"[\\`*\[\]<>|~$]")
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_EDGE_UNDERSCORE: Final = re.compile(r"(?<!\w)_|_(?!\w)|__+")
_LINE_START_NUMBER: Final = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)")
_IMAGE: Final = re.compile(r"!(?=\\\[)")
_LINE_START_SIGN: Final = re.compile(r"^(\s*)([-+#=])(?=[\s=#+-]|$)")
_SUFFIXES: Final = (
    "py|toml|md|json|ya?ml|html?|conf|cfg|ini|txt|sh|bash|c|h|cpp|rs|go|js|ts|sql|xml|css|csv|log|lock|service|"
    "list|deb|dsc|gz|xz|bz2|zip|tar|so|a|o|pl|rb|java|pdf|db|sqlite3?"
)
_HOSTS: Final = "org|com|net|edu|gov|info|io|dev|eu|de|fr|es|it|pt|nl|uk|ch|at|br"
CODE: Final = re.compile(
    r"(?P<ticked>(?<![`\\])(?P<ticks>``?+)(?P<inside>[^`\n]{1,200}+)(?P=ticks)(?!`))"
    r"|(?<![^\s(\[{\"'“‘„«,;])(?:"
    r"[\w.+-]++@[\w-]++(?:\.[\w-]++)++"
    rf"|(?:[\w-]++\.)+?(?:{_HOSTS})(?![./-]*+\w)"
    r"|--[a-z][a-z0-9]*+(?:-[a-z0-9]++)*+(?![\w-])"
    r"|(?:~|\.{1,2})?(?:/\.?[\w+-]++(?:\.[\w+-]++)*+){2,}+/?"
    rf"|(?:[\w+-]++/)*+\w++(?:[.-]\w++)*?\.(?:{_SUFFIXES})(?![.-]*+\w)"
    r"|[A-Za-z][^\W_]*+_\w++(?:\.\w++)*+(?:\(\))?"
    r"|(?:[a-z][a-z0-9]*+\.)++[a-z][a-z0-9]*+_\w++"
    r"|[A-Za-z_]\w*+\(\)"
    r")(?![^\s)\]}\"'”’»,;:.!?…])"
)
"""What is code wherever it stands: marked as such, a mail address, an option, a path, a file, a name, a call."""
_FENCE_LINE: Final = re.compile(r"\s*+(?:```|~~~|(?=[|: ]*+-)[|: -]*+$)")
BULLET: Final = re.compile(r"^[-*+•]\s++")
HARD_BREAK: Final = "  "
"""At the end of a line: the next one begins on a line of its own."""
SHORTEST_WRAPPED: Final = 60
"""Characters: programs that wrap text fill at least so much of a line."""
CUT: Final = "…"
COMMAND: Final = re.compile(
    r"^(?:[$#%>] |sudo |git [a-z]|apt(?:-get)? [a-z])|\s--?[a-z]|;$|<\w[\w -]*>|[{}]|^\w+\(.*\)$"
)
"""How a line of its own that is no sentence looks if it is typed, not read."""


def escape(text: str) -> str:
    """One line of page text as Markdown that shows it literally; what is code is code."""
    pieces, last = [], 0
    for found in CODE.finditer(text):
        inside = found["inside"] or found[0]
        if inside != inside.strip() or "|" in inside or MARKER_LIKE.search(inside):
            continue
        pieces += [_escape_plain(text[last : found.start()], begins=not last), f"`{inside}`"]
        last = found.end()
    return "".join([*pieces, _escape_plain(text[last:], begins=not last)])


def _escape_plain(text: str, *, begins: bool) -> str:
    safe = _ALWAYS.sub(lambda match: "\\" + match.group(), text)
    safe = _ENTITY.sub(r"\\&", safe)
    safe = _EDGE_UNDERSCORE.sub(lambda match: "\\_" * len(match.group()), safe)
    safe = _IMAGE.sub(r"\\!", safe)
    if not begins:
        return safe
    safe = _LINE_START_NUMBER.sub(r"\1\\\2", safe)
    return _LINE_START_SIGN.sub(r"\1\\\2", safe)


def one_line(text: str) -> str:
    """Page text on one line, escaped: for titles, headings and cells."""
    return escape(" ".join(text.split()))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a quote: one block, or what of it was quoted."""

    block: TextBlock
    text: str
    marked: bool
    """Whether the bullet of an item was quoted, too."""


@dataclass(frozen=True, slots=True)
class QuotedRows:
    """Quoted rows of one table, as lines of Markdown."""

    table: tuple[str, int]
    """The document and where the table's header stands: rows of one table may stand together."""
    head: list[str]
    rows: list[str]


def quoted_rows(source_id: str, document: Structure, start: int, end: int, marker: str) -> QuotedRows | None:
    """A quoted range that is rows of a table with a header; None for any other."""
    pieces = list(_pieces(document, start, end))
    header = pieces[0].block.header if pieces else None
    if header is None or any(piece.block.header != header for piece in pieces):
        return None
    above = [cells_of(document.text[first:last]) for first, last in document.table_heads[header]]
    rows = [cells_of(piece.text) for piece in pieces]
    columns = max(map(len, [*above, *rows]))
    shown = [padded(row, columns) for row in rows]
    shown[-1] = f"{shown[-1].removesuffix(' |')} {marker} |"
    head = [padded(above[0], columns), "| " + " | ".join(["---"] * columns) + " |"]
    return QuotedRows((source_id, header), [*head, *(padded(row, columns) for row in above[1:])], shown)


def quote_lines(document: Structure, start: int, end: int, marker: str, indent: str = "") -> list[str]:
    """The lines of a quoted range as a blockquote that ends with its marker; a list that goes on says so."""
    pieces = list(_pieces(document, start, end))
    lines = _blocks(document, pieces) or [escape(" ".join(document.text[start:end].split()))]
    if pieces and document.list_goes_on(pieces[0].block, end):
        lines.append(f"- {CUT}")
    elif pieces and pieces[-1].block.kind is TextBlockKind.PROSE and _left_open(pieces[-1].text):
        lines[-1] += f" {CUT}"
    if lines[-1].startswith(("```", "~~~")):
        lines += ["", marker]
    else:
        lines[-1] = f"{lines[-1]} {marker}"
    return [f"{indent}> {line}" if line else f"{indent}>" for line in lines]


def _left_open(text: str) -> bool:
    """Whether a bracket is open at the end of a quote, so that the sentence goes on behind it."""
    return text.count("(") > text.count(")")


def _pieces(document: Structure, start: int, end: int) -> Iterator[_Piece]:
    for block in document.blocks_within(start, end):
        first, last = max(start, block.start), min(end, block.end)
        text = document.text[first:last]
        if text.strip():
            yield _Piece(block, text, marked=start < block.start)


def _blocks(document: Structure, pieces: list[_Piece]) -> list[str]:
    lines: list[str] = []
    many = sum(piece.block.kind is TextBlockKind.ITEM for piece in pieces) > 1
    before: _Piece | None = None
    for number, piece in enumerate(pieces):
        kind = piece.block.kind
        code = kind is TextBlockKind.CODE and not MARKER_LIKE.search(piece.text)
        own = _code(piece.text) if code else _prose(piece.text)
        if kind is TextBlockKind.LABEL:
            own = [_term(piece, pieces[number + 1] if number + 1 < len(pieces) else None)]
        elif kind is TextBlockKind.ITEM and (many or before is not None or piece.marked):
            mark = document.mark_of(piece.block)
            own = [f"{mark} {own[0]}", *(f"{' ' * (len(mark) + 1)}{line}" for line in own[1:])]
        elif kind in (TextBlockKind.ROW, TextBlockKind.HEAD):
            own = [escape(" · ".join(cells_of(piece.text)))]
        if before is not None:
            lines += _between(before, piece)
        if before is not None and before.block.kind is TextBlockKind.LABEL and lines[-1]:
            lines[-1] += HARD_BREAK
        lines += own
        before = piece
    return lines


def _between(one: _Piece, other: _Piece) -> list[str]:
    """A blank line, unless the two belong together: items of one list, a term and its text."""
    kinds = (one.block.kind, other.block.kind)
    if kinds == (TextBlockKind.ITEM, TextBlockKind.ITEM):
        return []
    return [] if kinds[0] is TextBlockKind.LABEL and kinds[1] is TextBlockKind.PROSE else [""]


def _term(piece: _Piece, following: _Piece | None) -> str:
    """A term in front of its text is bold; a line that is typed is code."""
    text = " ".join(piece.text.split())
    if COMMAND.search(text) and "`" not in text and not MARKER_LIKE.search(text):
        return f"`{text}`"
    explained = following is not None and following.block.kind is TextBlockKind.PROSE
    return f"**{escape(text)}**" if explained and "*" not in text else escape(text)


def _code(text: str) -> list[str]:
    """A block of code in a fence of its own; its lines as they are, without the fence that they had."""
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    if re.match(r"\s*(?:```|~~~)", lines[0]):
        lines = lines[1:-1] if len(lines) > 1 and re.match(r"\s*(?:```|~~~)", lines[-1]) else lines[1:]
    margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    fence = "```" if not any("```" in line for line in lines) else "~~~~"
    return [fence, *(line[margin:] for line in lines), fence]


def _prose(text: str) -> list[str]:
    """Wrapped lines joined; a line that ended early keeps its end."""
    lines = [line.strip() for line in text.strip().splitlines()]
    joined: list[str] = []
    for number, line in enumerate(lines):
        if number and not _ends_early(lines[number - 1], line):
            joined[-1] += f" {line}"
        else:
            joined.append(line)
    shown = [escape(line) for line in joined]
    return [f"{line}{HARD_BREAK}" for line in shown[:-1]] + shown[-1:]


def _ends_early(line: str, following: str) -> bool:
    """Whether a line had room for the first word of the next one, so that it was no program that wrapped it."""
    if not line or not following:
        return True
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) <= SHORTEST_WRAPPED


def quoted_cell(document: Structure, start: int, end: int) -> str:
    """A quoted range on one line, for a cell: terms are bold, so that their text does not run on from them."""
    pieces = list(_pieces(document, start, end))
    shown = []
    for number, piece in enumerate(pieces):
        if piece.block.kind is TextBlockKind.LABEL and number + 1 < len(pieces):
            shown.append(_term(piece, pieces[number + 1]))
        else:
            shown.append(one_line(without_layout(piece.text)))
    return " ".join(shown) or one_line(without_layout(document.text[start:end]))


def cells_of(row: str) -> list[str]:
    """The cells of a row of a stored table."""
    bare = row.strip().replace("\\|", "\ue106")
    bare = bare.removeprefix("|").removesuffix("|")
    return [" ".join(cell.replace("\ue106", "|").split()) for cell in bare.split("|")]


def without_layout(text: str) -> str:
    """The words of a quote on one line: without fences, bullets and the borders of cells."""
    lines = [line.strip() for line in text.splitlines() if not _FENCE_LINE.match(line)]
    return " ".join(" · ".join(cells_of(line)) if line.startswith("|") else BULLET.sub("", line) for line in lines)


def padded(cells: list[str], columns: int) -> str:
    """A row of Markdown."""
    shown = [one_line(cell) for cell in cells[:columns]]
    return f"| {' | '.join([*shown, *[''] * (columns - len(shown))])} |"
