"""A finished run about vacuuming, small enough to read, with the shape of real ones."""

from contracts.addresses import digest, evidence_id, finding_id, source_id
from contracts.evidence import DocumentRef, Evidence, Finding, Gap, ReportDraft, Source
from contracts.outcome import AgentDecision, Usage
from contracts.plan import Plan, PlanNode
from contracts.request import Gates
from contracts.resolved import CorpusSnapshot, EffectiveLimits, ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import (
    AgentRole,
    Confidence,
    EngineKind,
    GapStatus,
    NodeStatus,
    Phase,
    Quality,
    SourceStatus,
    ThinkMode,
)
from providers.interfaces import SkippedFile

STATEMENT = "Every table must be vacuumed at least once every two billion transactions."
QUESTION = "How does PostgreSQL prevent transaction ID wraparound?"
RESEARCH_ID = "r-20261121-7k3f"

VACUUM = (
    "Preventing Transaction ID Wraparound Failures\n\n"
    "PostgreSQL's MVCC transaction semantics depend on being able to compare transaction ID (XID) numbers: a row "
    "version with an insertion XID greater than the current transaction's XID is “in the future” and should not be "
    "visible to the current transaction. But since transaction IDs have limited size (32 bits) a cluster that runs "
    "for a long time (more than 4 billion transactions) would suffer transaction ID wraparound: the XID counter wraps "
    "around to zero, and all of a sudden transactions that were in the past appear to be in the future — which means "
    "their output become invisible. In short, catastrophic data loss. To avoid this, it is necessary to vacuum every "
    "table in every database at least once every two billion transactions.\n\n"
    "The reason that periodic vacuuming solves the problem is that VACUUM will mark rows as frozen, indicating that "
    "they were inserted by a transaction that committed sufficiently far in the past that the effects of the "
    "inserting transaction are certain to be visible to all current and future transactions. Normal XIDs are compared "
    "using modulo-2^32 arithmetic.\n\n"
    "If for some reason autovacuum fails to clear old XIDs from a table, the system will begin to emit warning "
    "messages when the database's oldest XIDs reach forty million transactions from the wraparound point. If these "
    "warnings are ignored, the system will shut down and refuse to start any new transactions once there are fewer "
    "than three million transactions left until wraparound 🐘.\n"
)
SETTINGS = (
    "Automatic Vacuuming\n\n"
    "autovacuum_freeze_max_age (integer)\n\n"
    "Specifies the maximum age (in transactions) that a table's pg_class.relfrozenxid field can attain before a VACUUM "
    "operation is forced to prevent transaction ID wraparound within the table. Note that the system will launch "
    "autovacuum processes to prevent wraparound even when autovacuum is otherwise disabled. Vacuum also allows removal "
    "of old files from the pg_xact subdirectory, which is why the default is a relatively low 200 million "
    "transactions. This parameter can only be set at server start.\n"
)
GLOSSARY = "Glossary\n\nXID\n\nThe numerical, unique, sequentially-allocated identifier of a transaction.\n"

DOCUMENTS = {
    "routine-vacuuming.html": ("25.1. Routine Vacuuming", VACUUM),
    "runtime-config-autovacuum.html": ("20.10. Automatic Vacuuming", SETTINGS),
    "glossary.html": ("Appendix M. Glossary", GLOSSARY),
}


def corpus_url(name: str) -> str:
    """The address of a document of the sample corpus."""
    return f"corpus:manual/{name}"


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
    """The evidence for a quote that stands in a text."""
    start = text.index(quote)
    end = start + len(quote)
    return Evidence(
        id=evidence_id(source.id, start, end),
        source_id=source.id,
        start=start,
        end=end,
        quote_hash=digest(quote),
        heading=heading,
    )


def make_resolved(**changes: object) -> ResolvedResearch:
    """A resolved request over the sample corpus."""
    fields = {
        "research_id": RESEARCH_ID,
        "query": QUESTION,
        "engine": EngineKind.EXTRACTIVE,
        "corpus": CorpusSnapshot(
            name="manual",
            title="PostgreSQL 15 manual",
            digest=digest("manual")[:19],
            files=1173,
            skipped=1,
            indexed_at="2026-11-21T20:14:58+00:00",
        ),
        "limits": EffectiveLimits(
            max_iterations=3,
            max_sub_queries=5,
            max_sources=60,
            max_sources_per_query=12,
            max_new_sources=20,
            deadline_seconds=900,
            reserve_seconds=90,
        ),
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
        self.sources = {name: make_source(corpus_url(name), title, text) for name, (title, text) in DOCUMENTS.items()}
        self.texts = {digest(text): text for _, text in DOCUMENTS.values()}
        vacuum, settings = self.sources["routine-vacuuming.html"], self.sources["runtime-config-autovacuum.html"]
        wraparound = "25.1.5. Preventing Transaction ID Wraparound Failures"
        age = "autovacuum_freeze_max_age (integer)"
        self.problem = make_evidence(
            vacuum, VACUUM, VACUUM[VACUUM.index("But since") : VACUUM.index(" In short")], wraparound
        )
        self.rule = make_evidence(
            vacuum, VACUUM, VACUUM[VACUUM.index("To avoid") : VACUUM.index("\n\nThe reason")], wraparound
        )
        self.freezing = make_evidence(
            vacuum, VACUUM, VACUUM[VACUUM.index("The reason") : VACUUM.index(" Normal XIDs")], wraparound
        )
        self.failure = make_evidence(vacuum, VACUUM, VACUUM[VACUUM.index("If for some") :].strip(), wraparound)
        self.forced = make_evidence(
            settings, SETTINGS, SETTINGS[SETTINGS.index("Specifies") : SETTINGS.index(" Vacuum also")], age
        )
        self.default = make_evidence(
            settings,
            SETTINGS,
            SETTINGS[SETTINGS.index("Vacuum also") : SETTINGS.index("\n", SETTINGS.index("Vacuum also"))],
            age,
        )
        self.evidence = {
            item.id: item for item in (self.problem, self.rule, self.freezing, self.failure, self.forced, self.default)
        }

    def quote(self, item: Evidence) -> str:
        """The words of an evidence."""
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
> 1,173 documents searched · 3 read · 2 cited (pages of one manual) · completed · nothing left this machine

## Short answer

{quoted(self.rule)}

{quoted(self.forced)}

## What the problem is

{quoted(self.problem)}

## How it is prevented

1. Rows are marked as frozen.

{quoted(self.freezing, "   ")}

2. Vacuuming is forced at an age.

{quoted(self.default, "   ")}

## Settings and thresholds

| Name | Value in the text | What it controls | Source |
|---|--:|---|---|
| `autovacuum_freeze_max_age` | 200 million transactions | age that forces a `VACUUM` | [{self.default.id}] |
| warning threshold | forty million transactions | distance from the wraparound point | [{self.failure.id}] |

## If it fails

{quoted(self.failure)}

## What to check

```sql
SELECT datname, age(datfrozenxid) FROM pg_database WHERE tags[1] = '[{self.rule.id}]';
```

## Not covered, and limits

- *Measured cost of freezing*: no passage above the floor.
"""

    def state(self, **changes: object) -> ResearchState:
        """The state of the finished run."""
        first = PlanNode(
            id="sq-0000000001",
            text="What is transaction ID wraparound?",
            status=NodeStatus.COMPLETED,
            provider="corpus",
            result_count=5,
        )
        second = PlanNode(
            id="sq-0000000002",
            text="Which settings force a vacuum?",
            status=NodeStatus.COMPLETED,
            provider="corpus",
            result_count=4,
        )
        third = PlanNode(
            id="sq-0000000003",
            text="measured cost of freezing",
            status=NodeStatus.FAILED,
            error="nothing above the floor",
            origin="gap:gap-0000000001",
        )
        fields: dict[str, object] = {
            "resolved": make_resolved(),
            "plan": Plan(version=1, brief="What the problem is, and what is done.", nodes=[first, second, third]),
            "sources": {source.id: source for source in self.sources.values()},
            "evidence": self.evidence,
            "findings": [
                Finding(
                    id=finding_id(STATEMENT, [self.rule.id]),
                    statement=STATEMENT,
                    confidence=Confidence.HIGH,
                    evidence_ids=[self.rule.id],
                    source_ids=[self.rule.source_id],
                )
            ],
            "gaps": [
                Gap(
                    id="gap-0000000001",
                    description="What freezing costs was not found.",
                    status=GapStatus.UNADDRESSABLE,
                )
            ],
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
