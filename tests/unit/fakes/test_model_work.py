"""The fake model against our own prompts: it must understand them, or tests of whole runs prove nothing."""

import json

from activities.roles.prompt_rendering import prompt_of, render_role
from contracts.addresses import digest
from contracts.evidence import DocumentRef, Evidence, Finding, Gap, SectionHint
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, PLANNER, REFINER, SYNTHESIZER, AnalyzeInput, PlanInput, RefineInput, WriteInput
from contracts.roles import SourceExtract as Extract
from contracts.vocabulary import EngineKind
from tests.fakes import model_work
from tests.fakes.model_request import read_request

QUESTION = "How does PostgreSQL prevent transaction ID wraparound?"
SENTENCE = "Vacuuming marks old rows as frozen, so that transaction ID wraparound cannot hide them."
TEXT = f"Routine vacuuming\n\nSome pages are about other things entirely. {SENTENCE} It runs by itself."
COMMON = {"research_id": "r-1", "operation": "x/1", "engine": EngineKind.MODEL, "date": "2026-11-21", "query": QUESTION}
STORED = DocumentRef(hash=digest(TEXT), size=len(TEXT))
EXTRACT = Extract(
    id="src-0123456789", url="corpus:m/v", title="Vacuum", text=STORED, sections=[SectionHint(start=0, end=len(TEXT))]
)
DOCUMENTS = {STORED.hash: TEXT}


def test_plans_the_question_that_was_asked() -> None:
    """The first sub-query is the question, the others share its words."""
    rendered = render_role(PLANNER, PlanInput(**COMMON), {})
    plan = model_work.plan(rendered.prompt)
    assert plan["sub_queries"][0]["query"] == QUESTION.rstrip("?")
    assert len(plan["sub_queries"]) == 3


def test_quotes_what_stands_in_the_sources() -> None:
    """Every quote is a verbatim part of the stored text, under the id of its source, the best match first."""
    given = AnalyzeInput(**COMMON, sub_query=PlanNode(id="sq-1", text="freezing of rows"), sources=[EXTRACT])
    analysis = model_work.analysis(render_role(ANALYZER, given, DOCUMENTS).prompt)
    quotes = [quote for finding in analysis["findings"] for quote in finding["quotes"]]
    assert {quote["source_id"] for quote in quotes} == {EXTRACT.id}
    assert quotes[0]["quote"] == SENTENCE
    assert all(quote["quote"] in TEXT for quote in quotes)
    assert analysis["gaps"] == []


def test_cites_the_markers_that_it_was_given() -> None:
    """The report states each finding with its own marker and names the open gaps."""
    start = TEXT.index(SENTENCE)
    evidence = Evidence(
        id="ev-0123456789", source_id=EXTRACT.id, start=start, end=start + len(SENTENCE), quote_hash=digest(SENTENCE)
    )
    finding = Finding(id="f-1", statement="Freezing prevents it.", evidence_ids=[evidence.id], source_ids=[EXTRACT.id])
    gap = Gap(id="gap-0123456789", description="what freezing costs")
    given = WriteInput(**COMMON, findings=[finding], evidence=[evidence], sources=[EXTRACT], gaps=[gap])
    report = model_work.report(render_role(SYNTHESIZER, given, DOCUMENTS).prompt)
    assert "Freezing prevents it [ev-0123456789]." in report
    assert "- what freezing costs" in report
    assert report.count("## ") == 4


def test_judges_the_gaps_that_it_was_shown() -> None:
    """Each gap comes back under its own id, and no iteration is asked for when none remains."""
    gap = Gap(id="gap-0123456789", description="what freezing costs")
    for remaining in (0, 1):
        given = RefineInput(**COMMON, gaps=[gap], remaining_iterations=remaining)
        refined = model_work.refinement(render_role(REFINER, given, {}).prompt)
        assert [judged["gap_id"] for judged in refined["gap_analysis"]] == [gap.id]
        assert refined["iteration_recommendation"]["should_iterate"] is bool(remaining)


def test_recognizes_each_role_by_the_first_line_of_its_prompt() -> None:
    """The role is read from the system prompt and needs no schema."""
    turns = [{"role": "user", "content": render_role(PLANNER, PlanInput(**COMMON), {}).prompt}]
    body = {"model": "m", "max_tokens": 1, "system": prompt_of(PLANNER).system, "messages": turns}
    assert read_request(json.dumps(body).encode()).role == "planner"
