"""Verification of a draft: claims, verdicts and corrections, and the activities for them, which make no paid call.

A doubtful statement is first tried with the passages of the run that share most with it as further citations, then with
the sentence that a corrector proposes. Each is judged like any sentence of a draft, and the mildest that passes is
taken. A wrong statement without one is removed, even if it is the only one in its section; but if more than two of
those that would go have evidence in the run, none goes. Results are entries of the notebook; the workflow gets hashes
and figures. Text is processed in a thread: that takes linear time, at most a second for 8 kB
of the worst Markdown, and involves no document parser.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.drafts import MARKDOWN_TYPE, describe_draft, parse_draft, store_draft
from activities.reporting.inputs import (
    CitedPassage,
    CountedClaim,
    ParsedClaim,
    claim_id,
    count_verdicts,
    find_claims,
    judge,
    show_passage,
)
from activities.reporting.references import KnownAddresses, without_source_lists
from activities.reporting.render import evidence_texts
from activities.reporting.tree import (
    Block,
    Blocks,
    CitationMark,
    Inline,
    Run,
    Sentence,
    change_sentences,
    leaves,
    parse_plain_text,
    tidy,
    write,
)
from activities.roles.grounding import load_texts
from contracts import checking, messages
from contracts.addresses import digest
from contracts.base import CompactModel
from contracts.checking import CorrectionAction
from contracts.evidence import CheckMethod, ClaimVerdict, DocumentRef, Evidence, ReportDraft, Verdict, VerdictsEntry
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, SessionStore
from providers.storage.stored_notebooks import Notebooks
from providers.verification.quantities import find_quantities
from providers.verification.rules import Statement, find_differences, shared_words

Claims = Sequence[checking.ExtractedClaim]
Answers = Mapping[str, checking.ClaimAnswer]
"""Answers of checkers by the fingerprint of the claim."""

MAX_PASSAGES: Final = 12
"""Passages shown to a checker for one claim; hardly any cites more."""
MAX_SEAM_WORDS: Final = 2
"""Words that a statement may lose where it is cut in two: "and", "since"."""
MAX_OTHERS: Final = 8
"""Further passages of the run that are tried for a doubtful claim."""
LACKING_WEIGHT: Final = 3.0
"""Weight of a word that the cited passages of a claim lack, in the search for further ones."""
MAX_REMARKS: Final = 4
"""Differences found by rules that a checker is asked about, of one claim."""
MAX_LOST: Final = 2
"""Removed statements with evidence in the run from which the check is taken to be wrong, not the report."""
EVIDENT_SHARE: Final = 0.8
"""Share of a statement's words from which a passage that differs in no figure or name is evidence for it."""
MAX_DOUBTFUL: Final = 20
"""Claims that a model may correct in one round."""
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)
NOT_REACHED: Final = "The check did not get to this sentence."
SPLIT_OFF: Final = "No passage of the run supports this part."
PASSAGES_SAY: Final = "The passages say: “{}”"
QUOTE_BREAK: Final = "” – “"
"""Between the quotes of a reason."""
UNDECIDED: Final = (Verdict.NOT_ENOUGH_INFORMATION, Verdict.UNVERIFIED)
WORD: Final = re.compile(r"\w+(?:[.,'’-]\w+)*")
SHORT_WORD: Final = 3  # letters of a word whose loss is not named
SCORES: Final[Mapping[Verdict, float]] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIAL: 0.4,
    Verdict.NOT_ENOUGH_INFORMATION: 0.2,
    Verdict.UNVERIFIED: 0.2,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: -1.0,
}
"""Order of verdicts: higher is better."""


@dataclass(frozen=True)
class Material:
    """The passages and texts that the claims of a run are compared with."""

    entry: checking.ClaimsEntry
    texts: Mapping[str, str]
    """Stored texts of sources by hash."""
    by_model: bool
    """True if a model checks claims that rules cannot decide."""

    @cached_property
    def passages(self) -> dict[str, tuple[Evidence, str, str]]:
        """The run's passages by id, with title and text of their source; those without a loaded text are missing."""
        sources = {source.id: source for source in self.entry.sources if source.text.hash in self.texts}
        known = ((item, sources[item.source_id]) for item in self.entry.evidence if item.source_id in sources)
        return {item.id: (item, source.title, self.texts[source.text.hash]) for item, source in known}

    @cached_property
    def stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage."""
        language = self.entry.language
        return {
            key: Statement(text[item.start : item.end], language).stems
            for key, (item, _, text) in self.passages.items()
        }

    def related(self, claim: checking.ExtractedClaim) -> list[str]:
        """Return the passages that share most with a claim among those that it does not cite, best first.

        Rare words weigh more, and so do words that its own passages lack; a short passage that has them comes before a
        long one.
        """
        counts = Counter(stem for stems in self.stems.values() for stem in stems)
        covered = frozenset[str]().union(*(self.stems.get(key, ()) for key in claim.evidence_ids))
        weights = {
            stem: math.log(1 + len(self.stems) / counts[stem]) * (1 if stem in covered else LACKING_WEIGHT)
            for stem in Statement(claim.text, self.entry.language).stems
            if counts[stem]
        }
        scores = {
            key: sum(weights.get(stem, 0.0) for stem in stems) / math.sqrt(len(stems))
            for key, stems in self.stems.items()
            if stems and key not in claim.evidence_ids
        }
        best = sorted((key for key in scores if scores[key]), key=lambda key: (-scores[key], key))
        return best[:MAX_OTHERS]

    @cached_property
    def registry(self) -> KnownAddresses:
        """The addresses known to the run."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


def extract_claims(draft: str, material: Material) -> list[checking.ExtractedClaim]:
    """Return the claims of a draft in order, each with the verdict that needs no model, if any.

    The draft must be text that `write` produced: the offsets of claims refer to it.
    """
    blocks = parse_draft(draft)
    written = write(blocks)
    parsed = find_claims(blocks, material.entry.language, uncited=material.entry.written_freely)
    first = next((claim.section for claim in parsed if claim.evidence_ids), "")
    extracted = []
    for claim in parsed:
        start, end = claim.span(written)
        weight = 0.2 + 0.2 * bool(claim.evidence_ids) + 0.3 * (claim.section == first)
        weight += 0.3 * bool(find_quantities(claim.words, material.entry.language))
        extracted.append(
            checking.ExtractedClaim(
                id=claim.id,
                text=claim.words,
                section=claim.section,
                evidence_ids=claim.evidence_ids,
                start=start,
                end=end,
                with_heads=claim.with_heads,
                fingerprint=claim_id(claim.words, claim.evidence_ids),
                importance=round(weight, 2),
                row=claim.quoted or claim.row,
                **_rule(claim, material),
            )
        )
    return extracted


def _rule(claim: ParsedClaim, material: Material) -> dict[str, Any]:
    """Return the fields of a claim that follow from its verdict by rules: what is left to a checker, with remarks."""
    known = [material.passages[key] for key in claim.evidence_ids if key in material.passages]
    cited = [CitedPassage(text[item.start : item.end], item.heading, title) for item, title, text in known]
    language, question = material.entry.language, material.entry.query
    ruled = judge(claim.words, cited, material.registry, language, question=question, quoted=claim.quoted)
    asked = material.by_model and ruled.method is CheckMethod.RULES and ruled.verdict is not Verdict.SUPPORTED
    remarks = []
    if asked:
        quotes = [show_passage(*passage).text for passage in known]
        about = [text for item in cited for text in (item.title, item.heading) if text]
        found = find_differences(claim.words, quotes, [*about, question], language)
        remarks = [difference.reason for difference in found[:MAX_REMARKS]]
    return {"ruled": ruled.model_copy(update={"claim_id": claim.id}), "asked": asked, "remarks": remarks}


def select_open(claims: Claims, material: Material, known: Collection[str]) -> list[checking.AskedClaim]:
    """Return the claims that need a checker, each once, most important first, without the `known` ones."""
    unchecked = {
        claim.fingerprint: claim
        for claim in sorted(claims, key=lambda claim: -claim.importance)
        if claim.asked and claim.fingerprint not in known
    }
    return [to_asked(claim, material) for claim in unchecked.values()]


def is_judged(answer: checking.ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def to_asked(claim: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """Return a claim in the form shown to checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=claim.fingerprint,
        text=claim.with_heads or claim.text,
        passages=show_passages(claim.evidence_ids[:MAX_PASSAGES], material),
        remarks=claim.remarks,
    )


def show_passages(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """Return the passages with these ids and the text around them, where their texts are available."""
    return [show_passage(*material.passages[key]) for key in identities if key in material.passages]


def conclude(claims: Claims, answers: Answers) -> list[ClaimVerdict]:
    """Return the verdict on each claim: the checker's if it was asked, else that of the rules.

    Without a usable answer a difference that the rules found counts; other claims are `UNVERIFIED`.
    """
    verdicts = []
    for claim in claims:
        answer = answers.get(claim.fingerprint)
        if not claim.asked or (not is_judged(answer) and claim.ruled.verdict in WRONG):
            verdict = claim.ruled
        elif answer is None:
            verdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
        else:
            method = CheckMethod.MODEL if is_judged(answer) else CheckMethod.NONE
            reason = answer.reason or (PASSAGES_SAY.format(QUOTE_BREAK.join(answer.quotes)) if answer.quotes else "")
            verdict = ClaimVerdict(claim_id="", verdict=answer.verdict, method=method, reason=reason)
        verdicts.append(verdict.model_copy(update={"claim_id": claim.id}))
    return verdicts


# --- corrections ----------------------------------------------------------------------------------------------------
def find_doubtful(claims: Claims, verdicts: Sequence[ClaimVerdict], material: Material) -> checking.DoubtfulEntry:
    """Return the claims to correct, most important first, with further passages that may support them.

    Table rows and quoted passages are not corrected: no sentence can replace them.
    """
    chosen = [number for number, claim in enumerate(claims) if not claim.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, SCORES[verdicts[number].verdict], number))
    return checking.DoubtfulEntry(
        items=[
            checking.DoubtfulClaim(
                number=number,
                asked=to_asked(claims[number], material),
                verdict=verdicts[number].verdict,
                reason=verdicts[number].reason,
                others=show_passages(material.related(claims[number]), material),
            )
            for number in chosen[:MAX_DOUBTFUL]
        ]
    )


def try_proposals(
    draft: str, proposals: Sequence[checking.Proposal], doubtful: Sequence[checking.DoubtfulClaim], material: Material
) -> list[checking.TriedProposal]:
    """Return the proposals for each doubtful claim with the claims of their sentences.

    Where a model can judge them, further citations are tried for each claim. The first proposal of a corrector for a
    claim counts.
    """
    cites = [
        checking.Proposal(
            number=item.number,
            action=CorrectionAction.CITE,
            evidence_ids=[passage.evidence_id for passage in (*item.asked.passages, *item.others)],
        )
        for item in doubtful
        if item.others and material.by_model
    ]
    text = DraftText(draft)
    tried: dict[tuple[int, bool], checking.TriedProposal] = {}
    for proposal in [*cites, *proposals]:
        key = proposal.number, proposal.action is CorrectionAction.CITE
        sentence, rest = text.corrected(material.entry.claims[proposal.number], proposal, material.registry)
        if sentence and key not in tried:
            parts = [extract_claims(_as_draft(part), material) for part in (sentence, rest) if part]
            claims, of_rest = [claim for part in parts for claim in part], len(parts[1]) if rest else 0
            tried[key] = checking.TriedProposal(proposal=proposal, claims=claims, rest_claims=of_rest)
    return list(tried.values())


def _as_draft(inlines: tuple[Inline, ...]) -> str:
    return write([Block("paragraph", (Sentence(inlines),))]).text


@dataclass(frozen=True)
class Chosen:
    """The corrections of a draft."""

    proposals: list[checking.Proposal]
    """One per corrected claim, in the order of the claims."""
    corrections: list[checking.Correction]
    """A record of each."""
    answers: dict[str, checking.ClaimAnswer]
    """Answers about claims of the new draft that were asked about in another form."""
    undone: int = 0
    """Removals that were not made, because too many of the statements have evidence in the run."""


def choose_corrections(
    claims: Claims, tried: Sequence[checking.TriedProposal], answers: Answers, material: Material
) -> Chosen:
    """Choose for each claim the mildest proposal that passes, else a removal if it is wrong."""
    verdicts = conclude(claims, answers)
    proposals, corrections = dict[int, checking.Proposal](), dict[int, checking.Correction]()
    more_answers = dict[str, checking.ClaimAnswer]()
    removed = list[int]()
    in_order = sorted(tried, key=lambda item: checking.ACTION_ORDER.index(item.proposal.action))
    for number, (claim, judged) in enumerate(zip(claims, verdicts, strict=True)):
        options = (item for item in in_order if item.proposal.number == number)
        passing = (_pass(item, claim, judged.verdict, answers) for item in options)
        passed = next((option for option in passing if option), None)
        if passed is None and judged.verdict in WRONG:
            proposal = checking.Proposal(number=number, action=CorrectionAction.REMOVE, reason=judged.reason)
            passed = Passed(proposal, "", judged.verdict)
            removed.append(number)
        if passed is None:
            continue
        proposals[number] = proposal = passed.proposal
        more_answers |= passed.answers
        lost = _missing_words(claim.text, passed.after) if passed.after else ""
        corrections[number] = checking.Correction(
            claim_id=claim.id,
            section=claim.section,
            action=proposal.action,
            before=claim.text,
            after=passed.after,
            dropped=proposal.dropped or lost,
            reason=proposal.reason,
            verdict=passed.verdict,
        )
    with_evidence = [number for number in removed if has_evidence(claims[number], material)]
    undone = removed if len(with_evidence) > MAX_LOST else []
    made = [number for number in corrections if number not in undone]
    return Chosen([proposals[n] for n in made], [corrections[n] for n in made], more_answers, len(undone))


@dataclass(frozen=True)
class Passed:
    """A proposal that passes."""

    proposal: checking.Proposal
    """In the form in which it passes."""
    after: str
    """The plain text of its sentences."""
    verdict: Verdict
    answers: Mapping[str, checking.ClaimAnswer] = field(default_factory=dict)
    """Answers about its claims under their fingerprints in the new draft."""


def _pass(
    tried: checking.TriedProposal, claim: checking.ExtractedClaim, previous: Verdict, answers: Answers
) -> Passed | None:
    proposal, count = tried.proposal, len(tried.claims) - tried.rest_claims
    main, rest = tried.claims[:count], tried.claims[count:]
    verdicts = [item.verdict for item in conclude(tried.claims, answers)]
    worst = min(verdicts[:count], key=SCORES.__getitem__, default=Verdict.UNVERIFIED)
    # A softened statement need only be better supported than before.
    enough = Verdict.PARTIAL if proposal.action is CorrectionAction.SOFTEN else Verdict.SUPPORTED
    if SCORES[worst] <= SCORES[previous] or SCORES[worst] < SCORES[enough]:
        return None
    if proposal.rest and not is_cut(claim.text, proposal):
        return None
    after = " ".join(part.text for part in main)
    if proposal.action is CorrectionAction.CITE:
        answer = answers.get(main[0].fingerprint)
        used = [key for key in answer.evidence_ids if key not in claim.evidence_ids] if answer else []
        if answer is None or not used:
            return None
        cited = [*claim.evidence_ids, *used]
        fingerprint = claim_id(main[0].text, cited)
        again = {fingerprint: answer.model_copy(update={"fingerprint": fingerprint})}
        return Passed(proposal.model_copy(update={"evidence_ids": cited}), after, worst, again)
    if Verdict.CONTRADICTED in verdicts[count:]:
        return Passed(proposal.model_copy(update={"rest": "", "dropped": proposal.rest}), after, worst)
    undecided = [part.fingerprint for part, verdict in zip(rest, verdicts[count:], strict=True) if verdict in UNDECIDED]
    unsupported = {"verdict": Verdict.UNSUPPORTED, "reason": SPLIT_OFF}
    split_off = {key: checking.ClaimAnswer(fingerprint=key, **unsupported) for key in undecided}
    return Passed(proposal, " ".join([after, *(part.text for part in rest)]), worst, split_off)


def _missing_words(before: str, after: str) -> str:
    """Return the longer words and the numbers of a statement that its correction does not have."""
    remaining = {word.casefold() for word in WORD.findall(after)}
    missing = [word for word in WORD.findall(before) if word.casefold() not in remaining]
    return ", ".join(dict.fromkeys(word for word in missing if len(word) > SHORT_WORD or word.isdecimal()))


def has_evidence(claim: checking.ExtractedClaim, material: Material) -> bool:
    """Return whether a passage of the run has nearly all words of a claim, and every figure and name of it."""
    language, question = material.entry.language, material.entry.query
    for key in (*claim.evidence_ids, *material.related(claim)):
        if key in material.passages:
            item, title, text = material.passages[key]
            quote, about = text[item.start : item.end], [part for part in (title, item.heading, question) if part]
            (share,) = shared_words(claim.text, [quote], language)
            if share >= EVIDENT_SHARE and not find_differences(claim.text, [quote], about, language):
                return True
    return False


class DraftText:
    """The sentences of a draft, by the claims that they make."""

    def __init__(self, draft: str) -> None:
        self.blocks = parse_draft(draft)
        self._spans = write(self.blocks).spans

    def sentences_of(self, claim: checking.ExtractedClaim) -> list[Sentence]:
        """Return the sentences of a claim."""
        return [one for one, (start, end) in self._spans.items() if claim.start <= start and end <= claim.end]

    def corrected(
        self, claim: checking.ExtractedClaim, proposal: checking.Proposal, registry: KnownAddresses
    ) -> tuple[tuple[Inline, ...], tuple[Inline, ...]]:
        """Return the new sentence of a claim and the rest that is split off, each with its citation.

        Both are empty for a removal. The lead word and the emphasis of the old sentence stay.
        """
        old = tuple(inline for one in self.sentences_of(claim) for inline in one.inlines)
        runs = [inline for inline in old if isinstance(inline, Run)]
        text, rest = (registry.strip(parse_plain_text(part)) for part in (proposal.text, proposal.rest))
        evidence_ids = tuple(proposal.evidence_ids)
        if proposal.action is CorrectionAction.CITE:
            return _cite_more(old, evidence_ids), ()
        if proposal.action is CorrectionAction.REMOVE or not text:
            return (), ()
        return _cite(_in_style_of(runs, text), evidence_ids), _cite([Run(rest)], evidence_ids) if rest else ()

    def apply(self, claims: Claims, proposals: Sequence[checking.Proposal], registry: KnownAddresses) -> Blocks:
        """Return the tree with these proposals applied, at most one per claim."""
        changed: dict[Sentence, Sentence] = {}
        for proposal in proposals:
            claim = claims[proposal.number]
            new, rest = self.corrected(claim, proposal, registry)
            inlines = (*new, Run(" "), *rest) if rest else new
            for sentence in self.sentences_of(claim):
                changed[sentence] = replace(sentence, inlines=inlines)
                inlines = ()
        # A sentence that shares the citation of one that changes gets it for itself.
        leaf_of = {sentence: number for number, leaf in enumerate(leaves(self.blocks)) for sentence in leaf}
        touched = {leaf_of[sentence] for sentence in changed}
        for claim in claims:
            for sentence in self.sentences_of(claim):
                shares = claim.evidence_ids and not claim.row and not sentence.marks
                if shares and sentence not in changed and leaf_of[sentence] in touched:
                    runs = [inline for inline in sentence.inlines if isinstance(inline, Run)]
                    changed[sentence] = replace(sentence, inlines=_cite(runs, tuple(claim.evidence_ids)))
        return change_sentences(self.blocks, lambda sentence: changed.get(sentence, sentence))


def is_cut(text: str, proposal: checking.Proposal) -> bool:
    """Return true if a split cuts a statement at one place and leaves its words as they are.

    Real models also offered parts taken out of the middle, whose two sentences read worse than the mark of one.
    """
    lead, whole, first, rest = (
        [word.casefold() for word in WORD.findall(part)]
        for part in (text.partition(": ")[0] if ": " in text else "", text, proposal.text, proposal.rest)
    )
    if lead and first[: len(lead)] != lead:  # the lead word of a list item stays by itself
        whole = whole[len(lead) :]
    seam = len(whole) - len(first) - len(rest)
    return 0 <= seam <= MAX_SEAM_WORDS and whole[: len(first)] == first and whole[len(whole) - len(rest) :] == rest


def _cite(runs: Sequence[Inline], evidence_ids: tuple[str, ...]) -> tuple[Inline, ...]:
    """Return a sentence with its citation before its final full stop."""
    *first, last = runs
    if not evidence_ids or not isinstance(last, Run):
        return tuple(runs)
    stem = last.text.rstrip().rstrip(".!?")
    end = last.text.rstrip()[len(stem) :]
    final = [replace(last, text=end)] if end else []
    return (*first, replace(last, text=stem.rstrip()), Run(" "), CitationMark(evidence_ids), *final)


def _cite_more(inlines: tuple[Inline, ...], evidence_ids: tuple[str, ...]) -> tuple[Inline, ...]:
    """Return a sentence whose last citation, or a new one, names these passages too."""
    marks = [inline for inline in inlines if isinstance(inline, CitationMark)]
    if not marks:
        return _cite(inlines, evidence_ids)
    known = {key for mark in marks for key in mark.evidence_ids}
    more = tuple(key for key in evidence_ids if key not in known)
    extended = replace(marks[-1], evidence_ids=(*marks[-1].evidence_ids, *more))
    place = max(index for index, inline in enumerate(inlines) if isinstance(inline, CitationMark))
    return (*inlines[:place], extended, *inlines[place + 1 :])


def _in_style_of(runs: Sequence[Run], text: str) -> list[Inline]:
    """Return a text with the lead word, the emphasis and the code of the runs of an old sentence, where it has them."""
    lead = runs[0] if runs and runs[0].bold and len(runs) > 1 else None
    if lead and not text.casefold().startswith(lead.text.rstrip(" .:").casefold()):
        text = f"{lead.text.strip()} {text}"
    styled, place = list[Inline](), 0
    for run in runs:
        start = text.find(run.text.strip(), place) if run.text.strip() and run != Run(run.text) else -1
        if run is lead and start < 0:
            start = 0 if text.casefold().startswith(run.text.strip().casefold()) else -1
        if start >= 0:
            end = start + len(run.text.strip())
            styled += [Run(text[place:start]), replace(run, text=text[start:end], link=None)]
            place = end
    return tidy([*styled, Run(text[place:])])


def to_plain_draft(markdown: str) -> str:
    """Return the draft in the form that is checked: rewritten from its tree, without lists of sources."""
    return write(without_source_lists(parse_draft(markdown))).text


def best_answers(answers: Sequence[checking.ClaimAnswer]) -> dict[str, checking.ClaimAnswer]:
    """Return the answer that counts for each claim: the first with a verdict, else the last."""
    known = {answer.fingerprint: answer for answer in answers}
    return known | {answer.fingerprint: answer for answer in reversed(answers) if is_judged(answer)}


def correct(
    draft: str, material: Material, tried: checking.CorrectedEntry, known: Answers
) -> tuple[Chosen, Material, ReportDraft, str]:
    """Apply the proposals that pass to a draft.

    Return the corrections, the material with the claims of the new draft, and that draft with its text, which is not
    stored yet.
    """
    claims = material.entry.claims
    chosen = choose_corrections(claims, tried.tried, known, material)
    changed = DraftText(draft).apply(claims, chosen.proposals, material.registry)
    # Parsed again, as neighbours may merge, such as two lists that lost the paragraph between them.
    described, text = describe_draft(ReportDraft(document=material.entry.draft), parse_draft(write(changed).text))
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN_TYPE, size=len(text))
    update = {"draft": stored, "claims": extract_claims(text, material)}
    return chosen, replace(material, entry=material.entry.model_copy(update=update)), described, text


# --- the activities --------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class VerifyingActivities:
    """The verification activities over the stores of this worker."""

    content: ContentStore
    sessions: SessionStore
    notebooks: Notebooks

    @activity.defn(name="extract_claims")
    async def extract_claims(self, request: messages.ExtractClaimsRequest) -> messages.ExtractedClaims:
        """Find the claims of the newest draft, judge them by rules, and store those that need a checker."""
        async with attempt(RECORDS):
            changed = await changed_state(self.sessions, self.notebooks, request.research_id, request.change)
            state = await self.notebooks.complete_state(ResearchState.model_validate(changed))
            if state.draft is None or state.resolved is None:
                raise InvalidCall("there is no draft whose claims could be found")
            draft = await asyncio.to_thread(to_plain_draft, await self.content.get_text(state.draft.document))
            stored = await self.content.put_text(draft, MARKDOWN_TYPE)
            texts = await load_texts(self.content, evidence_texts(state))
            entry = checking.ClaimsEntry(
                draft=stored,
                query=state.resolved.query,
                language=state.resolved.language,
                written_freely=writer_engine(state.engine_by_role) is not EngineKind.EXTRACTIVE,
                evidence=list(state.evidence.values()),
                sources=[
                    checking.CheckedSource(id=source.id, url=source.url, title=source.title, text=source.text)
                    for source in state.sources.values()
                    if source.text is not None
                ],
            )
            material = Material(entry, texts, state.resolved.engine is EngineKind.MODEL)
            judged = {answer.fingerprint for answer in await self._load_answers(request.answers) if is_judged(answer)}
            claims = await asyncio.to_thread(extract_claims, draft, material)
            stored_entry = await self.notebooks.write(entry.model_copy(update={"claims": claims}))
            return await self._result(stored_entry, claims, select_open(claims, material, judged))

    @activity.defn(name="apply_corrections")
    async def apply_corrections(self, request: messages.ApplyRequest) -> messages.ExtractedClaims:
        """Store the claims of every proposed sentence, and those of them that need a checker."""
        async with attempt(RECORDS):
            material = await self._load(request.claims_entry, by_model=request.by_model)
            read = await self.notebooks.read_all(request.proposals, checking.ProposalsEntry)
            proposals = [item for entry in read for item in entry.items]
            known = {answer.fingerprint for answer in await self._load_answers(request.answers)}
            doubtful = list[checking.DoubtfulClaim]()
            if request.doubtful_entry:
                doubtful = (await self.notebooks.read(request.doubtful_entry, checking.DoubtfulEntry)).items
            draft = await self.content.get_text(material.entry.draft)
            tried = await asyncio.to_thread(try_proposals, draft, proposals, doubtful, material)
            claims = [claim for proposal in tried for claim in proposal.claims]
            entry = checking.CorrectedEntry(before=request.claims_entry, tried=tried)
            return await self._result(await self.notebooks.write(entry), claims, select_open(claims, material, known))

    @activity.defn(name="finalize_verification")
    async def finalize_verification(
        self, request: messages.FinalizeVerificationRequest
    ) -> messages.FinalizedVerification:
        """Combine the verdicts, choose the corrections to accept, and name the doubtful claims."""
        async with attempt(RECORDS):
            known = best_answers(await self._load_answers(request.answers))
            entry, corrections, draft, undone = request.corrections_entry, list[checking.Correction](), None, 0
            if entry:
                corrections = (await self.notebooks.read(entry, checking.CorrectionsEntry)).items
            if not request.corrected_entry:
                material = await self._load(request.claims_entry, by_model=request.by_model)
            else:
                tried = await self.notebooks.read(request.corrected_entry, checking.CorrectedEntry)
                material = await self._load(tried.before, by_model=request.by_model)
                markdown = await self.content.get_text(material.entry.draft)
                chosen, corrected, described, text = await asyncio.to_thread(correct, markdown, material, tried, known)
                known, undone = known | chosen.answers, chosen.undone
                if chosen.corrections:
                    material, corrections = corrected, [*corrections, *chosen.corrections]
                    draft = await store_draft(self.content, described, text)
            claims = material.entry.claims
            verdicts = conclude(claims, known)
            doubtful = checking.DoubtfulEntry()
            if request.corrects:
                doubtful = await asyncio.to_thread(find_doubtful, claims, verdicts, material)
            claims_entry = await self.notebooks.write(material.entry)
            counts = Counter(correction.action.value for correction in corrections)
            judged = [
                CountedClaim(verdict.verdict, verdict.method, len(claim.evidence_ids), claim.section)
                for claim, verdict in zip(claims, verdicts, strict=True)
            ]
            return messages.FinalizedVerification(
                claims_entry="" if claims_entry == request.claims_entry else claims_entry,
                verdicts_entry=await self.notebooks.write(VerdictsEntry(items=verdicts)),
                corrections_entry=await self._store(checking.CorrectionsEntry(items=corrections)),
                summary=checking.VerificationSummary(
                    mode=request.mode,
                    not_reached=request.unreached,
                    correction_counts=dict(sorted(counts.items())),
                    **count_verdicts(judged, counts[CorrectionAction.REMOVE]),
                ),
                verdicts=[verdict.verdict for verdict in verdicts],
                draft=draft,
                doubtful_entry=await self._store(doubtful),
                undone=undone,
                sizes=[_size(claim) for claim in doubtful.items],
            )

    async def _result(
        self, entry: str, claims: list[checking.ExtractedClaim], asked: list[checking.AskedClaim]
    ) -> messages.ExtractedClaims:
        return messages.ExtractedClaims(
            claims_entry=entry,
            asked_entry=await self._store(checking.AskedEntry(items=asked)),
            sizes=[_size(claim) for claim in asked],
            claims=len(claims),
        )

    async def _store(self, entry: CompactModel) -> str:
        """Store an entry and return its hash; empty for an empty entry."""
        return await self.notebooks.write(entry) if entry != type(entry)() else ""

    async def _load(self, entry: str, *, by_model: bool) -> Material:
        """Load the material that stored claims are compared with."""
        claims = await self.notebooks.read(entry, checking.ClaimsEntry)
        texts = await load_texts(self.content, [source.text for source in claims.sources])
        return Material(claims, texts, by_model)

    async def _load_answers(self, entries: Sequence[str]) -> list[checking.ClaimAnswer]:
        read = await self.notebooks.read_all(entries, checking.AnswersEntry)
        return [answer for entry in read for answer in entry.items]


def _size(claim: CompactModel) -> int:
    return len(claim.model_dump_json().encode())
