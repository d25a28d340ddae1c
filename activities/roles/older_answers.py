"""Older answers of tools in a conversation without room for all of them: whole lines stay, the rest is counted."""

import re
from collections.abc import Iterator
from typing import Final

from activities.roles.untrusted import SIGN_END
from contracts.texts import plural
from contracts.tokens import RATIOS, Level
from providers.tokens.shortening import sentences_between

LONGEST_LINE: Final = 1_200  # characters; a longer line is no single statement and is cut into its sentences
NOTE_BEGINNING: Final = 90  # characters of a note in the index of an older answer, with its number
LINE_SIGN: Final = rf"(?:[0-9a-f]{{2}}{SIGN_END})?"
OPEN: Final = r"left open by this page: |no longer open, "
ENTRY: Final = re.compile(rf"{LINE_SIGN}(?:note \d+: |{OPEN}|\[|not shown to the reader)")
NOTE: Final = re.compile(rf"{LINE_SIGN}note (?P<number>\d+): ")
OPEN_LINE: Final = re.compile(rf"{LINE_SIGN}(?:{OPEN})")
END_OF_REPORT: Final = re.compile(r"\[\d+\] |Documents:$|Open point \d+: |Cut short: |Remark: |and \d+ more ")
"""Lines below the statements of an agent's report: without them nothing above has a source or a remainder."""
REPORTED_BY_NUMBER: Final = "which can be reported by number"
STAYS_IN_REPORT: Final = "which stay in your report"


def shortened_answer(text: str, level: Level, stays: str = REPORTED_BY_NUMBER) -> tuple[str, str]:
    """Return the lines of an answer that stay at a level, and what the reader is told of the others; empty if none.

    Of numbered notes see `shortened_notes`; `stays` says what is still possible with those that are not shown.
    """
    shown = shortened_notes(text, level, stays)
    if shown:
        return shown, ""
    lines = list(_whole_lines(text))
    # The first line names the section that was written, what was searched for, or who reports.
    kept = {0, *(index for index, line in enumerate(lines) if END_OF_REPORT.match(line))}
    room = RATIOS[level] * len(text)
    for index, line in enumerate(lines):
        if index in kept:
            continue
        if room <= 0:
            break
        kept.add(index)
        room -= len(line)
    left_out = len(lines) - len(kept)
    notice = f"[{plural(left_out, 'whole line')} of this answer left out]" if left_out else ""
    return "\n".join(lines[index] for index in sorted(kept)), notice


def _whole_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, and the sentences of a line that is no single statement."""
    for line in text.splitlines():
        if len(line) <= LONGEST_LINE:
            yield line
        else:
            yield from (line[start:end].strip() for start, end in sentences_between(line, 0, len(line)))


def shortened_notes(text: str, level: Level, stays: str = REPORTED_BY_NUMBER) -> str:
    """Return an answer with numbered notes at a level: its first line, whole notes, and of the others the first words.

    At the lowest level they are numbers alone. `stays` says what is still possible with them. What the page leaves open
    stays. Empty for an answer of another kind.
    """
    head, *entries = _entries(text)
    notes = [(match["number"], entry) for entry in entries if (match := NOTE.match(entry))]
    if not notes:
        return ""
    room = int(RATIOS[level] * len(text))
    shown = [head]
    others = list[tuple[str, str]]()
    for number, note in notes:
        room -= len(note)
        if room >= 0 and not others:
            shown.append(note)
        else:
            others.append((number, note))
    if others and level is Level.TRUNCATED:
        numbers = ", ".join(number for number, _ in others)
        shown.append(f"[without their words: the notes {numbers}, {stays}]\n")
    elif others:
        shown.append(f"[the first words of further notes, {stays}]\n")
        shown += [f"{_first_words(note)}\n" for _, note in others]
    return "".join([*shown, *(entry for entry in entries if OPEN_LINE.match(entry))])


def _first_words(note: str) -> str:
    """Return the first words of a note, with its number and the sign of its line."""
    line, _, more = note.strip("\n").partition("\n")
    if len(line) > NOTE_BEGINNING:
        return f"{line[:NOTE_BEGINNING].rpartition(' ')[0]} …"
    return f"{line} …" if more else line


def _entries(text: str) -> list[str]:
    """Return the lines of an answer before its first note, then each entry with the lines on which it goes on."""
    entries = [""]
    for line in text.splitlines(keepends=True):
        if ENTRY.match(line):
            entries.append(line)
        else:
            entries[-1] += line
    return entries
