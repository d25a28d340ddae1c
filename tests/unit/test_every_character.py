"""Text from outside may have any character: no function that reads text raises for one."""

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import pytest

from activities.reporting.claims import bare_words, find_claims
from activities.reporting.drafts import describe_draft, parse_draft
from activities.reporting.markdown import write
from contracts.addresses import canonical_url, doi_of, host_of, normalized_text
from contracts.evidence import DocumentRef, ReportDraft
from contracts.texts import as_markdown, from_markdown, shorten, visible
from providers.extractive.blocks import candidates_of
from providers.reading.canonical_text import canonical_text, clean
from providers.reading.html_page import read_html
from providers.reading.page_dates import iso_date
from providers.search.hits import plain, shorten_query, usable_url
from providers.text import detect_language, question_stems, sentence_spans, word_keys, words
from providers.verification.passage_selection import select_passages
from providers.verification.quantities import find_quantities
from providers.verification.rules import check

LANGUAGES: Final = ("en", "de")
SAMPLE: Final = 4
"""Characters of each category."""
EMPTY: Final = ReportDraft(document=DocumentRef(hash="sha256:" + "0" * 64))


def _categories() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for code in range(sys.maxunicode + 1):
        found[unicodedata.category(chr(code))].append(chr(code))
    return {name: signs[:: max(1, len(signs) // SAMPLE)] for name, signs in sorted(found.items())}


CATEGORIES: Final = _categories()


def _texts(sign: str) -> list[str]:
    """The character alone, in words, as a number, at the begin and end of marks, and in markup."""
    return [
        sign,
        f"10{sign} records crashed.{sign} It took {sign}5 days, {sign} % of 2,0{sign}0 and 3.{sign} times",
        f"# {sign} A\n\n{sign}. one\n\n1{sign}. two\n\n| {sign} | b |\n|---|---|\n| {sign}1 | `{sign}` |\n",
        f"A fact [{sign}] [ev-{sign}] “{sign}” [x]({sign}) **{sign}** <{sign}> https://a.test/{sign}?{sign}=1{sign}",
        f"2026-0{sign}-1{sign} · 1{sign} May 20{sign}6 · 10.1000/{sign} · {sign}a@b.test",
    ]


def _by_rules(text: str) -> None:
    for language in LANGUAGES:
        check(text, ["It took 5 days.", text], [text], language)
        find_quantities(text, language)
        question_stems(text, language)
        select_passages([text], [text], language, most=3, most_of_a_text=2)


def _by_reports(text: str) -> None:
    blocks = parse_draft(text)
    write(blocks)
    describe_draft(EMPTY, blocks)
    find_claims(blocks, "en")
    bare_words(text)


READERS: Final[tuple[Callable[[str], Any], ...]] = (
    *(_by_rules, _by_reports, candidates_of, clean, read_html, iso_date, usable_url),
    *(canonical_url, doi_of, host_of, normalized_text, visible, from_markdown, detect_language, sentence_spans),
    lambda text: canonical_text(text, "text/markdown", escaped=True),
    lambda text: [word_keys(word, "en") for word in words(text)],
    lambda text: (shorten(text, 5), plain(text, 5), shorten_query(text, 5, 2), as_markdown(text, 20, 40)),
)


@pytest.mark.parametrize("category", CATEGORIES)
def test_no_character_is_too_much(category: str) -> None:
    """Digits that are no decimals, lone surrogates, private and unassigned characters are text like any other."""
    for sign in CATEGORIES[category]:
        for text in _texts(sign):
            for read in READERS:
                read(text)
