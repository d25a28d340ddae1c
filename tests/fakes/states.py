"""Small states and parts for tests of the pure rules."""

from contracts.addresses import gap_id, source_id, sub_query_id
from contracts.evidence import DocumentRef, Finding, Gap, ReportDraft, SearchHit, Source
from contracts.messages import ReadRecord, ReadRequest
from contracts.plan import Plan, PlanNode
from contracts.presets import preset
from contracts.request import Depth, Gates
from contracts.resolved import CorpusSnapshot, ProviderChoice, ResolvedResearch
from contracts.state import JSON_NAMES, ClockState, ResearchState, WorkState
from contracts.vocabulary import Confidence, EngineKind, NodeStatus, Quality, SourceStatus, ThinkMode

EMPTY_REF = DocumentRef(hash="sha256:" + "0" * 64)


def resolved(**changes: object) -> ResolvedResearch:
    """A resolved request over a corpus, with the medium preset."""
    base = ResolvedResearch(
        research_id="r-test",
        query="How does the engine prevent wraparound?",
        engine=EngineKind.EXTRACTIVE,
        providers=[ProviderChoice(name="corpus", available=True)],
        corpus=CorpusSnapshot(name="manual", files=3),
        limits=preset("supervisor", Depth.MEDIUM),
        gates=Gates(think=ThinkMode.RULES),
    )
    return base.model_copy(update=changes)


def state(**changes: object) -> ResearchState:
    """A state with a resolved request."""
    made = ResearchState(
        work=WorkState(resolved=resolved()), clock=ClockState(started_at="2026-11-21T12:00:00.000+00:00")
    )
    change(made, **changes)
    return made


def change(state: ResearchState, **changes: object) -> None:
    """Set fields of a state's parts by their names in JSON."""
    places = {name: (part, field) for part, fields in JSON_NAMES.items() for field, name in fields.items()}
    for name, value in changes.items():
        part, field = places[name]
        setattr(getattr(state, part), field, value)


def sub_query(text: str, **changes: object) -> PlanNode:
    made = PlanNode(id=sub_query_id(text), text=text, status=NodeStatus.COMPLETED)
    return made.model_copy(update=changes)


def plan(*queries: PlanNode, brief: str = "We look at the manual.") -> Plan:
    return Plan(version=1, brief=brief, nodes=list(queries))


def hit(url: str, rank: int) -> SearchHit:
    return SearchHit(url=url, title=url, rank=rank, provider="corpus")


def record(request: ReadRequest, **changes: object) -> ReadRecord:
    """What reading a page gives."""
    made = ReadRecord(
        url=request.url,
        title=request.title,
        retrieved_at="2026-11-21T12:00:00+00:00",
        content_hash="sha256:" + "1" * 64,
        raw=EMPTY_REF,
        text=EMPTY_REF,
        quality=Quality.HIGH,
    )
    return made.model_copy(update=changes)


def source(url: str, **changes: object) -> Source:
    """A readable source of high quality."""
    made = Source(
        id=source_id(url),
        url=url,
        title=url,
        provider="corpus",
        status=SourceStatus.FULL,
        quality=Quality.HIGH,
        analyzed=True,
    )
    return made.model_copy(update=changes)


def sources(*made: Source) -> dict[str, Source]:
    return {item.id: item for item in made}


def finding(statement: str, **changes: object) -> Finding:
    made = Finding(id="f-" + statement[:10], statement=statement, confidence=Confidence.HIGH)
    return made.model_copy(update=changes)


def gap(description: str, **changes: object) -> Gap:
    made = Gap(id=gap_id(description), description=description)
    return made.model_copy(update=changes)


def draft(characters: int = 1_000, **changes: object) -> ReportDraft:
    """A draft with headings and a citation."""
    made = ReportDraft(document=EMPTY_REF, characters=characters, has_headings=True, evidence_ids=["ev-1"])
    return made.model_copy(update=changes)
