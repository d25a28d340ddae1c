"""The cited sources as BibTeX and CSL-JSON. Titles and names are data: nothing in them ends a field."""

import json
import re
from typing import Any, Final
from urllib.parse import quote

from client.exchange.exported_report import ExportedReport, ExportedSource, safe_line

LATEX: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{sign: "\\" + sign for sign in "&%$#_"},
    }
)
"""Braces by their names: BibTeX counts every brace, also one behind a backslash."""
KEY: Final = re.compile(r"[^A-Za-z0-9_.-]")
DATE: Final = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?")
IN_ADDRESS: Final = "/?#[]@!$&'()*+,;=:%-._~"

BIBTEX_KINDS: Final = {"academic": "article"}
CSL_KINDS: Final = {"academic": "article-journal", "news": "article-newspaper", "web": "webpage"}


def to_bibtex(report: ExportedReport) -> bytes:
    """One entry for each cited source; the key is the id of the source."""
    return "\n".join(_bibtex_entry(number, source) for number, source in report.numbered()).encode()


def to_csl(report: ExportedReport) -> bytes:
    """CSL-JSON: one item for each cited source."""
    items = [_csl_item(number, source) for number, source in report.numbered()]
    return (json.dumps(items, ensure_ascii=False, indent=2) + "\n").encode()


def _bibtex_entry(number: int, source: ExportedSource) -> str:
    kind = BIBTEX_KINDS.get(source.source_type, "misc") if source.venue else "misc"
    published = DATE.match(source.published_at or "")
    fields = {
        "title": _latex(_title(source)),
        "author": " and ".join(_bibtex_name(name) for name in source.authors if safe_line(name)),
        "journal" if kind == "article" else "howpublished": _latex(source.venue),
        "publisher": _latex(source.publisher),
        "year": published[1] if published else "",
        "month": (published[2] or "") if published else "",
        "doi": _latex(source.doi),
        "url": _address(source.url),
        "urldate": _day(source.retrieved_at),
        "note": f"[{number}]",
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{KEY.sub('-', source.id) or f'source-{number}'},", *lines, "}", ""])


def _latex(text: str | None) -> str:
    return safe_line(text).translate(LATEX)


def _bibtex_name(name: str) -> str:
    """A name as BibTeX is not to take apart: ` and ` or a comma in it would make two of it."""
    line = safe_line(name)
    whole = re.search(r"\band\b|,", line, re.IGNORECASE)
    return f"{{{_latex(line)}}}" if whole else _latex(line)


def _csl_item(number: int, source: ExportedSource) -> dict[str, Any]:
    item = {
        "id": source.id,
        "type": CSL_KINDS.get(source.source_type, "document"),
        "citation-number": number,
        "title": _title(source),
        "author": [{"literal": safe_line(name)} for name in source.authors if safe_line(name)],
        "container-title": safe_line(source.venue),
        "publisher": safe_line(source.publisher),
        "issued": _csl_date(source.published_at),
        "accessed": _csl_date(source.retrieved_at),
        "DOI": safe_line(source.doi),
        "URL": _address(source.url),
    }
    return {key: value for key, value in item.items() if value}


def _csl_date(timestamp: str | None) -> dict[str, Any]:
    found = DATE.match(timestamp or "")
    return {"date-parts": [[int(part) for part in found.groups() if part]]} if found else {}


def _title(source: ExportedSource) -> str:
    return safe_line(source.title) or "Untitled"


def _day(timestamp: str | None) -> str:
    found = DATE.match(timestamp or "")
    return found[0] if found else ""


def _address(url: str) -> str:
    """The address with every sign percent-encoded that an address cannot have: blanks, braces, backslashes, quotes."""
    return quote(safe_line(url), safe=IN_ADDRESS)
