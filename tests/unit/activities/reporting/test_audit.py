"""The audit of a report."""

import copy
import json
from typing import Any

import pytest

from activities.reporting.audit import AuditResult, audit
from benchmarks.truth.forgery import forge
from contracts.addresses import digest
from providers.errors import ContentMissing
from providers.isolation.pool import SubprocessPool
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


async def test_a_process_that_can_be_killed_finds_the_same(store: MemoryStore) -> None:
    """Counts and differences come back from the child as they were found."""
    altered = changed(["evidence", 0, "quote"], "Other words.")
    async with SubprocessPool(1) as pool:
        there = await audit(json.dumps(altered).encode(), store.text_by_hash, store.by_hash, pool)
    assert not there.passed
    assert there == await audited(store, altered)


@pytest.mark.parametrize("position", [0, 100, len(VACUUM.encode()) - 1])
@pytest.mark.parametrize("prefix", ["", "raw "])
async def test_one_altered_byte_of_a_stored_file_is_found(store: MemoryStore, position: int, prefix: str) -> None:
    """One changed byte of a stored text or of a stored original fails the audit."""
    identity = digest(prefix + VACUUM)
    data = bytearray(store.documents[identity])
    data[position] ^= 1
    store.documents[identity] = bytes(data)
    result = await audited(store, REPORT)
    assert {problem.kind for problem in result.problems} == {"original_differs" if prefix else "text_differs"}


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


CASES: list[tuple[str, list[str | int], Any]] = [
    ("quote_differs", ["evidence", 0, "quote"], "Other words."),
    ("offset_differs", ["evidence", 0, "start"], lambda start: start + 1),
    ("field_differs", ["evidence", 0, "prefix"], "other"),
    ("evidence_without_source", ["evidence", 0, "source_id"], "src-0000000000"),
    ("field_differs", ["evidence"], lambda items: [*items, items[0]]),
    ("field_differs", ["sources"], lambda items: [*items, items[0]]),
    ("evidence_without_text", ["sources", 0, "text_hash"], None),
    ("field_differs", ["citations", 1, "number"], 1),
    ("section_altered", ["report", "markdown"], lambda text: text + "\nMore [3].\n"),
    ("section_altered", ["report", "markdown"], lambda text: text + "\nSee https://evil.test/x now.\n"),
    ("section_altered", ["report", "markdown"], lambda text: text + "\n[x][y]\n\n[y]: //evil.test\n"),
    ("field_differs", ["claims", 0, "start"], lambda start: start + 1),
    ("field_differs", ["claims", 0, "text"], "Other words. [1]"),
    ("field_differs", ["claims", 0], lambda claim: claim | {"evidence_ids": [], "citation_numbers": []}),
    ("field_differs", ["claims", 0, "citation_numbers"], [2]),
    ("verdict_differs", ["claims", 5, "method"], "verbatim"),
    ("verdict_differs", ["claims", 5], lambda claim: claim | {"method": "none", "verdict": "supported"}),
    ("field_differs", ["claims"], lambda claims: claims[:-1]),
    ("field_differs", ["claims", 0, "id"], "c-" + 32 * "0"),
    ("verdict_differs", ["claims", 0], lambda claim: claim | {"method": "rules", "verdict": "unsupported"}),
    ("finding_differs", ["findings", 0, "evidence_ids"], ["ev-0000000000"]),
    ("text_altered", ["report", "markdown"], lambda text: text.replace("two billion", "two million")),
    ("section_altered", ["report", "markdown"], lambda text: text.replace("> To avoid this", "> To avoid all this")),
    ("field_differs", ["verification", "verdict_counts"], {"supported": 8}),
    ("field_differs", ["verification", "effective_citations"], 99),
    ("outcome_differs", ["stop_reason"], "budget_time"),
    ("field_differs", ["verification", "mode"], "full"),
    ("field_differs", ["citations_count"], 9),
    ("field_differs", ["queries_failed"], 9),
    ("field_differs", ["confidence_summary"], {"high": 9}),
    ("field_differs", ["claims", 0, "section"], "Elsewhere"),
    ("verdict_differs", ["claims", 5, "reason"], "Everything agrees."),
    ("field_differs", ["outcome"], "partial"),
    ("not_renderable", ["effective_request"], {}),
    ("finding_differs", ["findings", 0, "source_ids"], []),
    ("id_differs", ["findings", 0, "statement"], "Tables need no vacuum."),
    ("place_differs", ["evidence", 0, "page"], 3),
    ("malformed", ["schema_version"], 2),
]


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


@pytest.mark.parametrize(("kind", "path", "value"), CASES, ids=[f"{kind}-{n}" for n, (kind, _, _) in enumerate(CASES)])
async def test_every_altered_field_is_found(
    store: MemoryStore, kind: str, path: list[str | int], value: object
) -> None:
    """A report in which one thing was changed fails the audit with the kind of the change."""
    result = await audited(store, changed(path, value))
    assert kind in {problem.kind for problem in result.problems}
    assert not result.passed


@pytest.mark.parametrize("method", ["verbatim", "rules", "model"])
@pytest.mark.parametrize("place", [0, 5])
@pytest.mark.parametrize("new_id", [False, True])
async def test_a_sentence_that_is_forged_throughout_is_found(
    store: MemoryStore, method: str, place: int, new_id: bool
) -> None:
    """Text, claim and hashes agree; the id of the claim, or its verdict, does not follow from its words."""
    claim = REPORT["claims"][place]
    words = claim["text"].replace("two ", "nine ", 1).replace("200", "900", 1)
    assert words != claim["text"]
    forged = forge(REPORT, place, words, "supported", method, new_id=new_id)
    result = await audited(store, forged, forged["report"]["markdown"])
    kinds = {problem.kind for problem in result.problems}
    assert ("verdict_differs" if new_id else "field_differs") in kinds
    assert "text_altered" not in {problem.kind for problem in result.problems}


@pytest.mark.parametrize("cover", ["\0", "<div>" * 3_000])
async def test_nothing_hides_a_link_of_a_page_from_the_audit(store: MemoryStore, cover: str) -> None:
    """What a parser stops at is no end of the page: browsers read on."""
    page = f'{RENDERING.html}{cover}<a href="https://evil.test/">'
    result = await audited(store, changed(["forms", "report.html"], digest(page)), html=page.encode())
    assert {problem.kind for problem in result.problems} == {"page_differs"}
