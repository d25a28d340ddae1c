"""What reads text from outside, and the texts that such code may be slow on."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from activities.assessment.question_fit import coverage
from activities.assessment.source_assessment import content_quality
from activities.reporting.citations import NumberedText, number_citations, without_numbers
from activities.reporting.html_body import render_body
from activities.reporting.judged_claims import CitedWords, judge_claims
from activities.reporting.links import Registry, addresses, strip_addresses
from activities.reporting.markdown_layout import clean_characters, code_span, escape_markdown
from activities.reporting.report_sections import find_losses, join_report
from activities.reporting.report_words import ReportWords
from activities.roles.analyzer import Headings, find_quote
from activities.roles.evidence_markers import Citable, PageWords, unify_markers
from activities.roles.excerpts import excerpt, shown_parts
from activities.roles.report_shape import shape_of
from activities.roles.untrusted import attribute, guard, guard_line
from client.cli.read_search import is_address
from client.cli.report_files import slug
from client.view.rendering import printable
from contracts import canary, identity
from contracts.documents import SectionHint
from contracts.doi import doi_of
from contracts.evidence import Evidence
from contracts.parse_request import InvalidRequest, parse_request
from contracts.roles import ANALYZER, SYNTHESIZER
from contracts.web_addresses import canonical_url, host_of
from providers.errors import ProviderError
from providers.extractive.passages import shorten
from providers.extractive.question import read_question
from providers.extractive.question_terms import key_words, named_terms, text_keys, text_pairs
from providers.extractive.quoted_markdown import escape, quote_lines
from providers.extractive.text_structure import structure_of
from providers.models.chat import ChatReply, TokenCounts
from providers.models.model_errors import error_for_status, shown_name
from providers.models.structured_output import draft_of
from providers.reading import robots
from providers.reading.charsets import declared_encoding, decode_with_warning
from providers.reading.cleaning import clean, escape_markup
from providers.reading.formats.csv_document import extract_csv
from providers.reading.formats.feed_document import extract_feed
from providers.reading.formats.json_document import extract_json
from providers.reading.formats.mail_document import extract_mail
from providers.reading.formats.markdown_document import extract_markdown, front_matter
from providers.reading.formats.notebook_document import extract_notebook
from providers.reading.formats.plain_text import extract_log, extract_plain_text
from providers.reading.html.metadata import language_code
from providers.reading.html.pregate import check_html
from providers.reading.page_dates import date_in_url, iso_date
from providers.reading.page_language import page_language
from providers.reading.sniffing import declared_type, kind_of_body, provisional_kind, sniff
from providers.reading.web_page import extract_web_html
from providers.retry_after import retry_after_seconds
from providers.search import web_hits
from providers.search.corpus.definitions import corpus_name
from providers.search.corpus.indexed_passages import index_text, passages_of, sections_of, snippet_of
from providers.strict_json import JsonError, bracketing, clean_text, parse_json
from providers.text import detect_language, question_stems, words
from providers.verification.passage_selection import select_passages
from providers.verification.rules_checker import check
from tests.architecture.scanning.pumps import Pump
from workflows.rules.duplicates import normalized_title
from workflows.rules.query_matching import fingerprint, normalized_query

REGISTRY = Registry.of(["https://good.test/page", "corpus:manual/a.html"], "How does it work?")
EVIDENCE = {
    "ev-0123456789": Evidence(id="ev-0123456789", source_id="src-a", start=0, end=1, quote_hash=identity.digest("x"))
}
CITED = {"ev-0123456789": CitedWords("x", "", "")}
REFUSALS = (ProviderError, JsonError, InvalidRequest, ValueError)
"""What an entry point may raise about a text that it does not like."""


def _reply(text: str) -> ChatReply:
    return ChatReply(text=text, tool_input=None, stop_reason="end_turn", tokens=TokenCounts(), model="any")


def _numbered(text: str) -> NumberedText:
    return number_citations(text, EVIDENCE, [], REGISTRY)


def _claims(text: str) -> object:
    numbered = _numbered(text)
    return judge_claims(numbered.text, numbered.marks, CITED, REGISTRY)


def _html(text: str) -> object:
    numbered = _numbered(text)
    return render_body(numbered.text, numbered.marks, REGISTRY, ReportWords("en"))


def _corpus(text: str) -> object:
    document = extract_markdown(text)
    return [snippet_of(document.text[one.start : one.end]) for one in passages_of(document, sections_of(document))]


def _hit(text: str) -> object:
    return (
        web_hits.plain(text, len(text)), web_hits.usable_url("https://a.test/" + text), web_hits.usable_doi(text),
        web_hits.shorten_query(text, 400),
    )  # fmt: skip


def _traits(text: str) -> object:
    structure = structure_of.__wrapped__(text, "en")
    return [structure.traits(index) for index in range(len(structure.sentences))]


ENTRY_POINTS: dict[str, Callable[[str], object]] = {
    "sniff": lambda text: sniff(text.encode(), "page"),
    "kind_of_body": lambda text: kind_of_body("text/html", text.encode()),
    "provisional_kind": lambda text: provisional_kind("text/html", text.encode()),
    "declared_type": declared_type,
    "declared_encoding": lambda text: declared_encoding(text.encode()),
    "decoded": lambda text: decode_with_warning(text.encode() + b"\xe9", markup=True),
    "check_html": check_html,
    "extract_web_html": lambda text: extract_web_html(text, "https://a.test/"),
    "extract_web_html in a body": lambda text: extract_web_html(
        f"<html><title>{text}</title><body><p>{text}", "https://a.test/"
    ),
    "front_matter": lambda text: front_matter(f"---\n{text[:8000]}\n---\n"),
    "extract_plain_text": extract_plain_text,
    "extract_log": extract_log,
    "extract_csv": extract_csv,
    "extract_notebook": lambda text: extract_notebook(
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": text}]})
    ),
    "extract_mail": lambda text: extract_mail(f"From: {text[:1000]}\nSubject: {text}\n\n{text}".encode()),
    "extract_feed": lambda text: extract_feed(
        f"<rss><channel><item><title>a</title><description>{text}</description></item></channel></rss>"
    ),
    "extract_json": extract_json,
    "clean": clean,
    "escape_markup": escape_markup,
    "iso_date": iso_date,
    "date_in_url": date_in_url,
    "language_code": language_code,
    "page_language": lambda text: page_language(text, None),
    "robots": lambda text: robots.parse(f"User-agent: *\nDisallow: /{text}").can_fetch("https://a.test/" + text, "any"),
    "retry_after": lambda text: retry_after_seconds([("retry-after", text)]),
    "search hit": _hit,
    "index_text": lambda text: index_text(text, "en"),
    "corpus passages": _corpus,
    "corpus_name": lambda text: corpus_name(Path(text.replace("/", "-"))),
    "words": words,
    "question_stems": question_stems,
    "detect_language": detect_language,
    "parse_json": parse_json,
    "parse_json of a string": lambda text: parse_json(json.dumps(text)),
    "bracketing": lambda text: bracketing("{" + text),
    "clean_text": clean_text,
    "structured answer": lambda text: draft_of(ANALYZER, _reply(text)),
    "structured object": lambda text: draft_of(ANALYZER, _reply('{"findings": [' + text)),
    "plain answer": lambda text: draft_of(SYNTHESIZER, _reply(text)),
    "refusal of a model": lambda text: error_for_status(400, [], text, "any"),
    "shown_name": shown_name,
    "parse_request": parse_request,
    "parse_request of a question": lambda text: parse_request(json.dumps({"query": text[:2000]})),
    "canary": lambda text: canary.repeats(text, "c-0123456789abcdef0123"),
    "private words": lambda text: canary.holds_private(
        "https://a.test/?" + text, "c-0123456789abcdef0123", [text, text[1:]], [text[2:]]
    ),
    "canonical_url": lambda text: canonical_url("https://a.test/" + text),
    "host": lambda text: host_of(f"https://{text}/"),
    "doi": lambda text: (doi_of(text), doi_of(f"https://www.science.org{text[:1900]}")),
    "normalized_text": identity.normalized_text,
    "normalized_query": normalized_query,
    "fingerprint": fingerprint,
    "normalized_title": normalized_title,
    "find_quote": lambda text: find_quote(text + " x" + text, text + "y" + text),
    "find_quote with other blanks": lambda text: find_quote(
        text + " x\u200b" + text, text[: len(text) // 2] + "  \n" + text
    ),
    "headings": Headings,
    "guarded": guard,
    "guarded_line": lambda text: guard_line(text, len(text)),
    "attribute": attribute,
    "coverage": lambda text: coverage("how does " + text[:2000], text, text, text),
    "content_quality": content_quality,
    "excerpt": lambda text: excerpt(text, [SectionHint(start=0, end=len(text), score=1.0)], "how does it work", 4000),
    "shown_parts": shown_parts,
    "unified_markers": lambda text: unify_markers(
        text, Citable({key: key for key in EVIDENCE}), exact=False, pages=PageWords([text])
    ),
    "report shape": shape_of,
    "strip_addresses": lambda text: strip_addresses(text, REGISTRY, []),
    "addresses": addresses,
    "clean_characters": clean_characters,
    "code_span": code_span,
    "escape_markdown": escape_markdown,
    "without_numbers": without_numbers,
    "judge_claims": _claims,
    "check": lambda text: check(text, [text]),
    "select_passages": lambda text: select_passages(["How does it work in 1990?", text[:500]], [text]),
    "report sections": lambda text: (find_losses(text, text), join_report(text, [text], ["a"])),
    "render_body": _html,
    "printable": printable,
    "slug": slug,
    "is_address": is_address,
    "read_question": read_question,
    "key_words": key_words,
    "named_terms": named_terms,
    "text_keys": lambda text: (text_keys(text, "en"), text_pairs(text, "en")),
    "structure": _traits,
    "escape": escape,
    "quote_lines": lambda text: quote_lines(structure_of("a" + text, "en"), 0, len(text) + 1, "[1]"),
    "shorten": lambda text: shorten(text, 400),
}
"""By what it reads."""

ATOMS = (
    "a", "!", "!a", "! ", ".  ", " ", "\n", "\t", "\r\n", "<", ">", "[", "]", "(", ")", "{", "}", '"', "'", "`", "*", "_", "#", "-", "=", "~",
    "|", ".", "\\", "&", "%", "0", "é", "。", "\u200b", "\u0300\u0316", "a ", "a. ", ". ", "a\n", "\n\n", "a\n\n", " \n",
    "# a\n", "## a\n\n", "- a\n", "> ", "> a\n\n", "| a | b |\n", "```\n", "```a\n", "~~~ ", "1. ", "<!---->", "<!--",
    "<a", "<p>", "<p>a", "</p>", "<div>", "<b><i>", '<a href="', "<table><tr><td>", "<ul><li>", "<script>", "<style>a{}",
    '<p class="a">', "<![CDATA[", "<?xml ", "<meta charset=", "&amp;", "&#91;", "[a](", "![", "[a]: b\n", "[[", "[1]",
    "[ev-0123456789]", "[ev-", "(ev-0123456789)", "https://a.test/ ", "http://", "www.a", "corpus:a/", "a@b.", "10.1000/",
    '{"a":', '{"', "[0,", '",', '\\"', "\\u0041", "<think>", "a: b\n", "Disallow: /*a\n", "*a", "a-", "a.b", "it's ",
    "http://a)", "www.a)", "www.[", "http://a'", "www.a.,", "how does a ", "between a and ", "default is ", "A B ", "A.", "a_", "a,b ", "%41", "/../", ";jsessionid=a", "2020-01-01 ",
)  # fmt: skip


OPENINGS = ("# a", "<", "[", "[a]:", "a:", ",", "|")
"""What may be followed by blanks without end."""

SLOW = {
    "report shape": 1, "unified_markers": 1, "corpus passages": 4, "judge_claims": 4, "render_body": 4, "check": 4,
    "select_passages": 4, "report sections": 4,
}  # fmt: skip
"""Entry points behind a parser of Markdown in Python, a tenth of a millisecond a character; and how many times shorter
their texts are, so that the test ends soon."""


def pumps(name: str) -> Iterator[Pump]:
    """Each atom again and again; with letters around it too, so that what it opens is not closed."""
    for opening in OPENINGS:
        yield Pump(opening, " ", "\ue000")
    for atom in ATOMS:
        yield Pump("", atom, "\ue000")
        if name not in SLOW:
            yield Pump("a ", atom, "\ue000")
