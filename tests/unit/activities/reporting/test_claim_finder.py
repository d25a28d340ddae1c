"""The claims of a draft: which sentences, under which ids, in which parts, and where they stand in the report."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.citations import number_citations
from activities.reporting.claim_finder import claims_of_draft, find_claims
from activities.reporting.links import Registry
from contracts.evidence import Claim, Evidence

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


def test_extractive_text_has_cited_claims_alone() -> None:
    """What the extractive engine writes besides its quotations is no claim."""
    claims = claims_of_draft(DRAFT, EVIDENCE, uncited=False)
    assert len(claims) == 4
    assert all(claim.cited for claim in claims)


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
