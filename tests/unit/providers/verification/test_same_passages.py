"""What several readers state of the same passage, as a writer gets it."""

import pytest

from contracts.evidence import Evidence, Finding
from providers.verification.same_passages import findings_for_writer

PLACES = {"ev-1": (0, 100), "ev-2": (40, 120), "ev-3": (110, 300), "ev-4": (0, 100), "ev-5": (20, 60), "ev-6": (0, 110)}
EVIDENCE = {
    name: Evidence(id=name, source_id="src-2" if name == "ev-4" else "src-1", start=start, end=end)
    for name, (start, end) in PLACES.items()
}


def finding(name: str, statement: str, *passages: str, iteration: int = 1, priority: int = 2) -> Finding:
    """A finding on passages of `EVIDENCE`."""
    sources = list(dict.fromkeys(EVIDENCE[passage].source_id for passage in passages))
    return Finding(
        id=name,
        statement=statement,
        evidence_ids=list(passages),
        source_ids=sources,
        iteration=iteration,
        priority=priority,
    )


def written(*readings: list[Finding]) -> list[Finding]:
    """The findings of readings as a writer gets them."""
    return list(findings_for_writer(readings, EVIDENCE, "en").values())


def test_findings_on_the_same_words_stand_together() -> None:
    """What shares more than half of a passage stands together, within its iteration; neighbours do not count."""
    findings = [
        finding(name, "It is so.", name, iteration=2 if name == "ev-5" else 1)
        for name in ("ev-1", "ev-4", "ev-3", "ev-5", "ev-2")
    ]
    assert [one.id for one in written(findings)] == ["ev-1", "ev-2", "ev-4", "ev-3", "ev-5"]


def test_what_several_readers_quote_alike_is_one_finding() -> None:
    """One passage of both differs by its end: the longer one stays, with the best priority, for all sub-queries."""
    mine = finding("f-1", "A lock is held until the end.", "ev-1", "ev-3", priority=3)
    other = finding("f-2", "Until the end, a lock is held.", "ev-3", "ev-6", priority=1)
    (one,) = written([mine], [other])
    assert (one.id, one.statement, one.beside) == ("f-1", mine.statement, [])
    assert one.evidence_ids == ["ev-3", "ev-6"]
    assert (one.priority, one.sub_query_count) == (1, 2)


@pytest.mark.parametrize(
    ("first", "later", "statement", "beside"),
    [
        ("It waits.", "It waits 30 seconds.", "It waits 30 seconds.", []),
        ("It waits 30 seconds.", "It waits.", "It waits 30 seconds.", []),
        ("`lock_timeout` ends it.", "It waits 30 seconds.", "`lock_timeout` ends it.", ["It waits 30 seconds."]),
    ],
    ids=["later one has more", "first one has more", "both have something"],
)
def test_a_statement_stays_for_a_figure_or_a_name(first: str, later: str, statement: str, beside: list[str]) -> None:
    """The statement to which the other adds nothing stands for both; if each has something of its own, both stay."""
    (one,) = written([finding("f-1", first, "ev-1")], [finding("f-2", later, "ev-1")])
    assert (one.statement, one.beside) == (statement, beside)


def test_statements_of_one_reader_stay_apart() -> None:
    """One reader may make two statements of one passage; what contradicts something is never joined."""
    mine = [finding("f-1", "It takes minutes.", "ev-1"), finding("f-2", "It needs room.", "ev-1")]
    against = finding("f-3", "Minutes are enough.", "ev-1").with_fields(contradicts=["f-9"])
    part = finding("f-4", "It is not undone.", "ev-5")
    assert [one.id for one in written(mine, [against, part])] == ["f-1", "f-2", "f-3", "f-4"]


def test_a_later_prompt_begins_as_the_earlier_one() -> None:
    """Of a later iteration a finding that adds a name stands by itself; one that adds nothing is not shown again."""
    earlier = finding("f-1", "It waits.", "ev-1")
    repeated = finding("f-2", "Waiting it is.", "ev-1", iteration=2)
    fuller = finding("f-3", "It waits for `lock_timeout`.", "ev-6", iteration=2)
    first, last = written([earlier], [repeated, fuller])
    assert (first.statement, first.evidence_ids) == (earlier.statement, earlier.evidence_ids)
    assert last == fuller
