"""The claims of a draft: which sentences, under which ids, in which parts, and where they stand in the report."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.citations import number_citations
from activities.reporting.claim_finder import claims_of_draft, find_claims
from activities.reporting.judged_claims import judge_claims
from activities.reporting.links import Registry
from contracts.evidence import CheckMethod, Claim, ClaimKind, ClaimVerdict, Evidence, Verdict

A, B, C = "ev-aa", "ev-bb", "ev-cc"
EVIDENCE = {
    identity: Evidence(id=identity, source_id=source, start=0, end=5)
    for identity, source in ((A, "src-1"), (B, "src-2"), (C, "src-1"))
}
NOWHERE = Registry({})

DRAFT = f"""# Storage engines

## Summary

This report compares three engines. LSM trees write sequentially [{A}]. They were described in 1996 by four authors.
Which one is faster?

The main differences are:

- Reads cost more [{B}]
- Compaction runs in the background
- Bloom filters

> Every write goes to the log first. [{A}][{B}]

| engine | since |
|---|---|
| RocksDB | 2012 [{C}] |
| LevelDB by two engineers | 2011 |

## Gaps and limitations

The sources that were read do not say how memory use changes. Long-term data is missing.
"""


def found(draft: str) -> list[Claim]:
    """The claims, each at its place."""
    claims = claims_of_draft(draft, EVIDENCE)
    assert all(draft[claim.start : claim.end].strip() for claim in claims)
    return claims


def test_assertions_of_a_draft_are_claims_cited_or_not() -> None:
    """What asserts something is a claim; headings, questions, lead-ins, labels and words about the report are none."""
    assert [(claim.text, claim.evidence_ids) for claim in found(DRAFT)] == [
        ("LSM trees write sequentially .", [A]),
        ("They were described in 1996 by four authors.", []),
        ("Reads cost more", [B]),
        ("Compaction runs in the background", []),
        ("Every write goes to the log first.", [A, B]),
        ("RocksDB , 2012", [C]),
        ("LevelDB by two engineers , 2011", []),
    ]


def test_claim_has_its_kind_and_its_section() -> None:
    """A number makes a claim numeric, quotation marks make it a quote; the nearest heading is its section."""
    kinds = [claim.kind for claim in found(DRAFT)]
    general, numeric, quote = ClaimKind.GENERAL, ClaimKind.NUMERIC, ClaimKind.QUOTE
    assert kinds == [general, numeric, general, general, quote, numeric, numeric]
    assert {claim.section for claim in found(DRAFT)} == {"Summary"}
    (inline,) = found(f'He wrote: "All writes go to the log before they are answered" [{A}].')
    assert (inline.kind, inline.section) == (quote, "")


@pytest.mark.parametrize(
    "sentence",
    [
        "PostgreSQL was released in 1996.",
        "This report shows that sales fell by 5 %.",
        "This section explains the design, and sales fell by 5 %.",
        "The available evidence shows that the drug is safe.",
        "No evidence of life on Mars was found by the probe.",
        "See also that costs rose by 12 percent in 2020.",
        "In summary, the method works better than the old one.",
        "Note that the cache is never flushed.",
        "The report by the ministry covers all rivers.",
        "The evidence does not show that the method works.",
        "The sources of the river do not freeze.",
    ],
)
def test_assertion_without_a_citation_is_a_claim(sentence: str) -> None:
    """Nothing that says how the world is passes for a word about the report."""
    (claim,) = found(sentence)
    assert not claim.cited


@pytest.mark.parametrize(
    "sentence",
    [
        "Is PostgreSQL older than MySQL?",
        "This report compares the two systems on three questions.",
        "This section describes how the data was gathered.",
        "Dieser Bericht beschreibt die Lage der Flüsse.",
        "Let us now turn to the costs.",
        "See also the next section.",
        "The sources that were read do not name a date.",
        "No source of this run gives a figure for it.",
        "None of the consulted sources mention the price.",
        "The findings do not say when it began.",
        "In this section, we compare three prices.",
        "Les sources ne disent rien du prix.",
        "Die Quellen nennen kein Datum.",
        "I could not find a figure for 2020.",
        "Further details:",
        "Short label",
    ],
)
def test_words_about_the_report_are_no_claims(sentence: str) -> None:
    """Questions, transitions, and what a report says of itself and of its limits assert nothing of the world."""
    assert found(sentence) == []


def test_open_points_are_no_claims_where_limits_are_set_out() -> None:
    """Under a heading of limits what is missing is no claim; a figure there is one, and elsewhere the same words are."""
    words = "Long-term data on the method is missing."
    assert found(f"## Limitations\n\n{words}\n") == []
    assert len(found(f"## Results\n\n{words}\n")) == 1
    assert len(found("## Limitations\n\nLong-term data is missing for 40 % of the users.\n")) == 1


def test_extractive_text_has_cited_claims_alone() -> None:
    """What the extractive engine writes besides its quotations is no claim."""
    claims = claims_of_draft(DRAFT, EVIDENCE, uncited=False)
    assert len(claims) == 4
    assert all(claim.cited for claim in claims)


def test_id_is_that_of_words_and_evidence() -> None:
    """Neither place nor markup nor the order of markers changes an id; words, evidence and repetition do."""
    one = found(f"Reads cost more [{A}][{B}].")[0].id
    assert found(f"Before this.\n\n**Reads** cost\nmore [{B}] [{A}].")[-1].id == one
    others = [
        f"Reads cost less [{A}][{B}].",
        f"Reads cost more [{A}].",
        "Reads cost more.",
        f"Cost more reads [{A}][{B}].",
    ]
    assert one not in {found(other)[0].id for other in others}
    twice = [claim.id for claim in found(f"Reads cost more [{A}][{B}].\n\nReads cost more [{A}][{B}].")]
    assert twice[0] == one != twice[1]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            f"PostgreSQL was released in 1996 and MySQL was released in 1995 [{A}].",
            ["PostgreSQL was released in 1996", "MySQL was released in 1995 ."],
        ),
        (
            f"The company grew by 5 %, while the market shrank by 3 % [{A}]; the bank kept its rate.",
            ["The company grew by 5 %", "the market shrank by 3 %", "the bank kept its rate."],
        ),
        (
            "Der Damm wurde 1962 gebaut und die Straße wurde 1970 gebaut.",
            ["Der Damm wurde 1962 gebaut", "die Straße wurde 1970 gebaut."],
        ),
        ("Revenue was 5 million in 2019 and 10 million in 2020.", []),
        ("The tool reads and writes files of every size.", []),
        ("If the cache is full and the disk is slow, the server was built to wait.", []),
        ("The minister said that the dam is safe and the river is clean.", []),
        ("The engine was built in 1990 and it was sold in 1995.", []),
        ('The label reads "The door is open and the light is on" in red.', []),
        ("Both the first plan was dropped and the second plan was dropped.", []),
    ],
)
def test_sentence_is_split_where_each_part_stands_for_itself(sentence: str, parts: list[str]) -> None:
    """A part has its own subject and verb; what depends, belongs together or points back stays whole."""
    (claim,) = found(sentence)
    assert [part.text for part in claim.parts] == parts
    for part in claim.parts:
        assert claim.start <= part.start < part.end <= claim.end
        assert part.text.split()[0] in sentence[part.start : part.end]


def test_verdicts_of_the_draft_are_placed_on_the_report() -> None:
    """Numbers, a title and repaired links move every claim; the verdict stands at the words it was given for."""
    said = {
        claim.id: ClaimVerdict(claim_id=claim.id, verdict=Verdict.PARTIAL, method=CheckMethod.MODEL, reason=claim.text)
        for claim in found(DRAFT)
    }
    numbered = number_citations(f"{DRAFT}", EVIDENCE, [], NOWHERE)
    placed = judge_claims(numbered.text, numbered.marks, {}, NOWHERE, given=said)
    assert [claim.reason for claim in placed] == [claim.text for claim in found(DRAFT)]
    for claim in placed:
        assert numbered.text[claim.start : claim.end] == claim.text
        assert (claim.verdict, claim.method) == ("partial", "model")
    assert placed[4].text == "Every write goes to the log first. [1][2]"
    assert placed[5].citation_numbers == [1]


PIECES = st.sampled_from(
    ["\n\n", "\n", "> ", "- ", "| a | b |\n|---|---|\n| ", "# ", "**", "`x` ", "The dam is safe. ", "Rain fell in 1990 ",
     "and the river rose. ", "e.g. ", "🐘 ", "é", "? ", "(", f"[{A}]", f"[{B}], [{C}] "]
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_every_claim_of_a_draft_is_found_in_its_report(draft: str) -> None:
    """Rendering changes no id: the claims of the draft are those of the report, in the same order."""
    numbered = number_citations(draft, EVIDENCE, [], NOWHERE)
    rendered = [item.claim for item in find_claims(numbered.text, numbered.marks)]
    assert [claim.id for claim in claims_of_draft(draft, EVIDENCE)] == [claim.id for claim in rendered]
    for claim in rendered:
        assert all(claim.start <= part.start < part.end <= claim.end for part in claim.parts)
