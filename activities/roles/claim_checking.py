"""Checker and corrector: the claims of their prompts, and validation of their answers.

`supported` counts only as exactly that word, with a quote from the passages. What rules find is shown to the checker
as a question; they never overrule its answer. Each call includes a control: a statement of the same text with a passage
that speaks of something else. If it is called supported, no `supported` of the call counts.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from activities.reporting.references import without_escaped_markers, without_markers
from activities.roles.grounding import RoleWork, find_quote
from activities.roles.untrusted import label_all
from contracts import checking_roles
from contracts.addresses import long_hash
from contracts.checking import AskedClaim, ClaimAnswer, CorrectionAction, Fault, Proposal, QuotePlace, ShownSection
from contracts.evidence import Verdict
from contracts.lenient import find_member, to_line
from contracts.roles import RoleInput
from contracts.sentences import Message

REASON_CHARACTERS: Final = 240
QUOTE_CHARACTERS: Final = 160  # of a deciding quote in the reason of a verdict
MAX_QUOTES: Final = 8  # deciding quotes of a verdict
SENTENCE_CHARACTERS: Final = 600  # of a corrected sentence
MAX_LACKING: Final = 4  # parts of a statement that its passages lack
MAX_CITED: Final = 8  # passages that a corrected sentence cites
TWO_VERDICTS: Final = Message("reason_two_answers")
NO_VERDICT: Final = Message("reason_no_answer")
CREDULOUS: Final = Message("reason_credulous")
NO_QUOTE: Final = Message("reason_names_no_words")
CONCLUSION: Final = Message("reason_conclusion")
UNUSABLE_REASONS: Final = (TWO_VERDICTS, NO_VERDICT, CREDULOUS, NO_QUOTE)  # reasons for `UNVERIFIED`
Checking = RoleWork[checking_roles.CheckInput, checking_roles.CheckerAnswer]


# --- claims that are shown --------------------------------------------------------------------------------------------
def with_control(claims: Sequence[AskedClaim], controls: Sequence[AskedClaim]) -> list[AskedClaim]:
    """Insert the control at a pseudo-random place among the claims, the same for the same claims.

    That is beside a claim from under the same headings, if there is one.
    """
    control = control_of(claims, controls)
    if control is None:
        return list(claims)
    number = _number_of(claims)
    near = [place for place, claim in enumerate(claims) if claim.place.headings == control.place.headings]
    place = near[number % len(near)] + number % 2 if near else number % (len(claims) + 1)
    return [*claims[:place], control, *claims[place:]]


def control_of(claims: Sequence[AskedClaim], controls: Sequence[AskedClaim]) -> AskedClaim | None:
    """Return the control of a call: a statement that it does not show otherwise, if there is one; None without any.

    One from under the headings of another statement is not known by its place.
    """
    shown = {claim.text for claim in claims}
    headings = {tuple(claim.place.headings) for claim in claims}
    candidates = [control for control in controls if control.text not in shown] or controls
    if not candidates or not claims:
        return None
    number = _number_of(claims)
    near = [control for control in candidates if tuple(control.place.headings) in headings] or candidates
    control = near[number % len(near)]
    # An id that came in two calls would tell it from the others.
    return control.with_fields(fingerprint="c-" + long_hash(control.fingerprint, number))


def _number_of(claims: Sequence[AskedClaim]) -> int:
    return int(long_hash("control", *(claim.fingerprint for claim in claims))[:8], 16)


# --- verdicts --------------------------------------------------------------------------------------------------------
def ground_verdicts(work: Checking) -> checking_roles.CheckerResult:
    """Return an answer for every claim of the call: the checker's if usable, else one without a verdict."""
    claims = work.request.claims
    controls = work.request.controls
    known = label_all((claim.fingerprint for claim in with_control(claims, controls)), work.request)
    verdicts: dict[str, list[checking_roles.GivenVerdict]] = defaultdict(list)
    for verdict in work.answer.verdicts:
        verdicts[known.get(verdict.claim.strip(), "")].append(verdict)
    if verdicts[""]:
        work.warnings.append("a verdict on an unknown statement was ignored")
    control = control_of(claims, controls)
    credulous = control is not None and any(
        read_verdict(item.verdict) is Verdict.SUPPORTED for item in verdicts[control.fingerprint]
    )
    if credulous:
        work.warnings.append("the checker called a statement supported that no passage speaks of")
    answers = [
        _answer(
            claim,
            [section for section in work.request.sections if section.id in claim.sections],
            verdicts[claim.fingerprint],
            credulous=credulous,
        )
        for claim in claims
    ]
    unjudged = sum(answer.verdict is Verdict.UNVERIFIED for answer in answers)
    if unjudged:
        work.warnings.append(f"{unjudged} of {len(answers)} statements got no usable verdict")
    return checking_roles.CheckerResult(answers=answers, verdicts=[answer.verdict for answer in answers])


def read_verdict(word: str) -> Verdict | None:
    """Return the verdict that a word names, in any case; None for any other text: a longer phrase may negate it."""
    named = None
    if "?" not in word:
        named = find_member(Verdict, re.sub(r"[\W_]+", "_", word).strip("_"))
    if named is Verdict.UNVERIFIED:
        return None
    return named


def _answer(
    claim: AskedClaim,
    sections: Sequence[ShownSection],
    answers: Sequence[checking_roles.GivenVerdict],
    *,
    credulous: bool,
) -> ClaimAnswer:
    verdicts = {read_verdict(answer.verdict) for answer in answers}
    verdict = verdicts.pop() if len(verdicts) == 1 else None
    if verdict is None:
        return ClaimAnswer(fingerprint=claim.fingerprint, reason=TWO_VERDICTS if len(verdicts) > 1 else NO_VERDICT)
    quotes: dict[str, str] = {}
    places: dict[str, QuotePlace] = {}
    reason = to_line(without_escaped_markers(answers[0].reason), REASON_CHARACTERS)
    for quote in answers[0].quotes[:MAX_QUOTES]:
        spans = ((passage, find_quote(passage.text, quote)) for passage in claim.shown_passages)
        if found := next(((passage, span) for passage, span in spans if span), None):
            passage, span = found
            quotes.setdefault(to_line(passage.text[slice(*span)], QUOTE_CHARACTERS), passage.evidence_id)
        elif place := _place_in(sections, quote):
            section, (start, end) = place
            line = to_line(section.text[start:end], QUOTE_CHARACTERS)
            places.setdefault(
                line, QuotePlace(source_id=section.source_id, start=section.start + start, end=section.start + end)
            )
    lines = [*quotes, *(line for line in places if line not in quotes)]
    if verdict is Verdict.SUPPORTED and (credulous or not lines):
        return ClaimAnswer(fingerprint=claim.fingerprint, reason=CREDULOUS if credulous else NO_QUOTE)
    if verdict is Verdict.SUPPORTED and answers[0].conclusion:
        reason = CONCLUSION
    return ClaimAnswer(
        fingerprint=claim.fingerprint,
        verdict=verdict,
        reason=reason,
        quotes=lines,
        evidence_ids=list(dict.fromkeys(quotes.values())),
        places=list(places.values()),
        lacking=_words_of(claim, answers[0].lacking) if verdict is Verdict.PARTIAL else [],
        fault=find_member(Fault, answers[0].fault.strip()) if verdict is Verdict.PARTIAL else None,
    )


def _place_in(sections: Sequence[ShownSection], quote: str) -> tuple[ShownSection, tuple[int, int]] | None:
    """Return the first section that has a quote, with the place of the quote in its text; None without any."""
    spans = ((section, find_quote(section.text, quote)) for section in sections)
    return next(((section, span) for section, span in spans if span), None)


def _words_of(claim: AskedClaim, parts: Sequence[str]) -> list[str]:
    """Return the parts that are words of a claim, as they stand in it; case, blanks and backticks may differ."""
    found = []
    for part in parts[:MAX_LACKING]:
        words = " ".join(without_escaped_markers(part).replace("`", "").split()).strip('"“”.,; ')
        if words and (match := re.search(re.escape(words), claim.text, re.IGNORECASE)):
            found.append(to_line(match[0], QUOTE_CHARACTERS))
    return list(dict.fromkeys(found))


# --- corrections -----------------------------------------------------------------------------------------------------
def ground_corrections(
    work: RoleWork[checking_roles.CorrectInput, checking_roles.CorrectorAnswer],
) -> checking_roles.CorrectorResult:
    """Return one proposal for each claim of the call; an unusable one leaves the claim unchanged."""
    claims = work.request.claims
    known = label_all((claim.fingerprint for claim in claims), work.request)
    proposed: dict[str, checking_roles.ProposedCorrection] = {}
    for proposal in work.answer.proposals:
        name = known.get(proposal.claim.strip(), "")
        if not name or name in proposed:
            work.warnings.append("a proposal for an unknown or a settled statement was ignored")
        proposed.setdefault(name, proposal)
    return checking_roles.CorrectorResult(
        proposals=[_proposal(claim, proposed.get(claim.fingerprint), work.request) for claim in claims]
    )


def _proposal(claim: AskedClaim, proposed: checking_roles.ProposedCorrection | None, request: RoleInput) -> Proposal:
    unchanged = Proposal(number=claim.number)
    # Further citations come from a second look, never from a proposal.
    if proposed is None or proposed.action in (CorrectionAction.KEEP, CorrectionAction.CITE):
        return unchanged
    reason = to_line(proposed.reason, REASON_CHARACTERS)
    if proposed.action is CorrectionAction.REMOVE:
        return Proposal(number=claim.number, action=proposed.action, reason=reason)
    shown = [passage.evidence_id for passage in claim.shown_passages]
    known = label_all(shown, request)
    labels = [name.strip().strip("[]") for name in proposed.passages]
    passages = list(dict.fromkeys(known[name] for name in labels if name in known))[:MAX_CITED]
    passages = passages or [passage.evidence_id for passage in claim.passages]
    text, rest, dropped = (
        to_line(without_escaped_markers(without_markers(part)), SENTENCE_CHARACTERS)
        for part in (proposed.text, proposed.rest, proposed.dropped)
    )
    is_split = proposed.action is CorrectionAction.SPLIT
    if not passages or not text or text == claim.text or is_split is not bool(rest):
        return unchanged
    return Proposal(
        number=claim.number,
        action=proposed.action,
        text=text,
        rest=rest,
        evidence_ids=passages,
        dropped=dropped,
        reason=reason,
    )
