"""Corrections over the labelled pairs of the benchmark of verification."""

from dataclasses import replace

import pytest

from activities.verifying.corrections import choose_corrections, try_proposals
from activities.verifying.material import Material, conclude, extract_claims
from benchmarks.truth.__main__ import Pair, read_pairs
from contracts.addresses import digest
from contracts.checking import CheckedSource, ClaimAnswer, ClaimsEntry, CorrectionAction, ExtractedClaim, Proposal
from contracts.evidence import DocumentRef, Evidence, Verdict

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
        chosen = choose_corrections(claims, [], answers, material_of(pair))
        if pair.label != Verdict.PARTIAL:
            gone[pair.label in WRONG].append(bool(chosen.proposals))
    assert sum(gone[True]) >= 0.95 * len(gone[True])
    assert sum(gone[False]) <= 0.04 * len(gone[False])


@pytest.mark.parametrize("by_model", [True, False])
def test_a_correction_passes_the_judge_of_drafts(by_model: bool) -> None:
    """A proposal is taken exactly if its sentence would be supported in a draft, by rules or by the checker (X-8)."""
    for pair in read_pairs()[::20]:
        material = material_of(pair, by_model=by_model)
        draft = "Whales sing in 1877. [ev-1]\n"
        claims = extract_claims(draft, material)
        material = replace(material, entry=material.entry.model_copy(update={"claims": claims}))
        proposal = Proposal(number=0, action=CorrectionAction.CORRECT, text=pair.claim, evidence_ids=["ev-1"])
        drafted = extract_claims(f"{pair.claim} [ev-1]\n", material)
        answers = perfect_answers(drafted, pair) if by_model else {}
        chosen = choose_corrections(claims, try_proposals(draft, [proposal], material), answers, material)
        passes = all(each.verdict is Verdict.SUPPORTED for each in conclude(drafted, answers))
        assert (chosen.proposals[0].action is CorrectionAction.CORRECT) is passes, pair.claim
