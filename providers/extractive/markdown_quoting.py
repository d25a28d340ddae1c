"""Page text in Markdown: escaped so that a renderer shows exactly the quote, and nothing in it acts."""

import re

_ALWAYS = re.compile(r"[\\`*\[\]<>|~$]")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_EDGE_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)|__+")
_LINE_START = re.compile(r"^(\s*)([-+#=]|\d{1,9}(?=[.)]))")
_LINE_START_NUMBER = re.compile(r"^(\s*\d{1,9})([.)])")
_IMAGE = re.compile(r"!(?=\\\[)")


def escaped(text: str) -> str:
    """One line of page text as Markdown that shows it literally."""
    safe = _ALWAYS.sub(lambda match: "\\" + match.group(), text)
    safe = _ENTITY.sub(r"\\&", safe)
    safe = _EDGE_UNDERSCORE.sub(lambda match: "\\_" * len(match.group()), safe)
    safe = _IMAGE.sub(r"\\!", safe)
    safe = _LINE_START_NUMBER.sub(r"\1\\\2", safe)
    return re.sub(r"^(\s*)([-+#=])", r"\1\\\2", safe)


def one_line(text: str) -> str:
    """Page text on one line, escaped: for titles, headings and cells."""
    return escaped(" ".join(text.split()))


def blockquote(text: str, marker: str, indent: str = "") -> str:
    """A quote as a Markdown blockquote that ends with its marker."""
    lines = [escaped(line.strip()) for line in text.strip().splitlines()]
    lines[-1] = f"{lines[-1]} {marker}"
    return "\n".join(f"{indent}> {line}".rstrip() for line in lines)
