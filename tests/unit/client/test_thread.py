"""A thread as one document: one list of sources, new numbers, verdicts as they were, and an audit that passes."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from activities.reporting.audit import AuditResult, audit
from client.exchange.thread import ThreadPart, merge, render_thread
from contracts.addresses import digest, evidence_id, source_version_id
from contracts.evidence import DocumentRef
from contracts.report import Report, ThreadAnswer
from tests.every_strategy.joined import Trial, world_of
from tests.fakes.killers import HereCalls
from tests.unit.workflows.test_threads import ELSE, QUESTION, SAME, thread

FAILED = ThreadAnswer(
    research_id="r-failed", query="And on Sundays?", status="failed", reason="no worker", cost_usd=None
)


def part_of(report: Report, **fields: Any) -> ThreadPart:
    answer = ThreadAnswer(
        research_id=report.research_id, query=report.query, status=report.outcome, answered=True, **fields
    )
    return ThreadPart(answer=answer, report=report)


async def parts_of(trials: list[Trial]) -> tuple[list[ThreadPart], dict[str, str]]:
    """The answers of runs, and the stored texts of their sources by hash."""
    reports = [Report.model_validate(await trial.document()) for trial in trials]
    content = trials[0].world.content
    hashes = {source.text_hash for report in reports for source in report.sources if source.text_hash}
    return [part_of(report) for report in reports], {
        name: await content.get_text(DocumentRef(hash=name)) for name in hashes
    }


async def audited(forms: Any, texts: Mapping[str, str]) -> AuditResult:
    async def text(name: str) -> str:
        return texts[name]

    return await audit(
        forms.document.encode(),
        text,
        None,
        HereCalls(),
        version="0.1.0",
        markdown=forms.markdown,
        html=forms.html.encode(),
    )  # type: ignore[arg-type]  # in this process


async def test_a_thread_is_one_report_that_an_audit_passes(tmp_path: Path) -> None:
    """Three answers, one of them failed between: each source once, numbers renewed, anchors and passages resolve."""
    async with world_of(tmp_path, "model") as (world, _):
        trials = await thread(world, QUESTION, SAME, ELSE, limits={"max_iterations": 1})
        parts, texts = await parts_of(trials)
    parts.insert(1, ThreadPart(answer=FAILED))
    forms = render_thread(parts, texts)
    result = await audited(forms, texts)
    assert result.problems == []
    report = Report.model_validate_json(forms.document)
    used = [{source.id for _, source in part.report.cited_sources()} for part in parts if part.report]
    assert len(report.citations) == len(set.union(*used)) < sum(map(len, used))
    assert [item.number for item in report.citations] == list(range(1, len(report.citations) + 1))
    assert len({source.text_hash for source in report.sources}) == len(report.sources)
    assert {int(number) for number in re.findall(r"(?<!\\)\[(\d+)\]", forms.markdown)} == {
        item.number for item in report.citations
    }
    assert "## 2 · And on Sundays? – Failed" in forms.markdown
    assert [line[:6] for line in forms.markdown.splitlines() if re.match(r"## \d", line)] == [
        f"## {number} ·" for number in range(1, 5)
    ]
    targets = set(re.findall(r'href="#([^"]+)"', forms.html))
    assert targets <= set(re.findall(r'\bid="([^"]+)"', forms.html))
    claims = sum(len(part.report.claims) for part in parts if part.report)
    assert len(report.claims) == claims
    assert report.outcome == "partial"
    assert [answer.research_id for answer in report.answers] == ["r-0", "r-failed", "r-1", "r-2"]


async def test_equal_texts_are_one_source_and_two_texts_of_one_page_are_two(tmp_path: Path) -> None:
    """By the hash of the text: the same text elsewhere adds an address; another text of an address is another source.

    Thirty answers over the same pages have as many sources as one of them.
    """
    async with world_of(tmp_path, "extractive") as (world, _):
        parts, texts = await parts_of(await thread(world, QUESTION))
    report = parts[0].report
    assert report is not None
    whole = merge([part_of(report) for _ in range(30)]).report
    assert len(whole.sources) == len([source for source in report.sources if source.text_hash])
    assert {item.id for item in whole.evidence} <= {item.id for item in report.evidence}
    assert whole.report.draft.count("\n## ") == 30
    assert len(whole.answers) == 30
    page = next(source for _, source in report.cited_sources())
    elsewhere = renamed(report, page.id, "src-" + "1" * 32, url="https://mirror.example/vacuum")
    merged = merge([parts[0], part_of(elsewhere)]).report
    assert len(merged.sources) == len([source for source in report.sources if source.text_hash])
    assert "https://mirror.example/vacuum" in next(one for one in merged.sources if one.id == page.id).aliases
    text = texts[page.text_hash or ""] + "\nA later word.\n"
    changed = renamed(report, page.id, page.id, text_hash=digest(text))
    pair = [parts[0], part_of(changed)]
    merged = merge(pair).report
    version = source_version_id(page.id, digest(text))
    assert {page.id, version} <= {source.id for source in merged.sources}
    forms = render_thread(pair, {**texts, digest(text): text})
    assert (await audited(forms, {**texts, digest(text): text})).problems == []
    assert len(Report.model_validate_json(forms.document).citations) == len(report.citations) + 1


def renamed(report: Report, old: str, new: str, **changes: Any) -> Report:
    """A report one of whose sources has another id, with the ids of its passages, and other fields."""
    packed = report.model_dump_json()
    for item in report.evidence:
        if item.source_id == old:
            packed = packed.replace(item.id, evidence_id(new, item.start, item.end))
    document = json.loads(packed.replace(old, new))
    document["sources"] = [source | (changes if source["id"] == new else {}) for source in document["sources"]]
    return Report.model_validate(document)


def test_a_thread_without_answers_makes_no_document() -> None:
    """There is nothing to show with sources, nor without a question."""
    for parts in ([], [ThreadPart(answer=FAILED)]):
        with pytest.raises(ValueError, match="no question of the thread has a report"):
            render_thread(parts, {})
