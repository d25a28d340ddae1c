"""The cited sources as BibTeX and CSL-JSON. Titles and names are data: none of their characters can end a field."""

import json
import re
from typing import Any, Final
from urllib.parse import quote

from activities.reporting.tree import one_line
from contracts.report import Report, ReportSource

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
"""Braces by name: BibTeX counts every brace, even after a backslash."""
KEY: Final = re.compile(r"[^A-Za-z0-9_.-]")
DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
COMPANY_FORMS: Final = frozenset("inc ltd llc gmbh ag corp co sa srl bv plc".split())
MAX_NAME_WORDS: Final = 5
URL_CHARACTERS: Final = "/?#[]@!$&'()*+,;=:%-._~"

BIBTEX_KINDS: Final = {"academic": "article"}
CSL_KINDS: Final = {"academic": "article-journal", "news": "article-newspaper", "web": "webpage"}

ABSTRACT_ONLY: Final = "abstract only"
"""Remark on a source of which only the abstract was read."""


def to_bibtex(report: Report) -> bytes:
    """Make one entry per cited source; its key is the source id."""
    return "\n".join(_bibtex_entry(number, source) for number, source in report.cited_sources()).encode()


def to_csl(report: Report) -> bytes:
    """Make one CSL-JSON item per cited source."""
    items = [_csl_item(number, source) for number, source in report.cited_sources()]
    return (json.dumps(items, ensure_ascii=False, indent=2) + "\n").encode()


def _bibtex_entry(number: int, source: ReportSource) -> str:
    kind = "misc"
    if source.venue:
        kind = BIBTEX_KINDS.get(source.source_type, "misc")
    year, month, _ = _date(source.published_at)
    fields = {
        "title": _bibtex_title(_title(source)),
        "author": " and ".join(_bibtex_name(_line(name), source) for name in source.authors if _line(name)),
        "journal" if kind == "article" else "howpublished": _latex(source.venue),
        "publisher": _latex(_publisher(source)),
        "year": year,
        "month": month,
        "doi": _latex(source.doi),
        "url": _address(source.shown_url),
        "urldate": "-".join(filter(None, _date(source.retrieved_at))),
        "note": f"[{number}]" + (f" {ABSTRACT_ONLY}" if source.abstract_only else ""),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{KEY.sub('-', source.id) or f'source-{number}'},", *lines, "}", ""])


def _csl_item(number: int, source: ReportSource) -> dict[str, Any]:
    item = {
        "id": source.id,
        "type": CSL_KINDS.get(source.source_type, "document"),
        "citation-number": number,
        "title": _title(source),
        "author": [_csl_name(_line(name), source) for name in source.authors if _line(name)],
        "container-title": _line(source.venue),
        "publisher": _line(_publisher(source)),
        "issued": _csl_date(source.published_at),
        "accessed": _csl_date(source.retrieved_at),
        "DOI": _line(source.doi),
        "URL": _address(source.shown_url),
        "note": ABSTRACT_ONLY if source.abstract_only else "",
    }
    return {key: value for key, value in item.items() if value}


def _publisher(source: ReportSource) -> str:
    """Return the publisher; that of an abstract is its journal, which has a field of its own."""
    return "" if source.publisher == source.venue else source.publisher or ""


def _line(text: str | None) -> str:
    return one_line(text or "")


def _title(source: ReportSource) -> str:
    return _line(source.title) or "Untitled"


def _latex(text: str | None) -> str:
    return _line(text).translate(LATEX)


def _bibtex_title(title: str) -> str:
    """Write a title whose capitalized words are protected: BibTeX styles lower-case all others."""
    return " ".join(f"{{{_latex(word)}}}" if word != word.lower() else _latex(word) for word in title.split())


def _split_name(name: str, source: ReportSource) -> tuple[str, str] | None:
    """Return family and given name if they are known: by a comma, or by the name order of academic indexes."""
    family, comma, given = name.partition(", ")
    if comma:
        is_person = "," not in given and given.rstrip(".").casefold() not in COMPANY_FORMS
        return (family, given) if is_person else None
    words = name.split()
    if source.source_type != "academic" or not 2 <= len(words) <= MAX_NAME_WORDS:
        return None
    # A lower-case particle belongs to the family name.
    start = next((index for index, word in enumerate(words) if index and word[0].islower()), len(words) - 1)
    return " ".join(words[start:]), " ".join(words[:start])


def _bibtex_name(name: str, source: ReportSource) -> str:
    """Write a name so that BibTeX splits it only into its known parts; a bare ` and ` would make two names."""
    split = _split_name(name, source)
    parts = split if split and not re.search(r"\band\b", name, re.IGNORECASE) else (name,)
    return ", ".join(f"{{{_latex(part)}}}" for part in parts)


def _csl_name(name: str, source: ReportSource) -> dict[str, str]:
    split = _split_name(name, source)
    if split:
        return {"family": split[0], "given": split[1]}
    return {"literal": name}


def _date(timestamp: str | None) -> tuple[str, str, str]:
    """Return year, month and day, each empty if unknown."""
    match = DATE.match(timestamp or "")
    year, month, day = match.groups("") if match else ("", "", "")
    return year, month, day


def _csl_date(timestamp: str | None) -> dict[str, Any]:
    parts = [int(part) for part in _date(timestamp) if part]
    return {"date-parts": [parts]} if parts else {}


def _address(url: str) -> str:
    """Return the address with every character percent-encoded that is not allowed in one."""
    return quote(_line(url), safe=URL_CHARACTERS)
