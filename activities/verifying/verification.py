"""Verification of a draft: the activities for its claims, verdicts and corrections, which make no paid call.

Results are entries of the notebook; the workflow gets hashes and figures. Text is processed in a thread: that takes
linear time, at most a second for 8 kB of the worst Markdown, and involves no document parser.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.claims import count_verdicts, split_off_by
from activities.reporting.drafts import MARKDOWN_TYPE, join_sections, parse_draft, store_draft
from activities.reporting.render import evidence_texts
from activities.reporting.tree import write
from activities.roles.grounding import load_texts
from activities.verifying.adoption import adopt_first, adopt_second
from activities.verifying.corrections import (
    Chosen,
    can_be_mended,
    cite_further,
    correct,
    find_doubtful,
    seek_for_rests,
    to_plain_draft,
    try_proposals,
)
from activities.verifying.further_passages import with_elsewhere
from activities.verifying.material import Answers, Material, conclude, draw_controls, extract_claims, select_open
from activities.verifying.second_look import ask_again
from contracts import activities, checking, messages
from contracts.base import CompactModel
from contracts.evidence import DocumentRef, ReportDraft, VerdictsEntry
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, SessionStore
from providers.storage.stored_notebooks import Notebooks


# --- the activities --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Changed:
    """The corrections of a draft, and the draft with them, which is not stored yet."""

    chosen: Chosen
    material: Material
    """With the claims of the draft as it is now."""
    described: ReportDraft | None = None
    text: str = ""
    answers: list[checking.ClaimAnswer] = field(default_factory=list)
    """Those of the check about the claims in their new form."""


@dataclass(frozen=True, eq=False)
class VerifyingActivities:
    """The verification activities over the stores of this worker."""

    content: ContentStore
    sessions: SessionStore
    notebooks: Notebooks

    @activity.defn(name=activities.EXTRACT_CLAIMS.name)
    async def extract_claims(self, request: messages.ExtractClaimsRequest) -> messages.ExtractedClaims:
        """Find the claims of the newest draft, judge them by rules, and store those that need a checker."""
        async with attempt(RECORDS):
            changed = await changed_state(self.sessions, self.notebooks, request.research_id, request.change)
            state = await self.notebooks.complete_state(ResearchState.model_validate(changed))
            if state.work.resolved is None or not (state.evidence.draft or request.sections):
                raise InvalidCall("there is no draft whose claims could be found")
            draft = await self._load_draft(request.sections, request.headings, state.evidence.draft)
            stored = await self.content.put_text(draft, MARKDOWN_TYPE)
            texts = await load_texts(self.content, evidence_texts(state))
            entry = checking.ClaimsEntry(
                draft=stored,
                query=state.work.resolved.query,
                language=state.work.resolved.language,
                written_freely=writer_engine(state.accounts.engine_by_role) is not EngineKind.EXTRACTIVE,
                evidence=list(state.evidence.passages.values()),
                sources=[
                    checking.CheckedSource(
                        id=source.id,
                        url=source.url,
                        title=source.title,
                        text=source.text,
                        abstract_only=source.abstract_only,
                    )
                    for source in state.evidence.sources.values()
                    if source.text is not None
                ],
            )
            material = Material(entry, texts, state.work.resolved.engine is EngineKind.MODEL)
            judged = {
                answer.fingerprint for answer in await self._load_answers(request.answers) if checking.is_judged(answer)
            }
            material = await asyncio.to_thread(_with_claims, draft, material)
            claims = material.entry.claims
            stored_entry = await self.notebooks.write(material.entry)
            return await self._result(stored_entry, claims, select_open(claims, material, judged), material)

    @activity.defn(name=activities.APPLY_CORRECTIONS.name)
    async def apply_corrections(self, request: messages.ApplyRequest) -> messages.ExtractedClaims:
        """Store the claims of every proposed sentence, and those of them that need a checker."""
        async with attempt(RECORDS):
            material = await self._load(request.claims_entry, by_model=request.by_model)
            read = await self.notebooks.read_all(request.proposals, checking.ProposalsEntry)
            proposals = [item for entry in read for item in entry.items]
            known = {answer.fingerprint for answer in await self._load_answers(request.answers)}
            doubtful = list[checking.AskedClaim]()
            if request.doubtful_entry:
                doubtful = (await self.notebooks.read(request.doubtful_entry, checking.AskedEntry)).items
            draft = await self.content.get_text(material.entry.draft)
            material = material.with_found(item for claim in doubtful for item in claim.found)
            tried = await asyncio.to_thread(try_proposals, draft, proposals, material)
            tried, found = await asyncio.to_thread(seek_for_rests, tried, material)
            material = material.with_found(found)
            claims = [claim for proposal in tried for claim in proposal.claims]
            actions = {proposal.number: proposal.action for proposal in reversed(proposals)}
            entry = checking.CorrectedEntry(
                before=request.claims_entry,
                tried=tried,
                actions=actions,
                found=list(material.found_by_id.values()),
            )
            stored_entry = await self.notebooks.write(entry)
            return await self._result(stored_entry, claims, select_open(claims, material, known), material)

    @activity.defn(name=activities.FINALIZE_VERIFICATION.name)
    async def finalize_verification(
        self, request: messages.FinalizeVerificationRequest
    ) -> messages.FinalizedVerification:
        """Combine the verdicts, choose the corrections to accept, and name the doubtful claims."""
        async with attempt(RECORDS):
            known = checking.best_answers(await self._load_answers(request.answers))
            entry = request.corrections_entry
            corrections: list[checking.Correction] = []
            if entry:
                corrections = (await self.notebooks.read(entry, checking.CorrectionsEntry)).items
            changed = await self._changed(request, known)
            chosen = changed.chosen
            material = changed.material
            known = known | chosen.answers
            corrections = [*corrections, *chosen.corrections]
            draft = None
            if chosen.corrections and changed.described:
                draft = await store_draft(self.content, changed.described, changed.text)
            claims = material.entry.claims
            verdicts = conclude(claims, known)
            doubtful = checking.AskedEntry()
            second = checking.AskedEntry()
            if request.corrects:
                doubtful = await asyncio.to_thread(find_doubtful, claims, verdicts, material, known)
            open_ones = [item for item in doubtful.items if item.fault is not checking.Fault.CONDITION]
            if open_ones and material.by_model and not request.looked_entry:
                second = await asyncio.to_thread(ask_again, open_ones, material)
                controls = await asyncio.to_thread(draw_controls, claims, material, second, len(second.items))
                second = second.with_fields(controls=controls)
            if material.by_model:
                mendable = [item for item in doubtful.items if can_be_mended(item, claims[item.number])]
                doubtful = checking.AskedEntry(items=mendable)
            claims_entry = await self.notebooks.write(material.entry)
            counts = Counter(correction.action.value for correction in corrections)
            parts = split_off_by(corrections)
            judged = list(zip(claims, verdicts, strict=True))
            summary = checking.VerificationSummary(
                mode=request.mode, not_reached=request.unreached, correction_counts=dict(sorted(counts.items()))
            )
            return messages.FinalizedVerification(
                claims_entry="" if claims_entry == request.claims_entry else claims_entry,
                verdicts_entry=await self.notebooks.write(VerdictsEntry(items=verdicts)),
                corrections_entry=await self._store(checking.CorrectionsEntry(items=corrections)),
                summary=count_verdicts(summary, judged, parts),
                verdicts=[verdict.verdict for verdict in verdicts],
                draft=draft,
                evidence=chosen.evidence if draft else [],
                doubtful_entry=await self._store(doubtful),
                undone=chosen.undone,
                sizes=[_size(claim) for claim in doubtful.items],
                second_entry=await self._store(second) if second.items else "",
                second_claims=len(second.items),
                second_bytes=sum(map(_size, (*second.items, *second.sections))),
                answers_entry=await self._store(checking.AnswersEntry(items=changed.answers)),
            )

    async def _changed(self, request: messages.FinalizeVerificationRequest, known: Answers) -> Changed:
        """Return what the citations that a check found, or the proposals of correctors, change."""
        if request.corrected_entry:
            tried = await self.notebooks.read(request.corrected_entry, checking.CorrectedEntry)
            material = (await self._load(tried.before, by_model=request.by_model)).with_found(tried.found)
            draft = await self.content.get_text(material.entry.draft)
            chosen, corrected, described, text = await asyncio.to_thread(correct, draft, material, tried, known)
            return Changed(chosen, corrected if chosen.corrections else material, described, text)
        material = await self._load(request.claims_entry, by_model=request.by_model)
        adopt = adopt_second if request.looked_entry else adopt_first
        adopted = await asyncio.to_thread(adopt, material.entry.claims, known, material)
        answers = list(adopted.answers.values())
        if not answers:
            return Changed(Chosen([], [], {}), material)
        draft = await self.content.get_text(material.entry.draft)
        chosen, cited, described, text = await asyncio.to_thread(cite_further, draft, material, adopted)
        material = (cited if chosen.corrections else material).with_found(adopted.evidence)
        return Changed(chosen, material, described, text, answers)

    async def _load_draft(
        self, sections: Sequence[DocumentRef], headings: Sequence[str], draft: ReportDraft | None
    ) -> str:
        """Load the sections as one text, or else the draft, in the form that is checked."""
        documents = sections or ([draft.document] if draft else [])
        texts = await asyncio.gather(*map(self.content.get_text, documents))
        if not sections:
            return await asyncio.to_thread(to_plain_draft, texts[0])

        def join() -> str:
            return to_plain_draft(write(join_sections((), [parse_draft(text) for text in texts], headings)).text)

        return await asyncio.to_thread(join)

    async def _result(
        self,
        stored: str,
        claims: list[checking.ExtractedClaim],
        asked: list[checking.AskedClaim],
        material: Material,
    ) -> messages.ExtractedClaims:
        entry = checking.AskedEntry(items=asked)
        if asked:
            controls = await asyncio.to_thread(draw_controls, material.entry.claims or claims, material, entry)
            entry = entry.with_fields(controls=controls)
        return messages.ExtractedClaims(
            claims_entry=stored,
            asked_entry=await self._store(entry),
            sizes=[_size(claim) for claim in asked],
            claims=len(claims),
        )

    async def _store(self, entry: CompactModel) -> str:
        """Store an entry and return its hash; empty for an empty entry."""
        if entry == type(entry)():
            return ""
        return await self.notebooks.write(entry)

    async def _load(self, entry: str, *, by_model: bool) -> Material:
        """Load the material that stored claims are compared with."""
        claims = await self.notebooks.read(entry, checking.ClaimsEntry)
        texts = await load_texts(self.content, [source.text for source in claims.sources])
        return Material(claims, texts, by_model)

    async def _load_answers(self, entries: Sequence[str]) -> list[checking.ClaimAnswer]:
        read = await self.notebooks.read_all(entries, checking.AnswersEntry)
        return [answer for entry in read for answer in entry.items]


def _with_claims(draft: str, material: Material) -> Material:
    """Return the material with the claims of a draft, and with what their checkers are shown of the rest of it."""
    material = replace(material, entry=material.entry.with_fields(claims=extract_claims(draft, material)))
    if not material.by_model:
        return material
    claims = with_elsewhere(material.entry.claims, material)
    return replace(material, entry=material.entry.with_fields(claims=claims))


def _size(claim: CompactModel) -> int:
    return len(claim.compact_json().encode())
