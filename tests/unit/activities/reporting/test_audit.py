"""The audit of a report."""

import copy
import json
from typing import Any

import pytest

from activities.reporting.audit import AuditResult, audit
from contracts.addresses import digest
from providers.errors import ContentMissing
from tests.fakes.killers import HereCalls
from tests.unit.activities.reporting.sample import SAMPLE, VACUUM, rendered, store_of
from tests.unit.activities.scripted import MemoryStore

RENDERING = rendered()
REPORT: dict[str, Any] = json.loads(RENDERING.document)


@pytest.fixture
async def store() -> MemoryStore:
    """The stored documents of the sample run."""
    return await store_of(SAMPLE.texts)


async def audited(
    store: MemoryStore, report: dict[str, Any], markdown: str | None = None, html: bytes | None = None
) -> AuditResult:
    """The audit of a report against a store."""
    return await audit(
        json.dumps(report).encode(), store.text_by_hash, store.by_hash, HereCalls(), markdown=markdown, html=html
    )


async def test_untouched_report_passes_and_everything_is_counted(store: MemoryStore) -> None:
    """What was compared is counted, what cannot be compared is counted too, and nothing differs."""
    result = await audited(store, REPORT, RENDERING.markdown, RENDERING.html.encode())
    assert result.problems == []
    assert result.passed
    assert result.checked == {
        "stored texts": 3,
        "stored originals": 3,
        "passages": 6,
        "claims": 8,
        "word for word claims": 6,
        "claims judged by rules": 2,
        "findings": 1,
        "text in report.json": 1,
        "report.md": 1,
        "report.html": 1,
        "fields of the report": 47,
        "sections of the text": 6,
    }
    assert result.unchecked == {"headings that the stored text does not have": 6}


async def test_missing_file_is_a_problem_and_its_passages_are_counted_as_unchecked(store: MemoryStore) -> None:
    """A document that is gone fails the audit; its passages are counted as unchecked, not skipped in silence."""
    del store.documents[digest(VACUUM)]
    with pytest.raises(ContentMissing):
        await store.text_by_hash(digest(VACUUM))
    result = await audited(store, REPORT)
    assert [problem.kind for problem in result.problems] == ["text_missing"]
    assert result.unchecked["passages without their text"] == 4


def changed(path: list[str | int], value: object) -> dict[str, Any]:
    """The sample report with one value replaced."""
    report = copy.deepcopy(REPORT)
    place: Any = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return report


@pytest.mark.parametrize(
    ("change", "counted", "skipped"),
    [
        ({"evidence_ids": [], "citation_numbers": [], "verdict": "unverified", "method": "none"}, 1, 0),
        ({"verdict": "contradicted", "method": "model"}, 0, 1),
    ],
)
async def test_what_no_rule_can_judge_again_is_counted(
    store: MemoryStore, change: dict[str, Any], counted: int, skipped: int
) -> None:
    """A statement without a citation, and the verdict of a model, are no differences; neither is called compared."""
    result = await audited(store, changed(["claims", 5], lambda claim: claim | change))
    assert {problem.kind for problem in result.problems} <= {"field_differs", "section_altered", "verdict_differs"}
    assert result.checked.get("claims without a citation", 0) == counted
    assert result.unchecked.get("verdicts of a model, which no rule gives again", 0) == skipped


@pytest.mark.parametrize("cover", ["\0", "<div>" * 3_000])
async def test_nothing_hides_a_link_of_a_page_from_the_audit(store: MemoryStore, cover: str) -> None:
    """What a parser stops at is no end of the page: browsers read on."""
    page = f'{RENDERING.html}{cover}<a href="https://evil.test/">'
    result = await audited(store, changed(["forms", "report.html"], digest(page)), html=page.encode())
    assert {problem.kind for problem in result.problems} == {"page_differs"}
