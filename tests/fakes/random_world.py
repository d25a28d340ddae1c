"""A world drawn by hypothesis: roles, searches and reads answer anything that their schemas allow."""

import asyncio
import random
from typing import Any

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import digest, evidence_id, finding_id
from contracts.evidence import Evidence, Finding, ReportDraft, SectionRef
from contracts.gaps import SettledGap
from contracts.messages import (
    ReadRecord,
    ReadRequest,
    RenderedReport,
    RenderRequest,
    SaveRequest,
    SearchRequest,
    SearchResponse,
    StateChange,
)
from contracts.notebooks import strip_entry_texts
from contracts.outcome import CallAccount, Citation, ReportFiles, Usage
from contracts.roles import (
    AnalyzeInput,
    AnalyzerResult,
    PlanInput,
    PlannerAnswer,
    ProposedGap,
    QualityUpdate,
    SubQuery,
    SynthesizerResult,
    WriteInput,
)
from contracts.state import ResearchState
from contracts.state_changes import apply_change, change_between, json_digest, pack_json, unpack_json
from contracts.supervisor_roles import (
    FollowUpQuery,
    GapAssessment,
    GapReading,
    Recommendation,
    RefineInput,
    RefinerResult,
    ReflectInput,
    RoleGuidance,
    SupervisorAnswer,
)
from contracts.vocabulary import Action, Confidence, EngineKind, Quality, Severity
from tests.fakes.host import InProcessHost
from tests.fakes.states import EMPTY_REF, hit, record

PAGES = [f"corpus:manual/page-{number}.md" for number in range(12)]


class RandomWorld:
    """Answers by a seed and by what is asked, never by when: the same question gets the same answer."""

    def __init__(self, seed: int, *, trouble: float = 0.2) -> None:
        self.seed = seed
        self.trouble = trouble
        self.paid: list[str] = []
        """Operations that were paid for: like the journal, the world answers the same request again for nothing."""
        self._journal: set[str] = set()
        self.session = KeptSession()
        self.searching = self.most_searching = 0

    def host(self) -> InProcessHost:
        """A host that asks this world."""
        methods = ("plan_research", "analyze_sources", "write_report", "refine_gaps", "reflect_on_phase")
        others = ("search", "read_source", "render_report")
        own = {name: getattr(self, name) for name in (*methods, *others)}
        return InProcessHost({**own, "save_session": self.session.save_session})

    def chance(self, *key: object) -> random.Random:
        return random.Random(f"{self.seed}/{key}")

    def account(self, request: Any) -> CallAccount:
        """A call that is paid for once."""
        content = request.model_dump_json(exclude={"time_limit_seconds"})
        if content not in self._journal:
            self._journal.add(content)
            self.paid.append(request.operation)
        return CallAccount(engine=EngineKind.MODEL, model="m", usage=Usage(model_calls=1))

    def _fail_sometimes(self, operation: str, kind: str) -> None:
        if self.chance("fails", operation).random() < self.trouble:
            raise ApplicationError("no luck", {"kind": "malformed"}, type=kind, non_retryable=True)

    async def plan_research(self, request: PlanInput) -> PlannerAnswer:
        number = self.chance("plan", request.operation).randint(1, 6)
        drafts = [SubQuery(query=f"question number {n} of the plan", priority=n + 1) for n in range(number)]
        return PlannerAnswer(research_brief="A brief.", sub_queries=drafts, account=self.account(request))

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.searching += 1
        self.most_searching = max(self.most_searching, self.searching)
        try:
            for _ in range(self.chance("slow", request.text).randint(0, 5)):
                await asyncio.sleep(0)
            self._fail_sometimes(request.operation, failures.CORPUS_UNAVAILABLE)
        finally:
            self.searching -= 1
        chosen = self.chance("hits", request.text).sample(PAGES, self.chance("n", request.text).randint(0, 6))
        return SearchResponse(provider="corpus", hits=[hit(url, rank) for rank, url in enumerate(chosen, start=1)])

    async def read_source(self, request: ReadRequest) -> ReadRecord:
        self._fail_sometimes(f"read/{request.source_id}", failures.SOURCE_UNREADABLE)
        quality = self.chance("quality", request.url).choice(list(Quality))
        return record(request, content_hash=digest(request.url), quality=quality)

    async def analyze_sources(self, request: AnalyzeInput) -> AnalyzerResult:
        chance = self.chance("analysis", request.operation, request.sub_query.id)
        evidence: list[Evidence] = []
        findings: list[Finding] = []
        for number in range(chance.randint(0, 4)):
            source = chance.choice(request.sources)
            start = chance.randint(0, 50)
            item = Evidence(
                id=evidence_id(source.id, start, start + 5),
                source_id=source.id,
                start=start,
                end=start + 5,
                quote_hash=digest("x"),
            )
            evidence.append(item)
            text = f"statement {number} of {request.sub_query.text}"
            findings.append(
                Finding(
                    id=finding_id(text, [item.id]),
                    statement=text,
                    confidence=chance.choice(list(Confidence)),
                    evidence_ids=[item.id],
                    source_ids=[source.id],
                )
            )
        gaps = [
            ProposedGap(description=f"gap {chance.randint(0, 9)}", suggested_queries=["another question to ask"])
            for _ in range(chance.randint(0, 3))
        ]
        return AnalyzerResult(
            findings=findings,
            answered=[[chance.randint(1, len(request.queries))] for _ in findings],
            evidence=evidence,
            gaps=gaps,
            settled_gaps=[
                SettledGap(gap_id=gap.id, answered_by=[chance.choice(findings).id])
                for gap in request.gaps
                if findings and chance.random() < 0.4
            ],
            quality_updates=[QualityUpdate(source_id="src-unknown", quality=Quality.HIGH)],
            analyzed_source_ids=[source.id for source in request.sources] + ["src-unknown"],
            account=self.account(request),
        )

    async def write_report(self, request: WriteInput) -> SynthesizerResult:
        cited = [item for finding in request.findings for item in finding.evidence_ids]
        kept = [item for item in dict.fromkeys(cited) if self.chance("cite", item).random() < 0.8] or cited[:1]
        draft = ReportDraft(
            document=EMPTY_REF,
            characters=self.chance("length", request.operation).choice([50, 500, 5_000]),
            has_headings=True,
            evidence_ids=kept,
            iteration=request.iteration,
        )
        return SynthesizerResult(draft=draft, account=self.account(request))

    async def refine_gaps(self, request: RefineInput) -> RefinerResult:
        chance = self.chance("refine", request.operation)
        assessments = [
            GapAssessment(
                gap_id=gap.id,
                severity=chance.choice(list(Severity)),
                addressable=chance.random() < 0.7,
                follow_up_queries=[FollowUpQuery(query=f"follow-up {chance.randint(0, 99)} to ask")],
                answered_by=[chance.choice([*(one.id for one in request.findings), "f-unknown"])]
                if chance.random() < 0.2
                else [],
                duplicate_of=chance.choice([*(one.id for one in request.gaps), "gap-unknown"])
                if chance.random() < 0.2
                else "",
            )
            for gap in request.gaps
        ]
        assessments.append(GapAssessment(gap_id="gap-unknown", severity=Severity.CRITICAL, addressable=True))
        recommendation = Recommendation(should_iterate=chance.random() < 0.8)
        readings = [
            GapReading(gap_id=gap.id, sections=[SectionRef(source_id=source.id, start=0, end=50)])
            for gap in request.gaps
            for source in request.read_sources
            if chance.random() < 0.1
        ]
        return RefinerResult(
            gap_analysis=assessments,
            iteration_recommendation=recommendation,
            readings=readings,
            account=self.account(request),
        )

    async def reflect_on_phase(self, request: ReflectInput) -> SupervisorAnswer:
        action = self.chance("reflect", request.operation).choice(list(Action))
        return SupervisorAnswer(
            action=action, guidance=[RoleGuidance(text="look closer")], account=self.account(request)
        )

    async def render_report(self, request: RenderRequest) -> RenderedReport:
        state = self.session.state(request.change)
        cited = state.evidence.draft.evidence_ids if state.evidence.draft else []
        sources = dict.fromkeys(state.evidence.passages[item].source_id for item in cited)
        citations = [Citation(number=number, source_id=source) for number, source in enumerate(sources, start=1)]
        files = ReportFiles(markdown=EMPTY_REF, html=EMPTY_REF, json_document=EMPTY_REF)
        return RenderedReport(files=files, packed=pack_json("# Report\n"), citations=citations)


def whole_change(state: ResearchState) -> StateChange:
    """The whole state as a change of nothing."""
    snapshot = strip_entry_texts(state.snapshot())
    return StateChange(digest=json_digest(snapshot), packed=pack_json(change_between({}, snapshot)))


class KeptSession:
    """What was saved last; the entries of a notebook are unknown here."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}
        self.saves: list[SaveRequest] = []

    def changed(self, change: StateChange) -> dict[str, Any]:
        """The stored state with a change. Raises as `activities.records.changed_state`."""
        before = self.stored if change.base else {}
        if change.in_flight is not None and change.in_flight.base == json_digest(before):
            before = apply_change(before, unpack_json(change.in_flight.packed))
        if change.base and change.base != json_digest(before):
            raise ApplicationError("another session", type=failures.SESSION_CHANGED, non_retryable=True)
        after: dict[str, Any] = apply_change(before, unpack_json(change.packed))
        assert json_digest(after) == change.digest
        return after

    def state(self, change: StateChange) -> ResearchState:
        return ResearchState.model_validate(self.changed(change))

    async def save_session(self, request: SaveRequest) -> None:
        self.stored = self.changed(request.change)
        self.saves.append(request)
