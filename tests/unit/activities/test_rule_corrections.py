"""Corrections without a model: what rules put right, what they take out, and what they leave alone."""

import pytest

from activities.verifying.verifying_activities import Conclusion, apply_plainly, conclude_plainly, weigh_plainly
from contracts.addresses import digest
from contracts.checking import CheckedSource, ClaimsEntry, CorrectedEntry
from contracts.evidence import DocumentRef, Evidence, Verdict

CACHE = "The store keeps 128 MB of pages in memory by default."
LOCKS = "Most writers wait for the lock of the table."
SAFE = "The log must be written before the page is changed."
PORT = "The server of Tolm listens on port 7171."
BACKUP = "A backup of the whole folder takes about 20 minutes."
TEXT = f"# Manual\n\n{CACHE}\n\n{LOCKS}\n\n{SAFE}\n\n{PORT}\n\n{BACKUP}"
REFERENCE = DocumentRef(hash=digest(TEXT))
TEXTS = {REFERENCE.hash: TEXT}


def entry(quotes: dict[str, str]) -> str:
    """The material of a run whose passages these are."""
    evidence = [
        Evidence(
            id=identity,
            source_id="src-1",
            start=TEXT.index(quote),
            end=TEXT.index(quote) + len(quote),
            quote_hash=digest(quote),
        )
        for identity, quote in quotes.items()
    ]
    source = CheckedSource(id="src-1", url="https://manual.test/", title="Manual", text=REFERENCE)
    return ClaimsEntry(draft=REFERENCE, evidence=evidence, sources=[source]).model_dump_json()


PASSAGES = {"ev-1": CACHE, "ev-2": LOCKS, "ev-3": SAFE, "ev-4": PORT}


def correct(body: str) -> Conclusion:
    """What becomes of a draft with this body, and two sound sentences, without any model."""
    draft = f"# Stores\n\n## Summary\n\n{CACHE} [ev-1] {SAFE} [ev-3]\n\n{body}\n"
    packed, asked = weigh_plainly(entry(PASSAGES), draft, TEXTS, [], by_model=False)
    assert '"claims":[' not in asked
    first = Conclusion.model_validate_json(conclude_plainly(packed, draft, TEXTS, [], False, True, "", []))
    if not first.doubtful.claims:
        return first
    corrected, _ = apply_plainly(packed, draft, TEXTS, first.doubtful, [], [], by_model=False)
    tried = CorrectedEntry.model_validate_json(corrected)
    return Conclusion.model_validate_json(
        conclude_plainly(packed, draft, TEXTS, [], False, False, tried.model_dump_json(), first.verdicts)
    )


@pytest.mark.parametrize(
    ("written", "stands", "action"),
    [
        ("The store keeps 512 MB of pages in memory by default. [ev-1]", f"{CACHE} [ev-1]", "rewrite"),
        ("The store keeps 128 GB of pages in memory by default. [ev-1]", f"{CACHE} [ev-1]", "rewrite"),
        ("All writers wait for the lock of the table. [ev-2]", f"{LOCKS} [ev-2]", "soften"),
        ("The log must not be written before the page is changed. [ev-3]", f"{SAFE} [ev-3]", "rewrite"),
        ("The log must be written after the page is changed. [ev-3]", f"{SAFE} [ev-3]", "rewrite"),
        ("The server of Tolm listens on port 7171. [ev-2]", f"{PORT} [ev-4]", "replace"),
        ("A backup of the whole folder takes about 20 minutes. [ev-2]", f"{BACKUP} [ev-", "replace"),
        (
            "| what | how much |\n|---|---|\n| Store | 512 MB of pages in memory [ev-1] |",
            "| Store | 128 MB of pages in memory [ev-1] |",
            "rewrite",
        ),
        ("> The store keeps 512 MB of pages in memory by default. [ev-1]", f"> {CACHE} [ev-1]", "rewrite"),
    ],
)
def test_rules_put_right_what_they_can_prove(written: str, stands: str, action: str) -> None:
    """A number, unit, quantifier, denial, direction or citation, in sentences, rows and quotations."""
    found = correct(written)
    assert stands in found.text
    (correction,) = found.corrections
    assert (correction.action, correction.reverified) == (action, True)
    assert correction.verdict is Verdict.SUPPORTED
    assert {one.verdict for one in found.verdicts} == {Verdict.SUPPORTED}


def test_what_no_text_says_is_taken_out_with_its_reason() -> None:
    """A name that stands nowhere, at a passage about something else: no wording is proved, the sentence goes."""
    found = correct("Zyzzyva Incorporated sells umbrellas to Quellinmar. [ev-4]")
    assert "Zyzzyva" not in found.text
    assert [(one.action, one.before[:7]) for one in found.corrections] == [("remove", "Zyzzyva")]


def test_a_paraphrase_that_rules_cannot_judge_stays_as_it_is() -> None:
    """Not enough information is no error: rules touch no such sentence."""
    found = correct("In memory, unless told otherwise, it holds on to a modest amount of what it has read. [ev-1]")
    assert found.text == ""
    assert [one.action for one in found.corrections] == ["keep"]


def test_a_draft_in_which_nothing_is_doubtful_is_not_touched() -> None:
    """Nothing is proposed, nothing is tried."""
    found = correct("The server of Tolm listens on port 7171. [ev-4]")
    assert (found.text, found.corrections) == ("", [])


def test_the_last_sentence_of_a_section_stays_and_is_marked() -> None:
    """No section is emptied, whatever rules find."""
    found = correct("## Vendors\n\nZyzzyva Incorporated sells umbrellas to Quellinmar. [ev-4]")
    assert found.text == ""
    assert [one.action for one in found.corrections] == ["keep"]
    assert Verdict.UNSUPPORTED in {one.verdict for one in found.verdicts}
