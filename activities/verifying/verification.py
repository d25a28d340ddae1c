"""The activities of a verification that make no paid call: extract claims, finalize a check, apply corrections.

Results are entries of the notebook; the workflow gets hashes and figures. All work on texts is done in a thread: it is
linear in their length, at most a second for 8 kB of the worst Markdown, and no parser of documents takes part.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.claims import Tallied, count_verdicts
from activities.reporting.drafts import describe_draft, parse_draft, store_draft, without_source_lists
from activities.reporting.markdown import write
from activities.reporting.render import evidence_texts
from activities.roles.grounding import load_texts
from activities.verifying.claims import (
    Material,
    apply,
    ask,
    choose,
    conclude,
    extract_claims,
    find_doubtful,
    is_judged,
    try_proposals,
)
from contracts import checking, messages
from contracts.addresses import digest
from contracts.base import CompactModel
from contracts.evidence import DocumentRef, ReportDraft, VerdictsEntry
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, SessionStore
from providers.storage.stored_notebooks import Notebooks

MARKDOWN: Final = "text/markdown"


@dataclass(frozen=True, eq=False)
class VerifyingActivities:
    """Made with the stores."""

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
            stored = await self.content.put_text(draft, MARKDOWN)
            texts = await load_texts(self.content, evidence_texts(state))
            material = Material(_claims_entry(state, stored), texts, state.resolved.engine is EngineKind.MODEL)
            judged = {answer.fingerprint for answer in await self._answers(request.answers) if is_judged(answer)}
            claims = await asyncio.to_thread(extract_claims, draft, material)
            entry = await self.notebooks.write(material.entry.model_copy(update={"claims": claims}))
            return await self._extracted(entry, claims, ask(claims, material, judged))

    @activity.defn(name="apply_corrections")
    async def apply_corrections(self, request: messages.ApplyRequest) -> messages.ExtractedClaims:
        """Store the claims of what every proposal would write, and those of them that need a checker."""
        async with attempt(RECORDS):
            _, material = await self._load(request.claims_entry, by_model=request.by_model)
            read = await self.notebooks.read_all(request.proposals, checking.ProposalsEntry)
            proposals = [one for each in read for one in each.proposals]
            known = {answer.fingerprint for answer in await self._answers(request.answers)}
            tried = await asyncio.to_thread(try_proposals, proposals, material)
            claims = [claim for each in tried for claim in each.claims]
            entry = checking.CorrectedEntry(before=request.claims_entry, tried=tried)
            return await self._extracted(await self.notebooks.write(entry), claims, ask(claims, material, known))

    @activity.defn(name="finalize_verification")
    async def finalize_verification(
        self, request: messages.FinalizeVerificationRequest
    ) -> messages.FinalizedVerification:
        """Combine the verdicts, choose the corrections to accept, and name the doubtful claims."""
        async with attempt(RECORDS):
            known = best_answers(await self._answers(request.answers))
            tried = checking.CorrectedEntry(before=request.claims_entry)
            if request.corrected_entry:
                tried = await self.notebooks.read(request.corrected_entry, checking.CorrectedEntry)
            written, material = await self._load(tried.before, by_model=request.by_model)
            corrections, draft = list[checking.Correction](), None
            if entry := request.corrections_entry:
                corrections = (await self.notebooks.read(entry, checking.CorrectionsEntry)).corrections
            if request.corrected_entry:
                made, corrected, described, text = await asyncio.to_thread(correct, written, material, tried, known)
                if made:
                    material, corrections = corrected, [*corrections, *made]
                    draft = await store_draft(self.content, described, text)
            claims = material.entry.claims
            verdicts = conclude(claims, known)
            doubtful = checking.DoubtfulEntry()
            if request.corrects:
                doubtful = await asyncio.to_thread(find_doubtful, claims, verdicts, material)
            claims_entry = await self.notebooks.write(material.entry)
            counts = Counter(one.action.value for one in corrections)
            judged = [
                Tallied(given.verdict, given.method, len(each.evidence_ids), each.section)
                for each, given in zip(claims, verdicts, strict=True)
            ]
            return messages.FinalizedVerification(
                claims_entry="" if claims_entry == request.claims_entry else claims_entry,
                verdicts_entry=await self.notebooks.write(VerdictsEntry(verdicts=verdicts)),
                corrections_entry=await self._written(checking.CorrectionsEntry(corrections=corrections)),
                summary=checking.VerificationSummary(
                    mode=request.mode,
                    not_reached=request.unreached,
                    correction_counts=dict(sorted(counts.items())),
                    **count_verdicts(judged, counts[checking.CorrectionAction.REMOVE]),
                ),
                verdicts=[one.verdict for one in verdicts],
                draft=draft,
                doubtful_entry=await self._written(doubtful),
                sizes=[_size(claim) for claim in doubtful.claims],
            )

    async def _extracted(
        self, entry: str, claims: list[checking.ExtractedClaim], asked: list[checking.AskedClaim]
    ) -> messages.ExtractedClaims:
        return messages.ExtractedClaims(
            claims_entry=entry,
            asked_entry=await self._written(checking.AskedEntry(claims=asked)),
            sizes=[_size(claim) for claim in asked],
            claims=len(claims),
        )

    async def _written(self, entry: CompactModel) -> str:
        """Hash of a stored entry; empty for an empty one."""
        return await self.notebooks.write(entry) if entry != type(entry)() else ""

    async def _load(self, entry: str, *, by_model: bool) -> tuple[str, Material]:
        """The draft of stored claims, and the material for their comparison."""
        claims = await self.notebooks.read(entry, checking.ClaimsEntry)
        texts = await load_texts(self.content, [source.text for source in claims.sources])
        return await self.content.get_text(claims.draft), Material(claims, texts, by_model)

    async def _answers(self, entries: Sequence[str]) -> list[checking.ClaimAnswer]:
        read = await self.notebooks.read_all(entries, checking.AnswersEntry)
        return [answer for each in read for answer in each.answers]


def _size(claim: CompactModel) -> int:
    return len(claim.model_dump_json().encode())


def _claims_entry(state: ResearchState, draft: DocumentRef) -> checking.ClaimsEntry:
    """The passages of a run and every text that was read, with which its claims are compared."""
    resolved = state.resolution
    return checking.ClaimsEntry(
        draft=draft,
        query=resolved.query,
        language=resolved.language,
        written_freely=writer_engine(state.engine_by_role) is not EngineKind.EXTRACTIVE,
        evidence=list(state.evidence.values()),
        sources=[
            checking.CheckedSource(id=source.id, url=source.url, title=source.title, text=source.text)
            for source in state.sources.values()
            if source.text is not None
        ],
    )


# --- work on texts, pure ----------------------------------------------------------------------------------------------
def to_plain_draft(markdown: str) -> str:
    """The draft in the form that is checked: written again from its tree, without lists of sources."""
    return write(without_source_lists(parse_draft(markdown))).text


def best_answers(answers: Sequence[checking.ClaimAnswer]) -> dict[str, checking.ClaimAnswer]:
    """Return the answer that counts for each claim: the first one that judges it, else the last one."""
    known = {answer.fingerprint: answer for answer in answers}
    return known | {answer.fingerprint: answer for answer in reversed(answers) if is_judged(answer)}


def correct(
    draft: str, material: Material, tried: checking.CorrectedEntry, known: Mapping[str, checking.ClaimAnswer]
) -> tuple[list[checking.Correction], Material, ReportDraft, str]:
    """Put the proposals that pass into a draft.

    Returns what was corrected, the material with the claims of the new draft, and that draft with its text, which is
    yet to be stored.
    """
    claims = material.entry.claims
    accepted, corrections = choose(claims, conclude(claims, known), tried.tried, known)
    text = apply(draft, claims, accepted, material.registry)
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN, size=len(text))
    described, text = describe_draft(ReportDraft(document=stored), parse_draft(text))
    update = {"draft": stored, "claims": extract_claims(text, material)}
    return corrections, replace(material, entry=material.entry.model_copy(update=update)), described, text
