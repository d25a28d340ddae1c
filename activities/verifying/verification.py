"""Verification of a draft: claims, verdicts and corrections, and the activities for them, which make no paid call.

A proposed sentence is judged like any sentence of a draft, and accepted only if all its claims pass. A wrong statement
without an accepted proposal is removed, even if it is the only one in its section. Results are entries of the notebook;
the workflow gets hashes and figures. Text is processed in a thread: that takes linear time, at most a second for 8 kB
of the worst Markdown, and involves no document parser.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

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
    parse_plain_text,
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

Claims = Sequence[checking.ExtractedClaim]
Answers = Mapping[str, checking.ClaimAnswer]
"""Answers of checkers by the fingerprint of the claim."""

MAX_PASSAGES: Final = 4
"""Passages shown to a checker for one claim."""
MAX_DOUBTFUL: Final = 20
"""Claims that a model may correct in one round."""
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)
NOT_REACHED: Final = "The check did not get to this sentence."
PASSAGES_SAY: Final = "The passages say: “{}”"
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
                fingerprint=claim_id(claim.words, claim.evidence_ids),
                importance=round(weight, 2),
                decided=_decide(claim, material),
                row=claim.quoted or claim.row,
            )
        )
    return extracted


def _decide(claim: ParsedClaim, material: Material) -> ClaimVerdict | None:
    """Return the verdict on a claim by rules; None if it needs a checker."""
    known = (material.passages[key] for key in claim.evidence_ids if key in material.passages)
    cited = [CitedPassage(text[item.start : item.end], item.heading, title) for item, title, text in known]
    judged = judge(claim.words, cited, material.registry, material.entry.language, quoted=claim.quoted)
    is_open = judged.method is CheckMethod.RULES and judged.verdict not in (Verdict.CONTRADICTED, Verdict.SUPPORTED)
    return None if is_open and material.by_model else judged.model_copy(update={"claim_id": claim.id})


def select_open(claims: Claims, material: Material, known: Collection[str]) -> list[checking.AskedClaim]:
    """Return the claims that need a checker, each once, most important first, without the `known` ones."""
    unchecked = {
        claim.fingerprint: claim
        for claim in sorted(claims, key=lambda claim: -claim.importance)
        if claim.decided is None and claim.fingerprint not in known
    }
    return [to_asked(claim, material) for claim in unchecked.values()]


def is_judged(answer: checking.ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def to_asked(claim: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """Return a claim in the form shown to checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=claim.fingerprint,
        text=claim.text,
        passages=show_passages(claim.evidence_ids[:MAX_PASSAGES], material),
    )


def show_passages(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """Return the passages with these ids and the text around them, where their texts are available."""
    return [show_passage(*material.passages[key]) for key in identities if key in material.passages]


def conclude(claims: Claims, answers: Answers) -> list[ClaimVerdict]:
    """Return the verdict on each claim: that of rules, else the checker's, else `UNVERIFIED`."""
    verdicts = []
    for claim in claims:
        answer = answers.get(claim.fingerprint)
        if claim.decided is not None:
            verdict = claim.decided
        elif answer is None:
            verdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
        else:
            method = CheckMethod.MODEL if is_judged(answer) else CheckMethod.NONE
            reason = answer.reason or (PASSAGES_SAY.format(answer.quote) if answer.quote else "")
            verdict = ClaimVerdict(claim_id="", verdict=answer.verdict, method=method, reason=reason)
        verdicts.append(verdict.model_copy(update={"claim_id": claim.id}))
    return verdicts


# --- corrections ----------------------------------------------------------------------------------------------------
def find_doubtful(claims: Claims, verdicts: Sequence[ClaimVerdict], material: Material) -> checking.DoubtfulEntry:
    """Return the claims to correct, most important first.

    Table rows and quoted passages are not corrected: no sentence can replace them.
    """
    chosen = [number for number, claim in enumerate(claims) if not claim.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, SCORES[verdicts[number].verdict], number))
    doubtful = []
    for number in chosen[:MAX_DOUBTFUL]:
        asked, item = to_asked(claims[number], material), verdicts[number]
        doubtful.append(checking.DoubtfulClaim(number=number, asked=asked, verdict=item.verdict, reason=item.reason))
    return checking.DoubtfulEntry(items=doubtful)


def try_proposals(proposals: Sequence[checking.Proposal], material: Material) -> list[checking.TriedProposal]:
    """Extract the claims of each proposed sentence; the first proposal for a claim counts."""
    tried: dict[int, checking.TriedProposal] = {}
    for proposal in proposals:
        inlines = _inlines_of(proposal, material.registry)
        if inlines and proposal.number not in tried:
            text = write([Block("paragraph", (Sentence(inlines),))]).text
            tried[proposal.number] = checking.TriedProposal(proposal=proposal, claims=extract_claims(text, material))
    return list(tried.values())


def choose_corrections(
    claims: Claims, verdicts: Sequence[ClaimVerdict], tried: Sequence[checking.TriedProposal], answers: Answers
) -> tuple[list[checking.Proposal], list[checking.Correction]]:
    """Return the proposals that pass and a removal of every other wrong statement, with a record of each.

    Both are in the order of the claims. A wrong statement is removed even if the corrector proposes nothing for it.
    """
    accepted: list[checking.Proposal] = []
    corrections: list[checking.Correction] = []
    tried_by_number = {item.proposal.number: item for item in tried}
    for number, (claim, judged) in enumerate(zip(claims, verdicts, strict=True)):
        item = tried_by_number.get(number)
        improved = _passing_verdict(item, judged.verdict, answers) if item else None
        if item and improved:
            proposal = item.proposal
        elif judged.verdict in WRONG:
            proposal = checking.Proposal(number=number, action=CorrectionAction.REMOVE, reason=judged.reason)
        else:
            continue
        accepted.append(proposal)
        corrections.append(
            checking.Correction(
                claim_id=claim.id,
                section=claim.section,
                action=proposal.action,
                before=claim.text,
                after=proposal.text if improved else "",
                reason=proposal.reason,
                verdict=improved or judged.verdict,
            )
        )
    return accepted, corrections


def _passing_verdict(tried: checking.TriedProposal, previous: Verdict, answers: Answers) -> Verdict | None:
    """Return the worst verdict on a proposal's text if it is good enough, else None."""
    worst = min((item.verdict for item in conclude(tried.claims, answers)), key=SCORES.__getitem__, default=None)
    if worst is None or SCORES[worst] <= SCORES[previous]:
        return None
    # A softened statement need only be better supported than before.
    enough = Verdict.PARTIAL if tried.proposal.action is CorrectionAction.SOFTEN else Verdict.SUPPORTED
    return worst if SCORES[worst] >= SCORES[enough] else None


def apply(draft: str, claims: Claims, proposals: Sequence[checking.Proposal], registry: KnownAddresses) -> Blocks:
    """Return the tree of a draft with these proposals applied, at most one per claim."""
    blocks = parse_draft(draft)
    spans = write(blocks).spans
    changed: dict[Sentence, Sentence] = {}
    for proposal in proposals:
        claim, inlines = claims[proposal.number], _inlines_of(proposal, registry)
        for sentence, (start, end) in spans.items():
            if claim.start <= start and end <= claim.end:
                changed[sentence] = replace(sentence, inlines=inlines)
                inlines = ()
    return change_sentences(blocks, lambda sentence: changed.get(sentence, sentence))


def _inlines_of(proposal: checking.Proposal, registry: KnownAddresses) -> tuple[Inline, ...]:
    """Return the text of a proposal with its citation; empty for a removal."""
    text, evidence_ids = registry.strip(parse_plain_text(proposal.text)), tuple(proposal.evidence_ids)
    if proposal.action is CorrectionAction.REMOVE or not text:
        return ()
    return (Run(text), Run(" "), CitationMark(evidence_ids)) if evidence_ids else (Run(text),)


def to_plain_draft(markdown: str) -> str:
    """Return the draft in the form that is checked: rewritten from its tree, without lists of sources."""
    return write(without_source_lists(parse_draft(markdown))).text


def best_answers(answers: Sequence[checking.ClaimAnswer]) -> dict[str, checking.ClaimAnswer]:
    """Return the answer that counts for each claim: the first with a verdict, else the last."""
    known = {answer.fingerprint: answer for answer in answers}
    return known | {answer.fingerprint: answer for answer in reversed(answers) if is_judged(answer)}


def correct(
    draft: str, material: Material, tried: checking.CorrectedEntry, known: Answers
) -> tuple[list[checking.Correction], Material, ReportDraft, str]:
    """Apply the proposals that pass to a draft.

    Return the corrections, the material with the claims of the new draft, and that draft with its text, which is not
    stored yet.
    """
    claims = material.entry.claims
    accepted, corrections = choose_corrections(claims, conclude(claims, known), tried.tried, known)
    changed = apply(draft, claims, accepted, material.registry)
    # Parsed again, as neighbours may merge, such as two lists that lost the paragraph between them.
    described, text = describe_draft(ReportDraft(document=material.entry.draft), parse_draft(write(changed).text))
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN_TYPE, size=len(text))
    update = {"draft": stored, "claims": extract_claims(text, material)}
    return corrections, replace(material, entry=material.entry.model_copy(update=update)), described, text


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
            tried = await asyncio.to_thread(try_proposals, proposals, material)
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
            entry, corrections, draft = request.corrections_entry, list[checking.Correction](), None
            if entry:
                corrections = (await self.notebooks.read(entry, checking.CorrectionsEntry)).items
            if not request.corrected_entry:
                material = await self._load(request.claims_entry, by_model=request.by_model)
            else:
                tried = await self.notebooks.read(request.corrected_entry, checking.CorrectedEntry)
                material = await self._load(tried.before, by_model=request.by_model)
                markdown = await self.content.get_text(material.entry.draft)
                applied, corrected, described, text = await asyncio.to_thread(correct, markdown, material, tried, known)
                if applied:
                    material, corrections = corrected, [*corrections, *applied]
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
