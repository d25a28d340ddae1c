"""Text from outside may have any character: no function that reads text raises for one."""

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import pytest

from activities.assessment.source_assessment import content_quality, declared_quality
from activities.reporting.claims import claim_key, find_claims
from activities.reporting.drafts import describe_draft, parse_draft
from activities.reporting.inputs import is_verbatim, without_layout
from activities.reporting.references import KnownAddresses, find_addresses, with_escaped_markers, without_markers
from activities.reporting.tree import clean_characters, escape, write
from activities.roles.grounding import find_quote
from activities.roles.prompt_files import cut_line, guard_lines
from activities.roles.untrusted import guard, guard_line, wrap
from activities.verifying.corrections import to_plain_draft
from client.exchange.bibliography import to_bibtex, to_csl
from client.exchange.documents import to_docx, to_pdf
from client.view.words import pasteable, printable
from contracts.addresses import canonical_url, find_doi, normalized_text, source_id, sub_query_id, url_host
from contracts.canary import contains_canary, exposes_private_text
from contracts.evidence import DocumentRef, ReportDraft, source_voice
from contracts.exclusions import is_excluded
from contracts.lenient import to_line
from contracts.report import Report, read_report
from contracts.texts import as_markdown, from_markdown, shorten, visible, visible_json
from providers.errors import SourceUnreadable
from providers.extractive.blocks import candidates_of
from providers.models.answers import without_thoughts
from providers.models.fitting import estimated_tokens
from providers.reading.canonical_text import canonical_text, clean, iso_date
from providers.reading.documents import web_addresses
from providers.reading.egress.address_rules import check_url
from providers.reading.html_page import is_name, language_code, read_html
from providers.reading.robots import parse
from providers.search.corpus.folders import refuse_key_name
from providers.search.corpus.query import searched_keys
from providers.search.hits import plain, shorten_query, usable_url
from providers.text import detect_language, question_stems, sentence_spans, word_keys, words
from providers.tokens.sections import sections_of
from providers.tokens.surroundings import surroundings, text_around
from providers.verification.quantities import find_quantities
from providers.verification.rules import check
from tests.unit.client.exchange.hostile_report import report_of
from workflows.rules.sub_queries import normalized_query
from workflows.run.calls import show_summary
from workflows.strategies.orchestrator.agent_tasks import task_problem

LANGUAGES: Final = ("en", "de")
SAMPLE: Final = 2
"""Characters of each category."""
EMPTY: Final = ReportDraft(document=DocumentRef(hash="sha256:" + "0" * 64))


def _categories() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    # Every category has characters in the first blocks, or thousands of them beyond.
    for code in (*range(0x3000), *range(0x3000, sys.maxunicode, 97)):
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


def _by_reports(text: str) -> None:
    blocks = parse_draft(text)
    write(blocks)
    describe_draft(EMPTY, blocks)
    find_claims(blocks, "en")
    without_layout(text)
    registry = KnownAddresses.of(find_addresses(text), text, [text])
    is_verbatim(text, [text], registry, in_part=True)
    text_around(text, 0, 1)
    surroundings(text, len(text) // 2, len(text))
    claim_key(text, [])
    for read in (escape, without_markers, with_escaped_markers, clean_characters, to_plain_draft):
        read(text)  # type: ignore[operator]


def _by_models(text: str) -> None:
    """As it goes into prompts and comes back."""
    for read in (guard, guard_lines, without_thoughts, estimated_tokens):
        read(text)  # type: ignore[operator]
    for shorten_line in (guard_line, cut_line):
        shorten_line(text, 5)
    wrap("page", [text])
    sections_of(text)
    find_quote(text, text[1:])
    contains_canary(text, "canary")
    exposes_private_text(text, "canary", [text], [text])
    is_excluded(text, text, [text, "word"])


def _by_the_web(text: str) -> None:
    """Addresses and rules of sites may be refused."""
    for address in (text, f"https://a.test/{text}", f"https://{text}.test"):
        for check_address in (check_url, parse, refuse_key_name):
            try:
                check_address(address)
            except SourceUnreadable:
                continue
        declared_quality(address, {})
        source_voice(address, text)
        source_id(address)
    searched_keys(text, question_stems(text), "en")
    for read in (is_name, language_code):
        read(text)  # type: ignore[operator]


READERS: Final[tuple[Callable[[str], Any], ...]] = (
    *(_by_rules, _by_reports, _by_models, _by_the_web, clean, read_html, iso_date, usable_url),
    *(canonical_url, find_doi, url_host, normalized_text, visible, from_markdown, detect_language, sentence_spans),
    *(content_quality, normalized_query, sub_query_id, task_problem, show_summary),
    *(printable, pasteable, visible_json, lambda text: to_line(text, 5)),
    lambda text: canonical_text(text, "text/markdown", escaped=True),
    lambda text: web_addresses([text, f"//{text}/", f"http://{text}"], "https://site.test/"),
    lambda text: [word_keys(word, "en") for word in words(text)],
    lambda text: list(candidates_of(text, range(len(text)))),
    lambda text: (shorten(text, 5), plain(text, 5), shorten_query(text, 5, 2), as_markdown(text, 20, 40)),
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("category", CATEGORIES)
def test_no_character_is_too_much(category: str) -> None:
    """Digits that are no decimals, lone surrogates, private and unassigned characters are text like any other."""
    for sign in CATEGORIES[category]:
        for text in _texts(sign):
            for read in READERS:
                read(text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_character_can_be_exported(category: str) -> None:
    """In question, title, address, author and text; a lone surrogate is in no JSON document."""
    written = "\n\n".join(text for sign in CATEGORIES[category] for text in _texts(sign))
    if category == "Cs":
        assert read_report(b'{"research_id": "\\ud800", "report": {"markdown": ""}}') != []
        return
    report = report_of(query=written, language=written[:9], report={"markdown": f"# {written[:50]}\n\n{written}"})
    source = {"id": "src-1", "url": written, "title": written, "authors": [written], "published_at": written}
    report = Report.model_validate(
        report.model_dump() | {"sources": [source], "citations": [{"number": 1, "source_id": "src-1"}]}
    )
    for export in (to_pdf, to_docx, to_bibtex, to_csl):
        assert export(report)


def test_words_of_a_plain_text_are_those_of_any_other() -> None:
    """A text of ASCII alone has a pattern of its own, which finds the same words as beside other letters."""
    plain = "".join(map(chr, range(128)))
    text = f"{plain} {plain[::-1]} freeze_max_age it's e.g. 3.5-4 _x_ a--b.c 'tis x.y_z' " + " ".join(
        f"a{one}b{two}c" for one in plain for two in "._-' "
    )
    assert words(text) == words(f"{text} é")[:-1]
    assert "freeze_max_age" in words(text)
