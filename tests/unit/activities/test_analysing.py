"""The analyzer's draft as findings with evidence."""

from typing import Any

import pytest

from activities.roles.analyzer import finish_analysis
from activities.roles.finishers import RoleWork
from contracts import addresses, roles
from contracts.outcome import CallAccount
from contracts.vocabulary import Confidence, EngineKind
from tests.unit.activities.scripted import SOURCE, analyze_input, hint, reference, source

TEXT = (
    "# Routine Vacuuming\r\n\r\nVacuum must visit every table at least once. 🧹 It café-reads pages.\n\n"
    "## Wraparound\n\nOld rows would   seem to\nvanish after wraparound.\n"
)
OTHER = "Plain text about autovacuum workers and their launcher."
OTHER_ID = "src-0000000002"


def analysed(draft: dict[str, Any], engine: EngineKind = EngineKind.MODEL, **changes: Any) -> roles.AnalyzerResult:
    """What becomes of an analyzer's draft on two sources."""
    sources = [
        source(reference(TEXT)),
        source(
            reference(OTHER), id=OTHER_ID, sections=[hint(OTHER, OTHER).model_copy(update={"heading": "From search"})]
        ),
        source(None, id="src-0000000003", snippet="only a snippet here"),
    ]
    documents = {reference(text).hash: text for text in (TEXT, OTHER)}
    request = analyze_input(sources, **changes)
    parsed = roles.AnalyzerAnswer.model_validate({"findings": [], **draft})
    return finish_analysis(RoleWork(request, parsed, documents, CallAccount(engine=engine)))


def claim(quote: str, source_id: str = SOURCE, **changes: Any) -> dict[str, Any]:
    """A finding with one quote."""
    fields = {
        "content": f"Claim: {quote[:40]}",
        "confidence": "high",
        "quotes": [{"source_id": source_id, "quote": quote}],
    }
    return {**fields, **changes}


def test_evidence_is_the_stored_passage() -> None:
    """Offsets, hash, heading and ids come from the stored text, whatever blanks the quote has (invariant 10)."""
    output = analysed({"findings": [claim("Old rows would seem to vanish after wraparound.")]})
    evidence, finding = output.evidence[0], output.findings[0]
    words = "Old rows would   seem to\nvanish after wraparound."
    assert TEXT[evidence.start : evidence.end] == words
    assert evidence.quote_hash == addresses.digest(words)
    assert evidence.id == addresses.evidence_id(SOURCE, evidence.start, evidence.end)
    assert evidence.heading == "Wraparound"
    assert (finding.evidence_ids, finding.source_ids) == ([evidence.id], [SOURCE])
    assert finding.id == addresses.finding_id(finding.statement, [evidence.id])
    assert (
        finding.sub_query_id == evidence.sub_query_id == addresses.sub_query_id("what does vacuum do about wraparound")
    )


def test_a_heading_comes_from_the_search_where_the_text_has_none() -> None:
    """Evidence of a text without headings takes the heading that retrieval knew."""
    assert analysed({"findings": [claim(OTHER, OTHER_ID)]}).evidence[0].heading == "From search"


def test_invented_quotes_are_dropped_and_counted() -> None:
    """A quote that stands nowhere is dropped; a finding without any other quote goes with it."""
    half = claim("Vacuum must visit every table at least once.")
    half["quotes"].append({"source_id": SOURCE, "quote": "Vacuum is optional for small tables."})
    output = analysed({"findings": [half, claim("Nobody ever wrote this down."), claim("x", quotes=[])]})
    assert len(output.findings) == 1
    assert len(output.evidence) == 1
    assert output.dropped_quotes == 2
    assert "2 findings dropped: no quote of theirs stands in the sources" in output.account.warnings


@pytest.mark.parametrize("source_id", ["src-9999999999", OTHER_ID, "src-0000000003", ""])
def test_a_quote_counts_only_for_its_own_given_source(source_id: str) -> None:
    """Words under an unknown source, another source or one without a text ground nothing (S0-069, S0-175)."""
    output = analysed({"findings": [claim("Vacuum must visit every table at least once.", source_id)]})
    assert (output.findings, output.evidence, output.dropped_quotes) == ([], [], 1)


@pytest.mark.parametrize(
    ("word", "confidence"),
    [
        ("HIGH", Confidence.MEDIUM),
        ("confirmed", Confidence.MEDIUM),
        ("speculation", Confidence.SPECULATION),
        ("very high", Confidence.LOW),
        ("certain", Confidence.LOW),
        ("", Confidence.LOW),
    ],
)
def test_unknown_confidences_are_low(word: str, confidence: Confidence) -> None:
    """A word outside the five levels never becomes a high one, and one source bears out no more than medium (C0-7)."""
    assert analysed({"findings": [claim(OTHER, OTHER_ID, confidence=word)]}).findings[0].confidence is confidence


def test_unknown_qualities_are_unknown_and_unknown_sources_ignored() -> None:
    """Quality words are ours, and only given sources are judged (C0-7, S0-063, S0-175)."""
    updates = [
        {"source_id": SOURCE, "quality": "Medium"},
        {"source_id": OTHER_ID, "quality": "superb"},
        {"source_id": "src-9999999999", "quality": "high"},
    ]
    output = analysed({"quality_updates": updates})
    assert [(item.source_id, item.quality) for item in output.quality_updates] == [
        (SOURCE, "medium"),
        (OTHER_ID, "unknown"),
    ]
    assert "a quality for an unknown source was ignored" in output.account.warnings


def test_gaps_are_few_distinct_and_typed() -> None:
    """At most three gaps, the most important first, without repetitions, with kinds of ours (S0-064)."""
    gaps = [
        {"description": "costs", "priority": 4},
        {"description": " COSTS? "},
        {"description": "limits", "priority": -1, "kind": "Contradiction", "suggested_queries": ["a b", "A  b", " "]},
        {"description": "history", "priority": 99, "kind": "odd"},
        {"description": "tools", "priority": 2},
        {"description": ""},
    ]
    output = analysed({"gaps": gaps})
    assert [(gap.description, gap.priority, gap.kind) for gap in output.gaps] == [
        ("limits", 1, "contradiction"),
        ("tools", 2, "missing"),
        ("costs", 4, "missing"),
    ]
    assert output.gaps[0].suggested_queries == ["a b"]


def test_findings_keep_to_the_limit() -> None:
    """Findings beyond the limit are dropped together with their evidence; a repeated finding counts once (C0-26)."""
    first, second = claim("Vacuum must visit every table at least once."), claim(OTHER, OTHER_ID)
    output = analysed({"findings": [first, first, second]}, max_findings=1)
    assert len(output.findings) == 1
    assert [item.source_id for item in output.evidence] == [SOURCE]


def test_long_statements_and_headings_fit_their_fields() -> None:
    """A statement of a finding has at most 600 characters."""
    output = analysed({"findings": [claim(OTHER, OTHER_ID, content="word " * 500, category="c" * 300)]})
    assert len(output.findings[0].statement) <= 600
    assert len(output.findings[0].category or "") <= 80


def test_analyzed_sources_are_those_that_were_seen() -> None:
    """Sources without text, and for a model those beyond twenty, do not count as analyzed (C0-23)."""
    assert analysed({}).analyzed_source_ids == [SOURCE, OTHER_ID]
    many = [source(reference(TEXT), id=f"src-{number:010d}") for number in range(25)]
    request = analyze_input(many)
    for engine, count in ((EngineKind.MODEL, 20), (EngineKind.EXTRACTIVE, 25)):
        work = RoleWork(
            request, roles.AnalyzerAnswer(findings=[]), {reference(TEXT).hash: TEXT}, CallAccount(engine=engine)
        )
        assert len(finish_analysis(work).analyzed_source_ids) == count


def test_warnings_hold_no_words_of_pages() -> None:
    """What was put right is told without quoting the page or the model."""
    output = analysed(
        {
            "findings": [claim("SECRET WORDS of nobody", confidence="SECRET")],
            "gaps": [{"description": "g", "kind": "SECRET"}],
        }
    )
    assert output.account.warnings
    assert not any("SECRET" in warning for warning in output.account.warnings)


def test_findings_and_quotes_about_what_is_excluded_are_dropped() -> None:
    """A model that reports on it all the same is not heard; a quote about it carries no other finding either."""
    kept = claim("Vacuum must visit every table at least once.")
    drafts = [
        kept,
        claim("Plain text about autovacuum workers", OTHER_ID, content="Autovacuum has workers."),
        claim("Plain text about autovacuum workers", OTHER_ID, content="There is a launcher."),
    ]
    output = analysed({"findings": drafts}, exclude=["autovacuum"])
    assert [found.statement for found in output.findings] == [kept["content"]]
    assert len(analysed({"findings": drafts}).findings) == 3
