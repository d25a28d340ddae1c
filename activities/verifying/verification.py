"""The activities of a verification that make no paid call: extract claims, finalize a check, apply corrections.

Results are entries of the notebook; the workflow gets hashes and figures. All work on texts is done in a thread: it is
linear in their length, at most a second for 8 kB of the worst Markdown, and no parser of documents takes part.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.records import changed_state
from activities.reporting.citations import cited_evidence
from activities.reporting.claims import Tallied, count_verdicts
from activities.reporting.drafts import describe_draft, parse_draft, store_draft, without_source_lists
from activities.reporting.markdown import write
from activities.reporting.render import evidence_texts
from activities.roles.grounding import load_texts
from activities.verifying.claims import Material, ask, conclude, extract_claims, is_judged
from activities.verifying.correction import apply, choose, find_doubtful
from contracts import checking, messages
from contracts.addresses import digest
from contracts.base import CompactModel
from contracts.evidence import ClaimVerdict, DocumentRef, Evidence, ReportDraft, VerdictsEntry
from contracts.notebooks import AnalysisEntry
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.interfaces import ContentStore, Notebooks, SessionStore

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
            answers = await self._answers(request.answers)
            entry, asked = await asyncio.to_thread(extract, draft, material, answers)
            return await self._extracted(await self.notebooks.write(entry), entry, asked)

    @activity.defn(name="apply_corrections")
    async def apply_corrections(self, request: messages.ApplyRequest) -> messages.ExtractedClaims:
        """Put every proposal into the draft, and store the claims of it that need a checker."""
        async with attempt(RECORDS):
            draft, material = await self._load(request.claims_entry, by_model=request.by_model)
            doubtful = await self.notebooks.read(request.doubtful_entry, checking.DoubtfulEntry)
            read = [await self.notebooks.read(entry, checking.ProposalsEntry) for entry in request.proposals]
            proposals = [one for each in read for one in each.proposals]
            answers = await self._answers(request.answers)
            tried, asked = await asyncio.to_thread(try_corrections, draft, material, doubtful, proposals, answers)
            tried = tried.model_copy(update={"before": request.claims_entry, "verdicts": request.verdicts_entry})
            return await self._extracted(await self.notebooks.write(tried), tried.after, asked)

    @activity.defn(name="finalize_verification")
    async def finalize_verification(
        self, request: messages.FinalizeVerificationRequest
    ) -> messages.FinalizedVerification:
        """Combine the verdicts, choose the corrections to accept, and find passages for doubtful claims."""
        async with attempt(RECORDS):
            tried, before = None, list[ClaimVerdict]()
            if request.corrected_entry:
                tried = await self.notebooks.read(request.corrected_entry, checking.CorrectedEntry)
                before = (await self.notebooks.read(tried.verdicts, VerdictsEntry)).verdicts
            entry = tried.before if tried else request.claims_entry
            draft, material = await self._load(entry, by_model=request.by_model)
            answers = await self._answers(request.answers)
            found = await asyncio.to_thread(
                finalize, draft, material, answers, tried, before, corrects=request.corrects
            )
            return await self._finalized(request, tried, found)

    async def _finalized(
        self, request: messages.FinalizeVerificationRequest, tried: checking.CorrectedEntry | None, found: "Conclusion"
    ) -> messages.FinalizedVerification:
        corrections = found.corrections
        if entry := request.corrections_entry:
            corrections = [*(await self.notebooks.read(entry, checking.CorrectionsEntry)).corrections, *corrections]
        draft, fresh = None, list[Evidence]()
        if tried and found.text:
            described, text, cited = await asyncio.to_thread(describe_corrected, found.text, found.claims.draft)
            draft = await store_draft(self.content, described, text)
            fresh = [item for item in tried.evidence if item.id in cited]
        claims_entry = await self.notebooks.write(found.claims)
        verdicts = VerdictsEntry(verdicts=found.verdicts)
        return messages.FinalizedVerification(
            claims_entry="" if claims_entry == request.claims_entry else claims_entry,
            verdicts_entry=await self.notebooks.write(verdicts),
            corrections_entry=await self._written(checking.CorrectionsEntry(corrections=corrections)),
            summary=checking.VerificationSummary(
                mode=request.mode,
                strict=request.strict,
                not_reached=request.unreached,
                corrections=dict(sorted(Counter(one.action.value for one in corrections).items())),
                **count_verdicts(
                    [
                        Tallied(given.verdict, given.method, len(each.claim.evidence_ids), each.claim.section)
                        for each, given in zip(found.claims.claims, found.verdicts, strict=True)
                    ]
                ),
            ),
            verdicts=checking.write_verdicts(one.verdict for one in found.verdicts),
            draft=draft,
            evidence_entry=await self._written(AnalysisEntry(evidence=fresh)),
            evidence=[item.place for item in fresh],
            doubtful_entry=await self._written(found.doubtful),
            sizes=[_size(claim) for claim in found.doubtful.claims],
        )

    async def _extracted(
        self, entry: str, claims: checking.ClaimsEntry, asked: list[checking.AskedClaim]
    ) -> messages.ExtractedClaims:
        return messages.ExtractedClaims(
            claims_entry=entry,
            asked_entry=await self._written(checking.AskedEntry(claims=asked)),
            sizes=[_size(claim) for claim in asked],
            claims=len(claims.claims),
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
        read = [await self.notebooks.read(entry, checking.AnswersEntry) for entry in entries]
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
    """The draft as it is checked: written again from its tree, without lists of sources."""
    return write(without_source_lists(parse_draft(markdown))).text


def describe_corrected(markdown: str, document: DocumentRef) -> tuple[ReportDraft, str, set[str]]:
    """The description and the text of a corrected draft, and the ids of the evidence that it cites."""
    blocks = parse_draft(markdown)
    described, text = describe_draft(ReportDraft(document=document), blocks)
    return described, text, set(cited_evidence(blocks))


def extract(
    draft: str, material: Material, answers: Sequence[checking.ClaimAnswer]
) -> tuple[checking.ClaimsEntry, list[checking.AskedClaim]]:
    """The claims of a draft, and those that a checker is to judge: an earlier answer counts if it judges."""
    claims = extract_claims(draft, material)
    asked = ask(claims, material, {answer.fingerprint for answer in answers if is_judged(answer)})
    return material.entry.model_copy(update={"claims": claims}), asked


def try_corrections(
    draft: str,
    material: Material,
    doubtful: checking.DoubtfulEntry,
    proposals: Sequence[checking.Proposal],
    answers: Sequence[checking.ClaimAnswer],
) -> tuple[checking.CorrectedEntry, list[checking.AskedClaim]]:
    """The trial draft with its claims, and those that are new to the checker; the draft is made again if it wins."""
    known = material.evidence
    fresh = [item for item in doubtful.evidence if item.id not in known]
    entry = material.entry.model_copy(update={"evidence": [*known.values(), *fresh]})
    material = replace(material, entry=entry)
    numbers = {one.number for one in doubtful.claims}
    proposed = [one for one in proposals if one.number in numbers]
    text, placed = apply(draft, entry.claims, proposed, material.registry)
    after = _with_draft(material, text)
    asked = ask(after.claims, material, {answer.fingerprint for answer in answers})
    tried = checking.CorrectedEntry(
        before="", verdicts="", after=after, placed=placed, numbers=sorted(numbers), evidence=fresh
    )
    return tried, asked


@dataclass(frozen=True)
class Conclusion:
    """Result of a check: the final draft, its verdicts, and the claims that are still doubtful."""

    claims: checking.ClaimsEntry
    verdicts: list[ClaimVerdict]
    text: str = ""
    """The corrected draft, if any correction was accepted."""
    corrections: Sequence[checking.Correction] = ()
    doubtful: checking.DoubtfulEntry = field(default_factory=checking.DoubtfulEntry)


def finalize(
    draft: str,
    material: Material,
    answers: Sequence[checking.ClaimAnswer],
    tried: checking.CorrectedEntry | None,
    before: list[ClaimVerdict],
    *,
    corrects: bool,
) -> Conclusion:
    """The verdicts on a draft; with `tried` those on the corrected draft, `before` being those on the first."""
    # Of several answers the first one that judges counts.
    known = {answer.fingerprint: answer for answer in answers}
    known |= {answer.fingerprint: answer for answer in reversed(answers) if is_judged(answer)}
    if tried is None:
        found = Conclusion(material.entry, conclude(material.entry.claims, known))
    else:
        found = _corrected(draft, material, known, tried, before)
    if not corrects:
        return found
    final = replace(material, entry=found.claims)
    return replace(found, doubtful=find_doubtful(found.claims.claims, found.verdicts, final))


def _corrected(
    draft: str,
    material: Material,
    known: dict[str, checking.ClaimAnswer],
    tried: checking.CorrectedEntry,
    before: list[ClaimVerdict],
) -> Conclusion:
    """The draft with the accepted corrections."""
    claims, after = material.entry.claims, tried.after.claims
    accepted, corrections = choose(claims, before, tried.placed, after, conclude(after, known), tried.numbers)
    if not accepted:
        return Conclusion(material.entry, before, corrections=corrections)
    changed = replace(material, entry=tried.after)
    text, _ = apply(draft, claims, accepted, changed.registry)
    entry = _with_draft(changed, text)
    return Conclusion(entry, conclude(entry.claims, known), text, corrections)


def _with_draft(material: Material, text: str) -> checking.ClaimsEntry:
    """The entry of another draft with its claims."""
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN, size=len(text))
    return material.entry.model_copy(update={"draft": stored, "claims": extract_claims(text, material)})
