"""Stored text as a reader sees it: the marks of headings, lists and table rows are gone, the words stay as they are.

Stored texts are Markdown, whatever the document was; the marks are ours, not the document's. Pure, and linear.
"""

import re
from typing import Final

BORDERS: Final = "\ue104\ue105"
"""Stand for where a quote begins and ends while lines are looked at; foreign text has no such characters left."""
RULE_ROW: Final = re.compile(rf"[|:\- {BORDERS}]*")
FENCE: Final = ("```", "~~~")
LEADING: Final = re.compile(rf"^([ {BORDERS}]*)(#{{1,6}} |[-*+] |> )")
ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
CELL_BORDER: Final = " · "


def without_marks(text: str) -> str:
    """The lines of a stored text without our marks; a row of a table is its cells."""
    return "\n".join(shown for line in text.split("\n") if (shown := _line(line)) is not None)


def passage_parts(before: str, quote: str, after: str) -> tuple[str, str, str]:
    """The three parts of a passage in its surroundings, each without our marks."""
    opening, closing = BORDERS
    plain = [part.replace(opening, "").replace(closing, "") for part in (before, quote, after)]
    shown = without_marks(f"{plain[0]}{opening}{plain[1]}{closing}{plain[2]}")
    head, _, rest = shown.partition(opening)
    body, _, tail = rest.partition(closing)
    return head, body, tail


def _line(line: str) -> str | None:
    """A line as it is shown; None for one that is nothing but marks."""
    bare = line.strip(f" {BORDERS}")
    borders = "".join(sign for sign in line if sign in BORDERS)
    if bare.startswith("|"):
        if RULE_ROW.fullmatch(line):
            return borders or None
        return _row(line)
    if bare.startswith(FENCE):
        return borders or None
    shown = LEADING.sub(lambda found: found[1] + ("• " if found[2][0] in "-*+" else ""), line, count=1)
    return ESCAPED.sub(r"\1", shown)


def _row(line: str) -> str:
    """The cells of a row, with what stands for the borders of the quote where it was."""
    cells = [cell.strip() for cell in line.replace("\\|", "\ue106").split("|")]
    kept = [cell for cell in cells if cell.strip(BORDERS)]
    loose = [cell for cell in cells if cell and not cell.strip(BORDERS)]
    first = "" if cells[0].strip(BORDERS) else cells[0]
    rest = "".join(loose[1 if first else 0 :])
    return (first + CELL_BORDER.join(kept) + rest).replace("\ue106", "|")
