"""Made-up manual pages, and inputs of the roles over them."""

from contracts.addresses import digest, evidence_id, finding_id, gap_id, source_id, sub_query_id
from contracts.evidence import DocumentRef, Evidence, Finding, Gap, SectionHint
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput, AnalyzerAnswer, PlanInput, RefineInput, SourceExtract, WriteInput
from contracts.vocabulary import Confidence, EngineKind, Quality

RETENTION = """# Retention of snapshots

The vault keeps a snapshot of every volume. To prevent loss of data, the vault writes each snapshot twice before it \
reports success. Contrary to a common belief, the second copy is not compressed. This can be changed at any time.

## Settings

retention_days (integer)
Sets for how many days a snapshot of the vault is kept. The default is 30 days. Setting it to zero disables expiry.

```
vaultctl set retention_days 30; -- snapshot vault volume retention prevent loss
```

- [Snapshots](a) - [Volumes](b) - [Vault](c)

## Checking

The view vault_status shows how many snapshots of the vault exist and when the last one was written.
"""

COPIES = """# Copies

Before it reports success, the vault writes each snapshot twice, to prevent loss of data. A copy lives on another disk.

Encryption of a volume is disabled by default. Volumes are not encrypted unless encryption was enabled for each one.
"""

PAGES = {"retention": ("Retention of snapshots", RETENTION), "copies": ("Copies", COPIES)}

BASE = {
    "research_id": "r-1",
    "operation": "test",
    "engine": EngineKind.EXTRACTIVE,
    "date": "2026-11-21",
}

QUESTION = "How does the vault prevent loss of a snapshot?"


def extract(name: str, text: str, *, title: str | None = None, quality: Quality = Quality.HIGH) -> SourceExtract:
    """A source over a text, found as a whole."""
    return SourceExtract(
        id=source_id(f"corpus:x/{name}"),
        url=f"corpus:x/{name}",
        title=title or name,
        quality=quality,
        text=DocumentRef(hash=digest(text)),
        sections=[SectionHint(start=0, end=len(text), heading=title or name, score=1.0)],
    )


def sources() -> list[SourceExtract]:
    """The sample pages as sources."""
    return [extract(name, text, title=title) for name, (title, text) in PAGES.items()]


def documents() -> dict[str, str]:
    """The sample pages by hash."""
    return {digest(text): text for _, text in PAGES.values()}


def plan_input(question: str = QUESTION, **more: object) -> PlanInput:
    """Input of the planner."""
    return PlanInput.model_validate({**BASE, "query": question, **more})


def analyze_input(question: str = QUESTION, facet: str = "mechanism", **more: object) -> AnalyzeInput:
    """Input of the analyzer for the question itself."""
    given = {
        **BASE,
        "query": question,
        "sub_query": PlanNode(id=sub_query_id(question), text=question, facet=facet),
        "sources": sources(),
        **more,
    }
    return AnalyzeInput.model_validate(given)


def write_input(
    drafts: list[tuple[str, AnalyzerAnswer]],
    question: str = QUESTION,
    given: list[SourceExtract] | None = None,
    **more: object,
) -> WriteInput:
    """Input of the synthesizer: the drafts of the analyzer, grounded as the activity does it."""
    findings: list[Finding] = []
    evidence: dict[str, Evidence] = {}
    gaps: list[Gap] = []
    for facet, draft in drafts:
        for found in draft.findings:
            ids = []
            for quote in found.quotes:
                start = quote.start or 0
                end = start + len(quote.quote)
                key = evidence_id(quote.source_id, start, end)
                evidence[key] = Evidence(
                    id=key, source_id=quote.source_id, start=start, end=end, quote_hash=digest(quote.quote)
                )
                ids.append(key)
            findings.append(
                Finding(
                    id=finding_id(found.content, ids),
                    statement=found.content,
                    confidence=Confidence(found.confidence),
                    evidence_ids=ids,
                    category=found.category or facet,
                )
            )
        gaps += [
            Gap(id=gap_id(gap.description), description=gap.description, suggested_queries=gap.suggested_queries)
            for gap in draft.gaps
        ]
    return WriteInput.model_validate(
        {
            **BASE,
            "query": question,
            "findings": findings,
            "evidence": list(evidence.values()),
            "sources": given if given is not None else sources(),
            "gaps": gaps,
            **more,
        }
    )


def refine_input(gaps: list[Gap], **more: object) -> RefineInput:
    """Input of the refiner."""
    given = {**BASE, "query": QUESTION, "gaps": gaps, "remaining_iterations": 2, **more}
    return RefineInput.model_validate(given)
