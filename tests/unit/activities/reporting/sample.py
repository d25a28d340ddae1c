"""A finished run about vacuuming, small enough to read, with the shape of real ones."""

from typing import Any

from activities.reporting.inputs import RenderMaterial
from activities.reporting.render import RenderedForms, render
from contracts.addresses import digest, source_id
from contracts.checking import Correction
from contracts.evidence import DocumentRef, Evidence, Gap, ReportDraft, Source
from contracts.outcome import AgentDecision, Usage
from contracts.plan import Plan, PlanNode
from contracts.presets import preset
from contracts.request import Depth, Gates
from contracts.resolved import CorpusSnapshot, ResolvedResearch, SkippedFile
from contracts.state import ResearchState
from contracts.vocabulary import AgentRole, EngineKind, GapStatus, NodeStatus, Phase, Quality, SourceStatus, ThinkMode
from tests.unit.activities.scripted import MemoryStore, finding, passage

STATEMENT = "Every table must be vacuumed at least once every two billion transactions."
QUESTION = "How does PostgreSQL prevent transaction ID wraparound?"
RESEARCH_ID = "r-20261121-7k3f"

VACUUM = (
    "Preventing Transaction ID Wraparound Failures\n\n"
    "PostgreSQL's MVCC transaction semantics depend on being able to compare transaction ID (XID) numbers: a row "
    "version with an insertion XID greater than the current transaction's XID is “in the future” and should not be "
    "visible to the current transaction. "
    "But since transaction IDs have limited size (32 bits) a cluster that runs for a long time (more than 4 billion "
    "transactions) would suffer transaction ID wraparound: all of a sudden transactions that were in the past appear to "
    "be in the future. In short, catastrophic data loss. To avoid this, it is necessary to vacuum every table in every "
    "database at least once every two billion transactions.\n\n"
    "The reason that periodic vacuuming solves the problem is that VACUUM will mark rows as frozen, indicating that "
    "they were inserted by a transaction that committed sufficiently far in the past. Normal XIDs are compared.\n\n"
    "If for some reason autovacuum fails to clear old XIDs from a table, the system will begin to emit warning "
    "messages when the oldest XIDs reach forty million transactions from the wraparound point. If these warnings are "
    "ignored, the system will refuse to start new transactions once there are fewer than three million left 🐘.\n"
)
SETTINGS = (
    "Automatic Vacuuming\n\n"
    "autovacuum_freeze_max_age (integer)\n\n"
    "Specifies the maximum age (in transactions) that a table's pg_class.relfrozenxid field can attain before a VACUUM "
    "operation is forced to prevent transaction ID wraparound within the table. Vacuum also allows removal of old "
    "files from the pg_xact subdirectory, which is why the default is a relatively low 200 million transactions.\n"
)
GLOSSARY = "Glossary\n\nXID\n\nThe numerical, unique, sequentially-allocated identifier of a transaction.\n"

DOCUMENTS = {
    "routine-vacuuming.html": ("25.1. Routine Vacuuming", VACUUM),
    "runtime-config-autovacuum.html": ("20.10. Automatic Vacuuming", SETTINGS),
    "glossary.html": ("Appendix M. Glossary", GLOSSARY),
}


def make_source(url: str, title: str, text: str, **changes: object) -> Source:
    """A source that was read, with the hash of its text."""
    fields = {
        "id": source_id(url),
        "url": url,
        "title": title,
        "publisher": "The PostgreSQL Global Development Group",
        "retrieved_at": "2026-11-21T20:15:04+00:00",
        "source_type": "file",
        "provider": "corpus",
        "status": SourceStatus.FULL,
        "quality": Quality.HIGH,
        "quality_reason": "your documents",
        "content_hash": digest("raw " + text),
        "raw": DocumentRef(hash=digest("raw " + text), media_type="text/html", size=len(text) + 4),
        "text": DocumentRef(hash=digest(text), size=len(text)),
        "analyzed": True,
    }
    return Source.model_validate(fields | changes)


def make_evidence(source: Source, text: str, quote: str, heading: str = "") -> Evidence:
    return passage(text, quote, source.id).model_copy(update={"heading": heading})


def make_resolved(**changes: object) -> ResolvedResearch:
    """A resolved request over the sample corpus."""
    fields = {
        "research_id": RESEARCH_ID,
        "query": QUESTION,
        "engine": EngineKind.EXTRACTIVE,
        "corpus": CorpusSnapshot(
            name="manual", title="The manual", digest=digest("manual")[:19], files=1173, skipped=1
        ),
        "limits": preset("supervisor", Depth.LIGHT),
        "gates": Gates(think=ThinkMode.RULES),
        "product_version": "0.1.0",
    }
    return ResolvedResearch.model_validate(fields | changes)


SKIPPED = [SkippedFile(path="broken.pdf", kind="encrypted", reason="encrypted: no password is known")]
ENDING = {
    "outcome": "completed",
    "stop_reason": "no_actionable_gaps",
    "completeness": "full",
    "ended_at": "2026-11-21T20:15:15+00:00",
}


class Sample:
    """A state with its draft and stored texts."""

    def __init__(self) -> None:
        self.sources = {
            name: make_source(f"corpus:manual/{name}", title, text) for name, (title, text) in DOCUMENTS.items()
        }
        self.texts = {digest(text): text for _, text in DOCUMENTS.values()}
        vacuum, settings = self.sources["routine-vacuuming.html"], self.sources["runtime-config-autovacuum.html"]

        def between(source: Source, first: str, last: str, heading: str) -> Evidence:
            text = self.texts[source.text.hash] if source.text else ""
            start = text.index(first)
            return make_evidence(source, text, text[start : text.index(last, start)].strip(), heading)

        wraparound = "25.1.5. Preventing Transaction ID Wraparound Failures"
        age = "autovacuum_freeze_max_age (integer)"
        self.problem = between(vacuum, "But since", " In short", wraparound)
        self.rule = between(vacuum, "To avoid", "\n\nThe reason", wraparound)
        self.freezing = between(vacuum, "The reason", " Normal XIDs", wraparound)
        self.failure = between(vacuum, "If for some", "\n", wraparound)
        self.forced = between(settings, "Specifies", " Vacuum also", age)
        self.default = between(settings, "Vacuum also", "\n", age)
        cited = (self.problem, self.rule, self.freezing, self.failure, self.forced, self.default)
        self.evidence = {item.id: item for item in cited}

    def quote(self, item: Evidence) -> str:
        source = next(source for source in self.sources.values() if source.id == item.source_id)
        assert source.text is not None
        return self.texts[source.text.hash][item.start : item.end]

    @property
    def draft(self) -> str:
        """A brief as the extractive engine writes it."""

        def quoted(item: Evidence, indent: str = "") -> str:
            return f"{indent}> {self.quote(item)} [{item.id}]"

        return f"""# {QUESTION}

> Evidence brief, written without a language model: every indented passage is quoted word for word.

## Short answer

{quoted(self.rule)}

{quoted(self.forced)}

## How it is prevented

{quoted(self.problem)}

1. Rows are marked as frozen.

{quoted(self.freezing, "   ")}

2. Vacuuming is forced at an age.

{quoted(self.default, "   ")}

| Name | Value in the text | What it controls | Source |
|---|--:|---|---|
| `autovacuum_freeze_max_age` | 200 million transactions | age that forces a `VACUUM` | [{self.default.id}] |
| warning threshold | forty million transactions | distance from the wraparound point | [{self.failure.id}] |

## If it fails

{quoted(self.failure)}

```sql
SELECT datname, age(datfrozenxid) FROM pg_database WHERE tags[1] = '[{self.rule.id}]';
```

- *Measured cost of freezing*: no passage above the floor.
"""

    def state(self, **changes: object) -> ResearchState:
        """The state of the finished run."""
        nodes = [
            PlanNode(id=f"sq-000000000{n}", text=text, status=NodeStatus.COMPLETED, provider="corpus", result_count=5)
            for n, text in ((1, "What is transaction ID wraparound?"), (2, "Which settings force a vacuum?"))
        ]
        failed = PlanNode(
            id="sq-0000000003",
            text="measured cost of freezing",
            status=NodeStatus.FAILED,
            error="nothing above the floor",
            origin="gap:gap-0000000001",
        )
        gap = Gap(id="gap-0000000001", description="What freezing costs is open.", status=GapStatus.UNADDRESSABLE)
        fields: dict[str, object] = {
            "resolved": make_resolved(),
            "plan": Plan(version=1, brief="What the problem is, and what is done.", nodes=[*nodes, failed]),
            "sources": {source.id: source for source in self.sources.values()},
            "evidence": self.evidence,
            "findings": [finding(STATEMENT, self.rule)],
            "gaps": [gap],
            "draft": ReportDraft(
                document=DocumentRef(hash=digest(self.draft), media_type="text/markdown", size=len(self.draft)),
                title=QUESTION,
                summary=f"Every table must be vacuumed in time. [{self.rule.id}]",
            ),
            "decisions": [
                AgentDecision(
                    seq=1,
                    agent=AgentRole.SUPERVISOR,
                    action="proceed",
                    phase=Phase.PLANNING,
                    rationale="The plan has three sub-queries.",
                    timestamp="2026-11-21T20:15:05+00:00",
                )
            ],
            "documents_searched": 1173,
            "engine_by_role": dict.fromkeys(("planner", "analyzer", "synthesizer", "refiner"), "extractive"),
            "limitations": ["All cited documents are pages of one manual: their agreement is not independent."],
            "usage": Usage(searches=3, reads=3, active_seconds=11.2),
            "started_at": "2026-11-21T20:15:04+00:00",
            "ending": ENDING,
        }
        return ResearchState.model_validate(fields | changes)


SAMPLE = Sample()


def rendered(
    words: str | None = None,
    /,
    *,
    skipped: list[SkippedFile] = SKIPPED,
    texts: dict[str, str] | None = None,
    corrections: list[Correction] | None = None,
    **changes: object,
) -> RenderedForms:
    """The forms of the sample run, with another draft, more texts or another state."""
    material = RenderMaterial(
        state=SAMPLE.state(**changes),
        draft=SAMPLE.draft if words is None else words,
        texts=SAMPLE.texts | (texts or {}),
        skipped=skipped,
        product_version="0.1.0",
        corrections=corrections or [],
    )
    return render(material)


def citing(source: Source, text: str, quote: str, **changes: object) -> tuple[Evidence, dict[str, Any]]:
    """A passage of a source, and what `rendered` is given for a run that cites it alone."""
    evidence = make_evidence(source, text, quote).model_copy(update=changes)
    known = {"sources": {source.id: source}, "evidence": {evidence.id: evidence}, "texts": {digest(text): text}}
    return evidence, known


async def store_of(texts: dict[str, str]) -> MemoryStore:
    """A store with texts and their originals."""
    filled = MemoryStore()
    for text in texts.values():
        await filled.put_text(text)
        await filled.put(("raw " + text).encode(), "text/html")
    return filled
