"""How good are evidence briefs? Questions with known facts, over a real folder of documents, without a workflow.

    python benchmarks/brief_quality.py DIR QUESTIONS.json [--home DIR] [--show TEXT] [--verbose]

Each fact is a text that the brief must hold ("a|b": either). Printed: the share of facts in the whole brief, in the
brief proper (before "More passages") and in the short answer; the share of unanswerable questions that are admitted;
the share of false premises that the short answer corrects.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.activities import SearchRequest
from contracts.documents import DocumentRef
from contracts.evidence import Evidence, Finding, Gap
from contracts.identity import digest, evidence_id, finding_id, gap_id, source_id, sub_query_id
from contracts.plan import PlanNode
from contracts.roles import (
    ANALYZER,
    PLANNER,
    SYNTHESIZER,
    AnalyzeInput,
    PlanInput,
    RoleInput,
    RoleSpec,
    SourceExtract,
    WriteInput,
)
from contracts.vocabulary import EngineKind
from providers.extractive import ExtractiveEngine
from providers.interfaces import EngineTask
from providers.isolation.pool import SubprocessPool
from providers.search.corpus.library import CorpusLibrary

CORPUS = "benchmark"


@dataclass
class Score:
    """Sums over all questions."""

    facts: int = 0
    found: int = 0
    proper: int = 0
    short: int = 0
    unanswerable: int = 0
    admitted: int = 0
    premises: int = 0
    corrected: int = 0
    refused: list[str] = field(default_factory=list)


async def _draft(engine: ExtractiveEngine, role: RoleSpec, given: RoleInput, documents: dict[str, str]) -> Any:
    task = EngineTask(role=role, input=given, documents=documents, system="", prompt="", prompt_version="")
    return (await engine.answer(task)).draft


async def brief(library: CorpusLibrary, engine: ExtractiveEngine, question: str, per_query: int) -> tuple[str, int]:
    """The brief for one question, and the number of findings."""
    base = {
        "research_id": "b",
        "operation": "b",
        "engine": EngineKind.EXTRACTIVE,
        "date": "2026-01-01",
        "query": question,
    }
    snapshot = await library.describe(CORPUS)
    plan = await _draft(engine, PLANNER, PlanInput(**base, corpus=snapshot), {})
    queries, sources, documents, gathered = [], {}, {}, []
    term_documents: dict[str, int] = {}
    searched = None
    for number, proposal in enumerate(plan.sub_queries, start=1):
        query = PlanNode(id=sub_query_id(proposal.query), text=proposal.query, facet=proposal.facet, priority=number)
        request = SearchRequest(research_id="b", operation="b", provider="corpus", corpus=CORPUS, text=query.text)
        response = await library.search(request)
        searched = response.documents_searched
        term_documents.update(response.term_documents)
        queries.append(query)
        taken = []
        for hit in response.hits[:per_query]:
            key = source_id(hit.url)
            document = await library.read(hit.url)
            reference = DocumentRef(hash=digest(document.text), size=len(document.text))
            documents[reference.hash] = document.text
            extract = SourceExtract(
                id=key, url=hit.url, title=document.title, quality="high", text=reference, sections=hit.sections
            )
            sources.setdefault(key, extract)
            taken.append(extract)
        gathered.append(taken)
    known = {"documents_searched": searched, "term_documents": term_documents}
    findings, evidence, gaps = [], {}, {}
    for query, taken in zip(queries, gathered, strict=True):
        draft = await _draft(engine, ANALYZER, AnalyzeInput(**base, **known, sub_query=query, sources=taken), documents)
        for found in draft.findings:
            ids = []
            for quote in found.quotes:
                text = documents[sources[quote.source_id].text.hash]
                end = quote.start + len(quote.quote)
                assert text[quote.start : end] == quote.quote
                piece = Evidence(
                    id=evidence_id(quote.source_id, quote.start, end),
                    source_id=quote.source_id,
                    start=quote.start,
                    end=end,
                    quote_hash=digest(quote.quote),
                    sub_query_id=query.id,
                )
                evidence[piece.id] = piece
                ids.append(piece.id)
            findings.append(
                Finding(
                    id=finding_id(found.content, ids),
                    statement=found.content,
                    confidence=found.confidence,
                    evidence_ids=ids,
                    source_ids=sorted({quote.source_id for quote in found.quotes}),
                    sub_query_id=query.id,
                    category=found.category,
                )
            )
        for found in draft.gaps:
            key = gap_id(found.description)
            gaps[key] = Gap(id=key, description=found.description, kind=found.kind, priority=found.priority)
    given = WriteInput(
        **base,
        **known,
        sub_queries=queries,
        findings=findings,
        evidence=list(evidence.values()),
        sources=list(sources.values()),
        gaps=list(gaps.values()),
        corpus=snapshot,
    )
    return (await _draft(engine, SYNTHESIZER, given, documents)).markdown, len(findings)


def plain(text: str) -> str:
    """A text for comparing: no escapes, one space, small letters."""
    return re.sub(r"\s+", " ", re.sub(r"[>\\]", "", text)).casefold()


def holds(text: str, fact: str) -> bool:
    """Whether a text holds one of the wordings of a fact."""
    return any(plain(wording) in text for wording in fact.split("|"))


def count(score: Score, entry: dict, markdown: str, findings: int, *, verbose: bool) -> None:
    """Add one brief to the score."""
    text = plain(markdown)
    short = text.partition("## short answer")[2].partition(" ## ")[0]
    proper = text.partition("## more passages")[0]
    if entry["kind"] == "unanswerable":
        score.unanswerable += 1
        right = findings == 0 and all(plain(name) in text for name in entry["names"])
        score.admitted += right
        if not right:
            print(f"  not admitted: {entry['question']}")
        return
    if not findings:
        score.refused.append(entry["question"])
    facts = entry["facts"]
    missing = [fact for fact in facts if not holds(text, fact)]
    score.facts += len(facts)
    score.found += len(facts) - len(missing)
    score.proper += sum(holds(proper, fact) for fact in facts)
    score.short += sum(holds(short, fact) for fact in facts)
    if entry["kind"] == "premise":
        score.premises += 1
        score.corrected += any(holds(short, fact) for fact in facts)
    if verbose:
        inside = sum(holds(short, fact) for fact in facts)
        print(
            f"  {len(facts) - len(missing)}/{len(facts)} short {inside}  {entry['question'][:66]}  missing: {missing}"
        )


async def main() -> None:
    """Run all questions of one file against one folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--home", type=Path, help="where the index is kept; a temporary folder by default")
    parser.add_argument("--show", help="print the briefs of the questions that hold this text")
    parser.add_argument("--per-query", type=int, default=5, help="sources read for each sub-query")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    entries = json.loads(options.questions.read_text())["questions"]
    if options.show:
        entries = [entry for entry in entries if options.show.casefold() in entry["question"].casefold()] or [
            {"question": options.show, "kind": "answerable", "facts": []}
        ]
    with tempfile.TemporaryDirectory() as temporary:
        home = options.home or Path(temporary)
        async with SubprocessPool(2) as pool:
            library = CorpusLibrary(home, pool)
            library.add(CORPUS, options.folder)
            await library.refresh(CORPUS)
            engine, score, started = ExtractiveEngine(), Score(), time.perf_counter()
            for entry in entries:
                markdown, findings = await brief(library, engine, entry["question"], options.per_query)
                if options.show:
                    print(markdown)
                count(score, entry, markdown, findings, verbose=options.verbose)
            report(score, time.perf_counter() - started, len(entries))


def report(score: Score, seconds: float, questions: int) -> None:
    """Print the shares."""
    facts = max(1, score.facts)
    print(f"facts found {score.found}/{score.facts} = {score.found / facts:.2f}")
    print(f"  in the brief proper {score.proper / facts:.2f}, in the short answer {score.short / facts:.2f}")
    print(f"unanswerable admitted {score.admitted}/{score.unanswerable}; wrongly refused {score.refused}")
    print(f"false premises corrected in the short answer {score.corrected}/{score.premises}")
    print(f"{seconds / max(1, questions):.2f} s a question")


if __name__ == "__main__":
    asyncio.run(main())
