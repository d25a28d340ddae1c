"""The activities of a verification that make no paid call: weigh a draft, conclude a check, apply corrections.

Their work on texts is done in killable processes. What they find out is stored; the workflow gets hashes and figures.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel
from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.citations import cited_evidence
from activities.reporting.drafts import describe_draft, parse_draft, store_draft, without_source_lists
from activities.reporting.markdown import write
from activities.reporting.render import evidence_texts
from activities.verifying.claims import Material, ask, conclude, is_judged, score, summarize, weigh
from activities.verifying.correction import apply, choose, find_doubtful, keeps_outline, queries_for
from contracts.addresses import digest
from contracts.base import CompactModel
from contracts.checking import (
    AnswersEntry,
    AskedClaim,
    AskedEntry,
    CheckedSource,
    ClaimAnswer,
    ClaimsEntry,
    CorrectedEntry,
    Correction,
    CorrectionAction,
    CorrectionsEntry,
    DoubtfulEntry,
    ProposalsEntry,
    write_verdicts,
)
from contracts.evidence import ClaimVerdict, DocumentRef, PassagePlace, ReportDraft, VerdictsEntry
from contracts.messages import (
    ApplyRequest,
    ExtractClaimsRequest,
    ExtractedClaims,
    FinalizedVerification,
    FinalizeVerificationRequest,
)
from contracts.notebooks import AnalysisEntry
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, IsolatedCalls, Notebooks, SessionStore

M = TypeVar("M", bound=BaseModel)

MARKDOWN: Final = "text/markdown"
PARALLEL_LOADS: Final = 8
WEIGH: Final = f"{__name__}:weigh_in_subprocess"
CONCLUDE: Final = f"{__name__}:conclude_in_subprocess"
APPLY: Final = f"{__name__}:apply_in_subprocess"


# --- what is done in child processes ----------------------------------------------------------------------------------
def weigh_in_subprocess(
    packed: str, draft: str, texts: Mapping[str, str], answers: Sequence[ClaimAnswer], by_model: bool
) -> tuple[str, str]:
    """The `ClaimsEntry` of a draft without its claims made whole, and the `AskedEntry`, both as JSON."""
    material = Material(ClaimsEntry.model_validate_json(packed), texts, by_model)
    entry = material.entry.model_copy(update={"claims": weigh(draft, material)})
    asked = ask(entry.claims, material, {answer.fingerprint for answer in answers if is_judged(answer)})
    return entry.model_dump_json(), AskedEntry(claims=asked).model_dump_json()


class Conclusion(CompactModel):
    """What a conclusion is made of, on its way out of a child process."""

    claims: ClaimsEntry
    text: str = ""
    """The corrected draft, if any correction stands."""
    verdicts: list[ClaimVerdict] = []
    corrections: list[Correction] = []
    doubtful: DoubtfulEntry = DoubtfulEntry()


def conclude_in_subprocess(
    packed: str,
    draft: str,
    texts: Mapping[str, str],
    answers: Sequence[ClaimAnswer],
    by_model: bool,
    corrects: bool,
    corrected: str,
    before: Sequence[ClaimVerdict],
) -> str:
    """A `Conclusion` as JSON: the verdicts on a draft; with `corrected`, an entry as JSON, on the better of two."""
    entry, known = ClaimsEntry.model_validate_json(packed), _by_fingerprint(answers)
    found = Conclusion(claims=entry, verdicts=list(before) if corrected else conclude(entry.claims, known))
    if corrected:
        found = _choose(found, draft, texts, known, by_model, CorrectedEntry.model_validate_json(corrected))
    if corrects:
        material = Material(found.claims, texts, by_model)
        doubtful = find_doubtful(found.claims.claims, found.verdicts, material)
        found = found.model_copy(update={"doubtful": doubtful})
    return found.model_dump_json()


def _choose(
    found: Conclusion,
    draft: str,
    texts: Mapping[str, str],
    known: Mapping[str, ClaimAnswer],
    by_model: bool,
    tried: CorrectedEntry,
) -> Conclusion:
    """With the corrections that stand, unless the draft is worth less with them."""
    claims, after = found.claims.claims, tried.after.claims
    choice = choose(claims, found.verdicts, tried.placed, after, conclude(after, known), tried.numbers)
    undone = [one.model_copy(update={"action": CorrectionAction.KEEP, "after": ""}) for one in choice.corrections]
    if not choice.accepted:
        return found.model_copy(update={"corrections": choice.corrections})
    material = Material(tried.after, texts, by_model)
    text, _ = apply(draft, claims, choice.accepted, material.registry())
    new = weigh(text, material)
    verdicts = conclude(new, known)
    if not keeps_outline(draft, text) or score(verdicts) < score(found.verdicts):
        return found.model_copy(update={"corrections": undone})
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN, size=len(text))
    entry = tried.after.model_copy(update={"draft": stored, "claims": new})
    return Conclusion(claims=entry, text=text, verdicts=verdicts, corrections=choice.corrections)


def apply_in_subprocess(
    packed: str,
    draft: str,
    texts: Mapping[str, str],
    doubtful: DoubtfulEntry,
    proposals: Sequence[ProposalsEntry],
    answers: Sequence[ClaimAnswer],
    by_model: bool,
) -> tuple[str, str]:
    """The `CorrectedEntry` of the trial draft, which is made again if it wins, and the `AskedEntry`, both as JSON."""
    entry = ClaimsEntry.model_validate_json(packed)
    known = {item.id for item in entry.evidence}
    fresh = [item for item in doubtful.evidence if item.id not in known]
    material = Material(entry.model_copy(update={"evidence": [*entry.evidence, *fresh]}), texts, by_model)
    numbers = {one.number for one in doubtful.claims}
    proposed = [one for part in proposals for one in part.proposals if one.number in numbers]
    text, placed = apply(draft, entry.claims, proposed, material.registry())
    trial = DocumentRef(hash=digest(text), media_type=MARKDOWN, size=len(text))
    after = material.entry.model_copy(update={"draft": trial, "claims": weigh(text, material)})
    # What the checker could not judge a moment ago is not asked again: only what is new.
    asked = ask(after.claims, material, {answer.fingerprint for answer in answers})
    corrected = CorrectedEntry(
        before="", verdicts="", after=after, placed=placed, numbers=sorted(numbers), evidence=fresh
    )
    return corrected.model_dump_json(), AskedEntry(claims=asked).model_dump_json()


def _by_fingerprint(answers: Sequence[ClaimAnswer]) -> dict[str, ClaimAnswer]:
    """The answer to each claim; one that says something before one that does not."""
    known: dict[str, ClaimAnswer] = {}
    for answer in answers:
        if not is_judged(known.get(answer.fingerprint)):
            known[answer.fingerprint] = answer
    return known


def _size(claim: AskedClaim | CompactModel) -> int:
    return len(claim.model_dump_json().encode())


# --- the activities ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Judged:
    """A draft as its claims were found, with its text and the stored texts behind it."""

    entry: ClaimsEntry
    draft: str
    texts: dict[str, str]


class VerifyingActivities:
    """Made with the stores and killable processes."""

    def __init__(
        self, content: ContentStore, isolated: IsolatedCalls, sessions: SessionStore, notebooks: Notebooks
    ) -> None:
        self._content = content
        self._isolated = isolated
        self._sessions = sessions
        self._notebooks = notebooks

    @activity.defn(name="extract_claims")
    async def extract_claims(self, request: ExtractClaimsRequest) -> ExtractedClaims:
        """Find the claims of the newest draft, judge what rules can, and store what a checker is to be asked."""
        async with attempt(RECORDS):
            changed = await changed_state(self._sessions, self._notebooks, request.research_id, request.change)
            state = await self._notebooks.complete_state(ResearchState.model_validate(changed))
            if state.draft is None or state.resolved is None:
                raise InvalidCall("there is no draft whose claims could be found")
            draft = write(without_source_lists(parse_draft(await self._content.get_text(state.draft.document)))).text
            stored = await self._content.put_text(draft, MARKDOWN)
            texts = await self._load(evidence_texts(state))
            packed, asked = await self._isolated.call(
                WEIGH,
                _claims_entry(state, stored).model_dump_json(),
                draft,
                texts,
                await self._answers(request.answers),
                state.resolved.engine is EngineKind.MODEL,
            )
            entry = await self._store(packed, ClaimsEntry)
            return await self._weighed(entry, len(ClaimsEntry.model_validate_json(packed).claims), asked)

    @activity.defn(name="finalize_verification")
    async def finalize_verification(self, request: FinalizeVerificationRequest) -> FinalizedVerification:
        """Put the verdicts together; choose which corrections stand; look for passages for what is doubtful."""
        async with attempt(RECORDS):
            tried = None
            before: list[ClaimVerdict] = []
            if request.corrected_entry:
                tried = await self._notebooks.read(request.corrected_entry, CorrectedEntry)
                before = (await self._notebooks.read(tried.verdicts, VerdictsEntry)).verdicts
            judged = await self._read(tried.before if tried else request.claims_entry)
            packed = await self._isolated.call(
                CONCLUDE,
                judged.entry.model_dump_json(),
                judged.draft,
                judged.texts,
                await self._answers(request.answers),
                request.by_model,
                request.corrects,
                tried.model_dump_json() if tried else "",
                before,
            )
            return await self._concluded(request, tried, Conclusion.model_validate_json(packed))

    @activity.defn(name="apply_corrections")
    async def apply_corrections(self, request: ApplyRequest) -> ExtractedClaims:
        """Put every proposal into the draft and find out what a checker is to be asked of it."""
        async with attempt(RECORDS):
            judged = await self._read(request.claims_entry)
            packed, asked = await self._isolated.call(
                APPLY,
                judged.entry.model_dump_json(),
                judged.draft,
                judged.texts,
                await self._notebooks.read(request.doubtful_entry, DoubtfulEntry),
                [await self._notebooks.read(entry, ProposalsEntry) for entry in request.proposals],
                await self._answers(request.answers),
                request.by_model,
            )
            corrected = CorrectedEntry.model_validate_json(packed).model_copy(
                update={"before": request.claims_entry, "verdicts": request.verdicts_entry}
            )
            entry = await self._notebooks.write(corrected)
            return await self._weighed(entry, len(corrected.after.claims), asked)

    async def _concluded(
        self, request: FinalizeVerificationRequest, tried: CorrectedEntry | None, found: Conclusion
    ) -> FinalizedVerification:
        entry = found.claims
        draft = await self._store_draft(found.text, entry.draft) if found.text else None
        kept = (
            (await self._notebooks.read(request.corrections_entry, CorrectionsEntry)).corrections
            if request.corrections_entry
            else []
        )
        corrections = [*kept, *found.corrections]
        cited = set(cited_evidence(parse_draft(found.text)))
        fresh = [item for item in tried.evidence if item.id in cited] if tried else []
        summary = summarize(
            entry.claims,
            found.verdicts,
            corrections,
            mode=request.mode,
            strict=request.strict,
            not_reached=request.unreached,
        )
        standing = await self._notebooks.write(entry)
        return FinalizedVerification(
            claims_entry="" if standing == request.claims_entry else standing,
            verdicts_entry=await self._notebooks.write(
                VerdictsEntry(draft_hash=entry.draft.hash, verdicts=found.verdicts)
            ),
            corrections_entry=await self._notebooks.write(CorrectionsEntry(corrections=corrections))
            if corrections
            else "",
            summary=summary,
            verdicts=write_verdicts(one.verdict for one in found.verdicts),
            draft=draft,
            evidence_entry=await self._notebooks.write(AnalysisEntry(evidence=fresh)) if fresh else "",
            evidence=[PassagePlace(source_id=item.source_id, start=item.start, end=item.end) for item in fresh],
            doubtful_entry=await self._notebooks.write(found.doubtful) if found.doubtful.claims else "",
            sizes=[_size(claim) for claim in found.doubtful.claims if not claim.row],
            queries=queries_for(found.doubtful.claims),
        )

    async def _store_draft(self, text: str, document: DocumentRef) -> ReportDraft:
        """What is known of a draft from its text alone; stored as a whole and by sections."""
        draft, parts = describe_draft(ReportDraft(document=document), parse_draft(text))
        return await store_draft(self._content, draft, parts)

    async def _weighed(self, entry: str, claims: int, asked: str) -> ExtractedClaims:
        waiting = AskedEntry.model_validate_json(asked)
        stored = await self._notebooks.write(waiting) if waiting.claims else ""
        return ExtractedClaims(
            claims_entry=entry, asked_entry=stored, sizes=[_size(claim) for claim in waiting.claims], claims=claims
        )

    async def _store(self, packed: str, kind: type[M]) -> str:
        return await self._notebooks.write(kind.model_validate_json(packed))

    async def _read(self, entry: str) -> _Judged:
        claims = await self._notebooks.read(entry, ClaimsEntry)
        draft = await self._content.get_text(claims.draft)
        return _Judged(claims, draft, await self._load([source.text for source in claims.sources]))

    async def _answers(self, entries: Sequence[str]) -> list[ClaimAnswer]:
        read = [await self._notebooks.read(entry, AnswersEntry) for entry in entries]
        return [answer for each in read for answer in each.answers]

    async def _load(self, references: Sequence[DocumentRef]) -> dict[str, str]:
        limit = asyncio.Semaphore(PARALLEL_LOADS)

        async def load(reference: DocumentRef) -> str:
            async with limit:
                return await self._content.get_text(reference)

        texts = await asyncio.gather(*(load(reference) for reference in references))
        return {reference.hash: text for reference, text in zip(references, texts, strict=True)}


def _claims_entry(state: ResearchState, draft: DocumentRef) -> ClaimsEntry:
    """What the claims of a run are compared with: its passages, and every text that was read."""
    resolved = state.resolved
    return ClaimsEntry(
        draft=draft,
        query=resolved.query if resolved else "",
        language=resolved.language if resolved else "en",
        written_freely=writer_engine(state.engine_by_role) is not EngineKind.EXTRACTIVE,
        evidence=list(state.evidence.values()),
        sources=[
            CheckedSource(id=source.id, url=source.url, title=source.title, text=source.text)
            for source in state.sources.values()
            if source.text is not None
        ],
    )
