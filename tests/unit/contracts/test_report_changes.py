"""Comparison of two reports: what counts as the same claim, as one in other words, and as new or gone."""

import json
from typing import Any

import pytest

from contracts.report import Report, ReportChanges, compare_files, compare_reports

VACUUM = "Vacuum must run at least once every two billion transactions."


def claim(text: str, section: str = "Limits", verdict: str = "supported", *evidence: str) -> dict[str, Any]:
    return {"id": text, "text": text, "section": section, "verdict": verdict, "evidence_ids": list(evidence)}


def source(name: str, text: str = "a", status: str = "full") -> dict[str, Any]:
    return {"id": name, "url": f"https://{name}.example/", "title": name, "text_hash": text, "status": status}


def report(*claims: dict[str, Any], sources: list[dict[str, Any]] | None = None, **fields: Any) -> Report:
    whole = {"research_id": "r-1", "report": {"markdown": ""}, "claims": list(claims), "sources": sources or []}
    return Report.model_validate(whole | fields)


def kinds(before: Report, after: Report) -> list[tuple[str, str, str]]:
    return [(one.kind.value, one.before, one.after) for one in compare_reports(before, after).claims]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{VACUUM} [1]", f"{VACUUM} [12]"),
        (f"{VACUUM} [1][2].", f"{VACUUM}"),
        (f"> {VACUUM}\n> [3]", f"{VACUUM} [1]"),
        ("vacuum  must run at least once every two billion transactions", VACUUM),
    ],
)
def test_numbers_of_citations_and_layout_are_no_difference(before: str, after: str) -> None:
    """A claim in the same words is the same claim, wherever it stands and whatever its sources are numbered."""
    assert kinds(report(claim(before)), report(claim("Another one of the new report."), claim(after)))[0][0] == "new"
    assert len(kinds(report(claim(before)), report(claim("Another one of the new report."), claim(after)))) == 1


def test_words_without_citations_leave_no_gap_before_a_full_stop() -> None:
    """A citation goes with the space before it, also between two sentences."""
    (change,) = compare_reports(report(), report(claim("Workers wait [1]. They start [2](#s2) late [3]."))).claims
    assert change.after == "Workers wait. They start late."


def test_another_verdict_on_the_same_words_is_named() -> None:
    """The sign that a report prints behind a doubtful statement is no part of its words."""
    before = report(claim(f"{VACUUM} [1]"))
    after = report(claim(f"{VACUUM} [1] ✗ not supported by the source", "Limits", "unsupported"))
    (change,) = compare_reports(before, after).claims
    assert (change.kind, change.verdict_before, change.verdict_after) == ("other_verdict", "supported", "unsupported")
    assert change.after == VACUUM


def test_a_claim_in_other_words_is_one_change() -> None:
    """The most similar pairs belong together; what has no partner is new or gone."""
    old = [claim(VACUUM), claim("Autovacuum starts three workers by default."), claim("Locks end with a deadlock.")]
    new = [
        claim("Autovacuum starts five workers by default."),
        claim("Vacuum must run at least once every three billion transactions."),
        claim("Backups copy all files of the cluster."),
    ]
    assert kinds(report(*old), report(*new)) == [
        ("worded_anew", old[1]["text"], new[0]["text"]),
        ("worded_anew", VACUUM, new[1]["text"]),
        ("new", "", new[2]["text"]),
        ("gone", old[2]["text"], ""),
    ]


def test_a_statement_in_two_sections_is_two_claims() -> None:
    """The one that is gone is that of the section that lacks it."""
    before = report(claim(VACUUM, "Limits"), claim(VACUUM, "Overview"))
    (change,) = compare_reports(before, report(claim(VACUUM, "Overview"))).claims
    assert (change.kind, change.section) == ("gone", "Limits")


def test_sources_are_compared_by_their_texts() -> None:
    """Changed, gone and unreachable ones are named with the passages that were cited; those never read are not."""
    evidence = [
        {"id": "ev-1", "source_id": "other", "quote": "Three workers."},
        {"id": "ev-2", "source_id": "other", "quote": "Nobody cites this."},
    ]
    names = ("same", "other", "gone", "away")
    old = [*map(source, names), source("never", status="failed")]
    before = report(claim(VACUUM, "Limits", "supported", "ev-1"), sources=old, evidence=evidence)
    now = [source("same"), source("other", "b"), source("away"), source("never", "c")]
    found = compare_reports(before, report(claim(VACUUM), sources=now), {"away": "timeout"}).sources
    assert [(one.source_id, one.kind.value, one.passages) for one in found] == [
        ("other", "changed", ["Three workers."]),
        ("gone", "gone", []),
        ("away", "unreachable", []),
    ]


def test_a_report_does_not_differ_from_itself() -> None:
    """Nothing is named, and a file that is no report is told by its place."""
    whole = report(claim(VACUUM), claim("Locks end with a deadlock."), sources=[source("same")])
    data = json.dumps(whole.model_dump(mode="json")).encode()
    assert compare_files(data, data) == ReportChanges(since="")
    assert compare_files(data, b"{}") == 1
    assert compare_files(b"no JSON", data) == 0
