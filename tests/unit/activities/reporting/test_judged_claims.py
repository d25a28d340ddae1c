"""Claims of a finished report."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.citations import number_citations
from activities.reporting.judged_claims import CitedWords, PlacedClaim, judge_claims
from activities.reporting.links import Registry
from activities.reporting.quoted_passages import QuotedPassage, cut_passage
from tests.unit.activities.reporting.sample import VACUUM, Sample, make_evidence, make_source

SAMPLE = Sample()
WEB = make_source("https://good.test/page", "A page", "")
AWKWARD = "It is *not* so [7], see https://elsewhere.test/x_y, <stdin>.\n\nA 2nd\u200b paragraph | with 50 % & more."
QUOTED = make_evidence(WEB, AWKWARD, AWKWARD)
EVIDENCE = SAMPLE.evidence | {QUOTED.id: QUOTED}
PASSAGES: dict[str, QuotedPassage] = {one: cut_passage(item, VACUUM) for one, item in SAMPLE.evidence.items()
                                if item.source_id == SAMPLE.rule.source_id}  # fmt: skip
PASSAGES[QUOTED.id] = cut_passage(QUOTED, AWKWARD)
CITED = {one: CitedWords(item.quote, item.evidence.heading, "A page") for one, item in PASSAGES.items()}
REGISTRY = Registry.of([WEB.url])
RULE = SAMPLE.quote(SAMPLE.rule)
A, B, C = SAMPLE.rule.id, SAMPLE.problem.id, QUOTED.id


def claims_of(draft: str) -> list[PlacedClaim]:
    """The claims of a draft."""
    numbered = number_citations(draft, EVIDENCE, [], REGISTRY)
    claims = judge_claims(numbered.text, numbered.marks, CITED, REGISTRY)
    assert all(numbered.text[claim.start : claim.end] == claim.text for claim in claims)
    return claims


@pytest.mark.parametrize(
    ("draft", "texts"),
    [
        (f"First. Second [{A}]. Third.", ["Second [1]."]),
        (f"First. Second. [{A}] Third.", ["Second. [1]"]),
        (f"First. Second.[{A}] Third [{C}].", ["Second.[1]", "Third [2]."]),
        (f"Version 9.5, i.e. the old one, works [{A}]. Next.", ["Version 9.5, i.e. the old one, works [1]."]),
        (f"1. Item one [{A}].\n2. Item two [{C}]\n", ["Item one [1].", "Item two [2]"]),
        (f"## Heading [{A}]\n\nText.", ["Heading [1]"]),
        (f"[{A}] says so. Next.", ["[1] says so."]),
        (f"Wrapped\nline [{A}]\nhere. Next.", ["Wrapped\nline [1]\nhere."]),
        (f"| a | b |\n|---|---|\n| x | [{A}] |\n| y | z |\n", ["| x | [1] |"]),
        (f"> One. Two. [{A}]\n>\n> Three. [{C}]\n", ["One. Two. [1]", "Three. [2]"]),
        (f"Both [{A}][{C}]. Next.", ["Both [1][2]."]),
        ("`[ev-x]` alone.", []),
    ],
)
def test_claims_are_the_sentences_that_carry_citations(draft: str, texts: list[str]) -> None:
    """A claim is the sentence, the row or the quoted passage to which a number belongs, at its exact place."""
    assert [claim.text for claim in claims_of(draft)] == texts


def test_claim_names_its_numbers_and_passages() -> None:
    """Every Claim resolves to numbers and passages (invariant 3)."""
    (claim,) = claims_of(f"Both [{A}, {B}] and [{C}].")
    assert (claim.citation_numbers, claim.evidence_ids) == ([1, 2], [A, B, C])
    assert (claim.verdict, claim.method) == ("not_enough_information", "rules")


@pytest.mark.parametrize(
    "draft",
    [
        f"> {RULE} [{A}]",
        f"> “{RULE}” [{A}]",
        f"> {RULE.replace(' every ', chr(10) + '> every ')} [{A}]",
        f"   1. It is so:\n\n      > {RULE} [{A}]\n",
        f"> {RULE} [{A}][{C}]",
        f"{RULE} [{A}]",
    ],
)
def test_passage_that_is_the_quote_is_supported(draft: str) -> None:
    """A passage word for word as quoted is supported, by comparison, whatever the line breaks are."""
    (claim,) = claims_of(draft)
    assert (claim.verdict, claim.method) == ("supported", "verbatim")


@pytest.mark.parametrize(
    "words",
    [
        RULE.replace("must", "need").replace("two", "three"),
        RULE + " And more.",
        RULE[:-20],
        f"Not: {RULE}",
        RULE.replace("every table in every database", "every database in every table"),
    ],
)
def test_passage_with_other_words_is_not_supported(words: str) -> None:
    """A passage that is not word for word the quote is unverified, also if only the order differs (invariant 15)."""
    (claim,) = claims_of(f"> {words} [{A}]")
    assert (claim.verdict, claim.method) == ("unverified", "none")


def test_quote_of_another_passage_is_not_supported() -> None:
    """The words must be those of the passage that is cited, not of some other one."""
    (claim,) = claims_of(f"> {RULE} [{B}]")
    assert claim.verdict == "unverified"


def test_markdown_signs_in_a_quote_do_not_hide_that_it_is_one() -> None:
    """A quote with signs of Markdown, a number in brackets and a foreign address is still found to be the quote."""
    escaped = AWKWARD.replace("*", "\\*").replace("[7]", "\\[7\\]").replace("<", "\\<").replace("|", "\\|")
    lines = "\n".join(f"> {line}".rstrip() for line in escaped.split("\n"))
    (claim,) = claims_of(f"{lines} [{C}]")
    assert (claim.verdict, claim.method) == ("supported", "verbatim")
    assert "elsewhere" not in claim.text
    assert "\\[7\\]" in claim.text


SIGNS = ["\n\n", "\n", "> ", "- ", "1. ", "`x` ", "**", "| a |\n|---|\n| ", "```\n", "# ", "    ", "(", ")", "\\"]
WORDS = ["Word. ", "word ", "e.g. ", "🐘 ", "é", "? ", f"[{A}]", f"[{B}] ", f"[{C}]"]
PIECES = st.sampled_from(SIGNS + WORDS)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_every_number_is_in_exactly_one_claim(draft: str) -> None:
    """Offsets are exact, claims do not overlap, and together they hold every number, for every draft."""
    numbered = number_citations(draft, EVIDENCE, [], REGISTRY)
    claims = judge_claims(numbered.text, numbered.marks, CITED, REGISTRY)
    for claim in claims:
        assert numbered.text[claim.start : claim.end] == claim.text
    for mark in numbered.marks:
        holding = [claim for claim in claims if claim.start <= mark.start and mark.end <= claim.end]
        assert len(holding) == 1
        assert mark.number in holding[0].citation_numbers
        assert set(mark.evidence_ids) <= set(holding[0].evidence_ids)
    assert all(one.end <= other.start for one, other in itertools.pairwise(claims))
