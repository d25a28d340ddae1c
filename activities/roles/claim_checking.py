"""Checker and corrector: claims in their prompts, and the part of the answers that counts.

A verdict is read strictly where it would do good, and leniently where it does harm: `supported` must be that very word,
must rest on words of the passages, and must not contradict the rules. Among the claims of a call is a control that no
passage supports: a checker that calls it supported, by its own weakness or because of a page, has no claim called
supported.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from activities.reporting.citations import without_markers
from activities.roles.grounding import RoleWork, find_quote
from activities.roles.untrusted import label_all, label_key
from contracts import checking_roles
from contracts.addresses import long_hash
from contracts.checking import AskedClaim, ClaimAnswer, CorrectionAction, DoubtfulClaim, Proposal
from contracts.evidence import Verdict
from contracts.lenient import find_member, line_of
from contracts.texts import shorten
from providers.text import detect_language
from providers.verification.rules import UNDECIDED, check, check_numbers, shared_words

REASON_CHARACTERS: Final = 240
MOST_CITED: Final = 3
"""Passages that a corrected sentence cites."""
STATEMENTS: Final = (
    "The lighthouse of Ervandsund was painted yellow by its keeper in spring.",
    "A baker in Tolmsby has kept eleven grey parrots above his shop.",
    "Snow fell on the harbour of Quellinmar during the midsummer dance.",
    "The choir of Hasselwyk rehearses beneath an old walnut tree.",
    "Two ferries named after poets cross Lake Ombrel on Thursdays.",
)
"""Controls: statements about places that do not exist."""
Checking = RoleWork[checking_roles.CheckInput, checking_roles.CheckerAnswer]


# --- claims that are shown --------------------------------------------------------------------------------------------
def with_control(claims: Sequence[AskedClaim]) -> list[AskedClaim]:
    """Put the control at any place among the claims, the same for the same claims."""
    control = control_of(claims)
    if control is None:
        return list(claims)
    place = int(control.fingerprint[10:18], 16) % (len(claims) + 1)
    return [*claims[:place], control, *claims[place:]]


def control_of(claims: Sequence[AskedClaim]) -> AskedClaim | None:
    """The control of a call, with a passage of its claims; None without a passage."""
    passage = next((passage for claim in claims for passage in claim.passages if passage.quote.strip()), None)
    if passage is None:
        return None
    shown = passage.model_copy(update={"before": "", "quote": shorten(passage.quote, 80), "after": ""})
    name = "c-" + long_hash("control", *(claim.fingerprint for claim in claims))
    text = STATEMENTS[int(name[2:10], 16) % len(STATEMENTS)]
    return AskedClaim(fingerprint=name, text=text, passages=[shown])


# --- verdicts --------------------------------------------------------------------------------------------------------
def ground_verdicts(work: Checking) -> checking_roles.CheckerResult:
    """One answer for every claim of the call: the checker's where it can be used, else none."""
    given = _verdicts_by_claim(work)
    control = control_of(work.request.claims)
    credulous = control is not None and any(
        read_verdict(one.verdict) is Verdict.SUPPORTED for one in given.get(control.fingerprint, [])
    )
    if credulous:
        work.warnings.append("the checker called a statement supported that no passage speaks of")
    answers = [
        _answer(claim, given.get(claim.fingerprint, []), work.request.language, credulous=credulous)
        for claim in work.request.claims
    ]
    unjudged = sum(answer.verdict is Verdict.UNVERIFIED for answer in answers)
    if unjudged:
        work.warnings.append(f"{unjudged} of {len(answers)} statements got no usable verdict")
    return checking_roles.CheckerResult(answers=answers, verdicts=[answer.verdict for answer in answers])


def _verdicts_by_claim(work: Checking) -> dict[str, list[checking_roles.GivenVerdict]]:
    """The verdicts by the fingerprints of their claims."""
    key = label_key(work.request)
    known = label_all((claim.fingerprint for claim in with_control(work.request.claims)), key)
    found: dict[str, list[checking_roles.GivenVerdict]] = defaultdict(list)
    for given in work.answer.verdicts:
        name = known.get(given.claim.strip())
        if name is None:
            work.warnings.append("a verdict on an unknown statement was ignored")
        else:
            found[name].append(given)
    return found


def read_verdict(word: str) -> Verdict | None:
    """The verdict that a word names in any case; None for every other word: a longer phrase may deny it."""
    named = None if "?" in word else find_member(Verdict, re.sub(r"[\W_]+", "_", word).strip("_"))
    return None if named is Verdict.UNVERIFIED else named


def _answer(
    claim: AskedClaim, given: Sequence[checking_roles.GivenVerdict], language: str, *, credulous: bool
) -> ClaimAnswer:
    verdicts = {read_verdict(one.verdict) for one in given}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    if verdict is None:
        usable = "two verdicts" if len(given) > 1 else "no usable verdict"
        return ClaimAnswer(fingerprint=claim.fingerprint, reason=f"The checker gave {usable} on it.")
    quote, reason = _stored_words(given[0].quote, claim), line_of(given[0].reason, REASON_CHARACTERS)
    if verdict is Verdict.SUPPORTED:
        limited = _limited_support(claim, quote, language, credulous=credulous)
        verdict, reason = limited or (verdict, reason)
    if verdict is Verdict.UNVERIFIED:
        quote = ""
    return ClaimAnswer(fingerprint=claim.fingerprint, verdict=verdict, reason=reason, quote=quote)


def _limited_support(claim: AskedClaim, quote: str, language: str, *, credulous: bool) -> tuple[Verdict, str] | None:
    """The verdict that remains of `supported` after doubts, objections and hints; None: all of it."""
    if credulous:
        return Verdict.UNVERIFIED, "The checker called it supported, and something that no passage speaks of as well."
    if not quote:
        return Verdict.UNVERIFIED, "The checker called it supported, yet named no words of its passages."
    if _same_language(claim) and not any(shared_words(claim.text, [quote], language)):
        return Verdict.UNVERIFIED, "The checker called it supported by words that share nothing with it."
    return find_objection(claim, language)


def _stored_words(quote: str, claim: AskedClaim) -> str:
    """The words of the shown passages that match the quote; empty if there are none."""
    for passage in claim.passages:
        place = find_quote(passage.text, quote)
        if place is not None:
            return line_of(passage.text[slice(*place)], REASON_CHARACTERS)
    return ""


def _same_language(claim: AskedClaim) -> bool:
    """Return true if a claim and its passages are in one language, as far as detected."""
    texts = " ".join(passage.text for passage in claim.passages)
    return detect_language(texts) == detect_language(claim.text)


def find_objection(claim: AskedClaim, language: str) -> tuple[Verdict, str] | None:
    """Return the verdict that the rules leave of `supported`, and why; None where they do not object.

    Across languages they compare numbers alone.
    """
    texts = [passage.text for passage in claim.passages]
    if not _same_language(claim):
        problem = check_numbers(claim.text, texts, language)
        return (Verdict.PARTIAL, problem.reason) if problem else None
    judgement = check(claim.text, texts, [passage.title for passage in claim.passages if passage.title], language)
    if judgement.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED):
        return Verdict.PARTIAL, judgement.reason
    is_hint = judgement.verdict is Verdict.NOT_ENOUGH_INFORMATION and judgement.reason != UNDECIDED
    return (judgement.verdict, judgement.reason) if is_hint else None


# --- corrections -----------------------------------------------------------------------------------------------------
def ground_corrections(
    work: RoleWork[checking_roles.CorrectInput, checking_roles.CorrectorAnswer],
) -> checking_roles.CorrectorResult:
    """One proposal for each claim of the call; an unusable one does not change the claim."""
    key = label_key(work.request)
    known = label_all((claim.asked.fingerprint for claim in work.request.claims), key)
    by_claim: dict[str, checking_roles.ProposedCorrection] = {}
    for proposed in work.answer.proposals:
        name = known.get(proposed.claim.strip())
        if name is None or name in by_claim:
            work.warnings.append("a proposal for an unknown or a settled statement was ignored")
        else:
            by_claim[name] = proposed
    proposals = [_proposal(claim, by_claim.get(claim.asked.fingerprint), key) for claim in work.request.claims]
    return checking_roles.CorrectorResult(proposals=proposals)


def _proposal(claim: DoubtfulClaim, proposed: checking_roles.ProposedCorrection | None, key: str) -> Proposal:
    unchanged = Proposal(number=claim.number)
    if proposed is None or proposed.action is CorrectionAction.KEEP:
        return unchanged
    action, reason = proposed.action, line_of(proposed.reason, REASON_CHARACTERS)
    if action is CorrectionAction.REMOVE:
        return Proposal(number=claim.number, action=action, reason=reason)
    passages = _named_passages(claim, proposed.passages, key)
    cited = [passage.evidence_id for passage in claim.asked.passages]
    has_text = action in (CorrectionAction.REWRITE, CorrectionAction.SOFTEN)
    text = line_of(without_markers(proposed.text), 600) if has_text else ""
    if action is CorrectionAction.ADD:
        passages = list(dict.fromkeys([*cited, *passages]))
    if action is CorrectionAction.SOFTEN:
        passages = passages or cited
    changed = text != claim.asked.text if text else passages != cited
    if not passages or not changed or (has_text and not text):
        return unchanged
    return Proposal(number=claim.number, action=action, text=text, evidence_ids=passages, reason=reason)


def _named_passages(claim: DoubtfulClaim, names: Sequence[str], key: str) -> list[str]:
    """The passages of this claim that an answer names by their labels."""
    known = label_all((passage.evidence_id for passage in [*claim.asked.passages, *claim.candidates]), key)
    found = [known[name.strip().strip("[]")] for name in names if name.strip().strip("[]") in known]
    return list(dict.fromkeys(found))[:MOST_CITED]
