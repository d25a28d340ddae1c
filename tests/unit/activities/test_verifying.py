"""Fingerprints, routing and corrections of claims, as pure functions."""

from dataclasses import replace

import pytest

from activities.reporting.inputs import claim_key
from activities.reporting.tree import write
from activities.verifying.verification import (
    Material,
    apply,
    choose_corrections,
    conclude,
    correct,
    extract_claims,
    select_open,
    to_plain_draft,
    try_proposals,
)
from benchmarks.truth.__main__ import Pair, read_pairs
from contracts.addresses import digest
from contracts.checking import (
    CheckedSource,
    ClaimAnswer,
    ClaimsEntry,
    CorrectedEntry,
    CorrectionAction,
    ExtractedClaim,
    Proposal,
)
from contracts.evidence import CheckMethod, ClaimVerdict, DocumentRef, Evidence, Verdict

TEXT = (
    "Preface. The store keeps 128 MB of pages in memory by default. Valkey was chosen over Redis by the operators. "
    "Whether it suffices depends on the load."
)
REFERENCE = DocumentRef(hash=digest(TEXT))
QUOTE = "The store keeps 128 MB of pages in memory by default."
OTHER = "Valkey was chosen over Redis by the operators."


def passage(identity: str, quote: str) -> Evidence:
    start = TEXT.index(quote)
    return Evidence(id=identity, source_id="src-1", start=start, end=start + len(quote), quote_hash=digest(quote))


MATERIAL = Material(
    ClaimsEntry(
        draft=REFERENCE,
        evidence=[passage("ev-1", QUOTE), passage("ev-2", OTHER)],
        sources=[CheckedSource(id="src-1", url="https://manual.test/", title="Manual", text=REFERENCE)],
    ),
    {REFERENCE.hash: TEXT},
    by_model=True,
)
DRAFT = f"""# Stores

## Summary

{QUOTE} [ev-1] The store keeps 512 MB of pages in memory by default. [ev-1]

## Details

The operators settled on Valkey in preference to its ancestor. [ev-2] Everyone agrees that this was a mistake.
"""


def test_a_key_keeps_the_order_of_words() -> None:
    """`A beats B` is another claim than `B beats A`; other passages make another one, their order does not."""
    assert claim_key("A beats B", ["ev-1"]) != claim_key("B beats A", ["ev-1"])
    assert claim_key("A  beats B", ["ev-2", "ev-1"]) == claim_key("A beats B", ["ev-1", "ev-2"])


def test_only_what_rules_leave_open_is_asked() -> None:
    """Word for word, contradicted and uncited claims need no call; a free paraphrase does, where there is a model."""
    claims = extract_claims(DRAFT, MATERIAL)
    same, changed, paraphrase, uncited = claims
    assert same.decided.method is CheckMethod.VERBATIM
    assert changed.decided.verdict is Verdict.CONTRADICTED
    assert uncited.decided.verdict is Verdict.UNVERIFIED
    assert paraphrase.decided is None
    (asked,) = select_open(claims, MATERIAL, set())
    assert asked.fingerprint == paraphrase.fingerprint
    assert "by default. " in asked.passages[0].before
    assert asked.passages[0].after.startswith(" Whether it suffices")
    assert select_open(claims, MATERIAL, {paraphrase.fingerprint}) == []
    without_model = extract_claims(DRAFT, Material(MATERIAL.entry, MATERIAL.texts, by_model=False))
    assert all(each.decided is not None for each in without_model)


def test_a_corrected_draft_has_the_form_in_which_its_claims_are_found() -> None:
    """Two lists become one where the paragraph between them is removed: places are those of the stored text."""
    wrong = "The store keeps 512 MB of pages in memory by default. [ev-1]"
    draft = to_plain_draft(f"- {QUOTE} [ev-1]\n\n{wrong}\n\n- {OTHER} [ev-2]\n- {QUOTE} [ev-1]\n")
    claims = extract_claims(draft, MATERIAL)
    material = replace(MATERIAL, entry=MATERIAL.entry.model_copy(update={"claims": claims}))
    (removed,), corrected, _, text = correct(draft, material, CorrectedEntry(before=""), {})
    assert (removed.action, text) == (CorrectionAction.REMOVE, to_plain_draft(text))
    found = [text[each.start : each.end] for each in corrected.entry.claims]
    assert found == [f"{QUOTE} [ev-1]", f"{OTHER} [ev-2]", f"{QUOTE} [ev-1]"]


def test_the_action_of_a_proposal_decides() -> None:
    """A removal has no sentence to be tried, whatever text comes with it."""
    removal = Proposal(number=1, action=CorrectionAction.REMOVE, text=OTHER, evidence_ids=["ev-2"])
    assert try_proposals([removal], MATERIAL) == []
    text = write(apply(DRAFT, extract_claims(DRAFT, MATERIAL), [removal], MATERIAL.registry)).text
    assert "512 MB" not in text
    assert OTHER not in text


# --- over the labelled pairs of the benchmark ------------------------------------------------------------------------
WRONG = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)


def material_of(pair: Pair, *, by_model: bool = True) -> Material:
    """A run that read the passage of one pair."""
    reference = DocumentRef(hash=digest(pair.passage))
    entry = ClaimsEntry(
        draft=reference,
        language=pair.language,
        evidence=[Evidence(id="ev-1", source_id="src-1", start=0, end=len(pair.passage))],
        sources=[CheckedSource(id="src-1", title=pair.title, text=reference)],
    )
    return Material(entry, {reference.hash: pair.passage}, by_model=by_model)


def perfect_answers(claims: list[ExtractedClaim], pair: Pair) -> dict[str, ClaimAnswer]:
    """What a checker that is never wrong says of the statement of a pair."""
    answers = (ClaimAnswer(fingerprint=each.fingerprint, verdict=Verdict(pair.label)) for each in claims)
    return {answer.fingerprint: answer for answer in answers}


def test_with_a_silent_corrector_and_a_perfect_checker_what_is_false_goes() -> None:
    """At least 95 % of the false statements are flagged or gone, and 96 % of the true ones stay (X-8)."""
    gone: dict[bool, list[bool]] = {True: [], False: []}
    for pair in read_pairs():
        claims = extract_claims(f"{pair.claim} [ev-1]\n", material_of(pair))
        answers = perfect_answers(claims, pair)
        accepted, _ = choose_corrections(claims, conclude(claims, answers), [], answers)
        if pair.label != Verdict.PARTIAL:
            gone[pair.label in WRONG].append(bool(accepted))
    assert sum(gone[True]) >= 0.95 * len(gone[True])
    assert sum(gone[False]) <= 0.04 * len(gone[False])


@pytest.mark.parametrize("by_model", [True, False])
def test_a_correction_passes_the_judge_of_drafts(by_model: bool) -> None:
    """A proposal is taken exactly if its sentence would be supported in a draft, by rules or by the checker (X-8)."""
    before = [ClaimVerdict(claim_id="", verdict=Verdict.UNSUPPORTED, method=CheckMethod.RULES)]
    for pair in read_pairs()[::5]:
        material = material_of(pair, by_model=by_model)
        claims = extract_claims("Whales sing in 1877. [ev-1]\n", material)
        proposal = Proposal(number=0, action=CorrectionAction.REWRITE, text=pair.claim, evidence_ids=["ev-1"])
        drafted = extract_claims(f"{pair.claim} [ev-1]\n", material)
        answers = perfect_answers(drafted, pair) if by_model else {}
        (accepted,), _ = choose_corrections(claims, before, try_proposals([proposal], material), answers)
        passes = all(each.verdict is Verdict.SUPPORTED for each in conclude(drafted, answers))
        assert (accepted.action is CorrectionAction.REWRITE) is passes, pair.claim
