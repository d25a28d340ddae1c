"""The checker: what it is shown of claims, and what is believed of its answers.

A verdict is read strictly where it would do good, and leniently where it does harm: `supported` must be that very word,
must rest on words that stand in the passages, and must not contradict what the rules find. A checker that calls the
control statement of its call supported (`activities.roles.control_statement`) has no claim called supported.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from activities.roles.control_statement import control_of, with_control
from activities.roles.excerpts import part_of
from activities.roles.finishers import RoleWork
from activities.roles.grounding import find_quote
from activities.roles.labels import label_all, label_key, label_of
from activities.roles.lenient_values import line_of
from activities.roles.prompt_blocks import PromptRendering
from activities.roles.untrusted import data, guard_line
from contracts.checking import AskedClaim, ClaimAnswer, ShownPassage
from contracts.checking_roles import (
    CheckerAnswer,
    CheckerResult,
    CheckInput,
    GivenVerdict,
)
from contracts.evidence import Verdict
from contracts.texts import shorten
from providers.text import detect_language
from providers.verification.rules import check, check_numbers, find_hint, shared_words

CLAIM_CHARACTERS: Final = 800
QUOTE_CHARACTERS: Final = 500
CONTEXT_CHARACTERS: Final = 100
TITLE_CHARACTERS: Final = 60
SHORTEST: Final = 60
REASON_CHARACTERS: Final = 240
MOST_PASSAGES: Final = 4
"""Of one claim."""
NO_ANSWER: Final = "The checker gave no usable verdict on it."
TWO_ANSWERS: Final = "The checker gave two verdicts on it."
NO_WORDS: Final = "The checker called it supported, yet named no words of its passages."
OTHER_WORDS: Final = "The checker called it supported by words that share nothing with it."
CREDULOUS: Final = "The checker called it supported, and something that no passage speaks of as well."
PARTS_MISSING: Final = "The cited passages say a part of it only."
VETO: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
"""Verdicts of the rules beside which `supported` does not stand."""

NOT_A_LETTER: Final = re.compile(r"[\W_]+")
WORDS: Final[Mapping[str, Verdict]] = {
    "supported": Verdict.SUPPORTED,
    **dict.fromkeys(
        ("partial", "partially", "partly", "partially supported", "partly supported", "mixed"), Verdict.PARTIAL
    ),
    **dict.fromkeys(("unsupported", "not supported", "no support", "false"), Verdict.UNSUPPORTED),
    **dict.fromkeys(("contradicted", "contradicts", "contradiction", "contradictory", "refuted"), Verdict.CONTRADICTED),
    **dict.fromkeys(
        ("not enough information", "not enough info", "insufficient information", "nei"),
        Verdict.NOT_ENOUGH_INFORMATION,
    ),
}
"""Words that a verdict is known by. One alone means support: whatever is longer may deny it."""


def read_verdict(word: str) -> Verdict | None:
    """The verdict that a word names; None where it names none for certain."""
    if "?" in word:
        return None
    return WORDS.get(NOT_A_LETTER.sub(" ", word.casefold()).strip())


def checker_values(request: CheckInput, rendering: PromptRendering) -> dict[str, str]:
    """What the checker's prompt is filled with: every claim in a block of its own."""
    blocks = [_claim(claim, rendering) for claim in with_control(request.claims)]
    return {"claims": "\n".join(blocks) or "(none)", "count": str(len(blocks))}


def _claim(claim: AskedClaim, rendering: PromptRendering) -> str:
    named = f' id="{label_of(claim.fingerprint, rendering.label_key)}"'
    lines = [f"statement: {guard_line(claim.text, CLAIM_CHARACTERS)}"]
    lines += [f"part {number}: {guard_line(part, CLAIM_CHARACTERS)}" for number, part in enumerate(claim.parts, 1)]
    lines += [passage_line("passage", passage, rendering.share) for passage in shown_passages(claim)]
    return data("statement", lines, named)


def shown_passages(claim: AskedClaim) -> list[ShownPassage]:
    """The passages of a claim that a checker sees."""
    return claim.passages[:MOST_PASSAGES]


def passage_line(name: str, passage: ShownPassage, share: float) -> str:
    """A passage in the words around it, on one line that begins with our own name for it."""
    context = part_of(CONTEXT_CHARACTERS, share)
    before, after = (passage.before[-context:], passage.after[:context]) if context else ("", "")
    quote = shorten(passage.quote, part_of(QUOTE_CHARACTERS, share, SHORTEST))
    title = guard_line(passage.title, part_of(TITLE_CHARACTERS, share, SHORTEST))
    words = guard_line(f"{before} {quote} {after}", QUOTE_CHARACTERS + 2 * CONTEXT_CHARACTERS)
    return f"{name} ({title}): {words}" if title else f"{name}: {words}"


Checking = RoleWork[CheckInput, CheckerAnswer]


def finish_check(work: Checking) -> CheckerResult:
    """One answer for every claim that was asked for: the checker's where it can be used, else none."""
    given = _drafts_by_claim(work)
    control = control_of(work.request.claims)
    credulous = control is not None and any(
        read_verdict(draft.verdict) is Verdict.SUPPORTED for draft in given.get(control.fingerprint, [])
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
    return CheckerResult(
        answers=answers, verdicts=[answer.verdict for answer in answers], account=work.account_with_warnings()
    )


def _drafts_by_claim(work: Checking) -> dict[str, list[GivenVerdict]]:
    """The drafts under the fingerprints that their labels stand for."""
    key = label_key(work.request)
    known = label_all((claim.fingerprint for claim in with_control(work.request.claims)), key)
    found: dict[str, list[GivenVerdict]] = defaultdict(list)
    for draft in work.answer.verdicts:
        name = known.get(draft.claim.strip())
        if name is None:
            work.warnings.append("a verdict on an unknown statement was ignored")
        else:
            found[name].append(draft)
    return found


def _answer(claim: AskedClaim, drafts: Sequence[GivenVerdict], language: str, *, credulous: bool) -> ClaimAnswer:
    verdicts = {read_verdict(draft.verdict) for draft in drafts}
    if len(verdicts) != 1:
        return _unjudged(claim, TWO_ANSWERS if verdicts else NO_ANSWER)
    verdict, draft = verdicts.pop(), drafts[0]
    if verdict is None:
        return _unjudged(claim, NO_ANSWER)
    quote, reason = _stored_words(draft.quote, claim), line_of(draft.reason, REASON_CHARACTERS)
    if verdict is Verdict.SUPPORTED:
        if credulous:
            return _unjudged(claim, CREDULOUS)
        if not quote:
            return _unjudged(claim, NO_WORDS)
        # A second answer that names a part as missing takes the support away, too.
        if any(each.missing_parts for each in drafts):
            verdict, reason = Verdict.PARTIAL, reason or PARTS_MISSING
        elif objection := next(objections(claim, language), None):
            verdict, reason = Verdict.PARTIAL, objection
        elif same_language(claim) and not any(shared_words(claim.text, [quote], language)):
            return _unjudged(claim, OTHER_WORDS)
        elif same_language(claim) and (hint := find_hint(claim.text, [one.text for one in claim.passages], language)):
            verdict, reason = Verdict.NOT_ENOUGH_INFORMATION, hint
    return ClaimAnswer(fingerprint=claim.fingerprint, verdict=verdict, reason=reason, quote=quote)


def _unjudged(claim: AskedClaim, why: str) -> ClaimAnswer:
    return ClaimAnswer(fingerprint=claim.fingerprint, reason=why)


def _stored_words(quote: str, claim: AskedClaim) -> str:
    """The quote as it stands in the passages that were shown; empty if it does not."""
    for passage in shown_passages(claim):
        place = find_quote(passage.text, quote)
        if place is not None:
            return line_of(passage.text[slice(*place)], REASON_CHARACTERS)
    return ""


def same_language(claim: AskedClaim) -> bool:
    """Whether a claim and its passages are in one language, as far as that can be told."""
    texts = " ".join(passage.text for passage in shown_passages(claim))
    return detect_language(texts) == detect_language(claim.text)


def objections(claim: AskedClaim, language: str) -> Iterator[str]:
    """What the rules hold against calling a claim supported. Across languages they compare numbers alone."""
    texts = [passage.text for passage in shown_passages(claim)]
    titles = [passage.title for passage in shown_passages(claim) if passage.title]
    if same_language(claim):
        judgement = check(claim.text, texts, titles, language)
        if judgement.verdict in VETO:
            yield judgement.reason
    elif (problem := check_numbers(claim.text, texts, language)) is not None:
        yield problem.reason
