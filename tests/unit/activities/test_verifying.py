"""Fingerprints, routing and corrections of claims, as pure functions."""

from activities.reporting.addresses import KnownAddresses
from activities.reporting.claims import claim_key
from activities.verifying.claims import Material, ask, extract_claims
from activities.verifying.correction import apply
from activities.verifying.verification import extract
from contracts.addresses import digest
from contracts.checking import CheckedSource, ClaimAnswer, ClaimsEntry, CorrectionAction, Proposal
from contracts.evidence import CheckMethod, DocumentRef, Evidence, Verdict

TEXT = (
    "Preface. The store keeps 128 MB of pages in memory by default. Valkey was chosen over Redis by the operators. "
    "Whether it suffices depends on the load."
)
REFERENCE = DocumentRef(hash=digest(TEXT))
QUOTE = "The store keeps 128 MB of pages in memory by default."
OTHER = "Valkey was chosen over Redis by the operators."


def passage(identity: str, quote: str) -> Evidence:
    """A quote of the text as evidence."""
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
    assert claim_key("A beats B", ["ev-1"]) != claim_key("A beats B", ["ev-2"])
    assert claim_key("A  beats B", ["ev-2", "ev-1"]) == claim_key("A beats B", ["ev-1", "ev-2"])


def test_only_what_rules_leave_open_is_asked() -> None:
    """Word for word, contradicted and uncited claims need no call; a free paraphrase does, with words around it."""
    claims = extract_claims(DRAFT, MATERIAL)
    same, changed, paraphrase, uncited = claims
    assert same.decided.method is CheckMethod.VERBATIM
    assert changed.decided.verdict is Verdict.CONTRADICTED
    assert uncited.decided.verdict is Verdict.UNVERIFIED
    assert paraphrase.decided is None
    (asked,) = ask(claims, MATERIAL, set())
    assert asked.fingerprint == paraphrase.fingerprint
    assert "by default. " in asked.passages[0].before
    assert asked.passages[0].after.startswith(" Whether it suffices")
    assert ask(claims, MATERIAL, {paraphrase.fingerprint}) == []


def test_what_a_checker_could_not_judge_is_asked_again() -> None:
    """An answer of an earlier verification counts only if it says something."""
    paraphrase = extract_claims(DRAFT, MATERIAL)[2].fingerprint
    for verdict, asked in ((Verdict.UNVERIFIED, [paraphrase]), (Verdict.SUPPORTED, [])):
        answers = [ClaimAnswer(fingerprint=paraphrase, verdict=verdict)]
        assert [claim.fingerprint for claim in extract(DRAFT, MATERIAL, answers)[1]] == asked


def test_without_a_model_rules_decide_everything() -> None:
    """Nothing is left for a checker that does not exist."""
    claims = extract_claims(DRAFT, Material(MATERIAL.entry, MATERIAL.texts, by_model=False))
    assert ask(claims, MATERIAL, set()) == []
    assert all(each.decided is not None for each in claims)


def test_proposals_change_their_own_sentence_alone() -> None:
    """A rewriting, a removal and another citation stand where they belong; outline and other words stay."""
    claims = extract_claims(DRAFT, MATERIAL)
    proposals = [
        Proposal(number=3, action=CorrectionAction.REMOVE),
        Proposal(
            number=1, action=CorrectionAction.REWRITE, text="It is 128 MB [ev-9] by default.", evidence_ids=["ev-1"]
        ),
        Proposal(number=2, action=CorrectionAction.ADD, evidence_ids=["ev-2", "ev-1"]),
    ]
    text, placed = apply(DRAFT, claims, proposals, KnownAddresses({}))
    assert f"{QUOTE} [ev-1] It is 128 MB by default. [ev-1]" in text
    assert "ancestor. [ev-2][ev-1]" in text
    assert "mistake" not in text
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# Stores", "## Summary", "## Details"]
    assert text[placed[0].start : placed[0].end].startswith("It is 128 MB")
