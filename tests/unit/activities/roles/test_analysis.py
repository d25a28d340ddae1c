"""Quotes in stored texts, and an analyzer's answer as findings with evidence."""

import unicodedata
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

from activities.roles.analyzer import ground_analysis
from activities.roles.grounding import RoleWork, find_quote, find_quotes
from activities.roles.run_role import ground_answer, task_of
from contracts import addresses, roles
from contracts.evidence import Gap
from contracts.plan import PlanNode
from contracts.tokens import Level
from contracts.vocabulary import Confidence, EngineKind
from providers.interfaces import EngineAnswer
from providers.tokens import showing
from providers.tokens.showing import show_sources
from tests.unit.activities.scripted import SOURCE, analyze_input, hint, reference, source

TEXT = (
    "# Routine Vacuuming\r\n\r\nVacuum must visit every table at least once. 🧹 It café-reads pages.\n\n"
    "## Wraparound\n\nOld rows would   seem to\nvanish after wraparound.\n"
)
OTHER = "Plain text about autovacuum workers and their launcher."
OTHER_ID = "src-0000000002"
VISIT = "Vacuum must visit every table at least once."


ANSWERED = ("findings", "gaps", "quality_updates", "sections_wanted", "nothing_on")


def analysed(
    engine: EngineKind = EngineKind.MODEL, levels: Mapping[str, Level] = MappingProxyType({}), **changes: Any
) -> tuple[roles.AnalyzerResult, list[str]]:
    """The result of an analyzer's answer on two sources, which it was shown at these levels, and its warnings."""
    fields = {name: changes.pop(name) for name in ANSWERED if name in changes}
    text = changes.pop("text", TEXT)
    own = hint(OTHER, OTHER).model_copy(update={"heading": "From search"})
    sources = [
        source(reference(text)),
        source(reference(OTHER), id=OTHER_ID, sections=[own]),
        source(None, id="src-0000000003", snippet="only a snippet here"),
    ]
    documents = {reference(one).hash: one for one in (text, OTHER)}
    changes |= {"gaps": changes.pop("open_gaps", [])}
    request = analyze_input(changes.pop("sources", sources), **changes)
    answer = roles.AnalyzerAnswer.model_validate({"findings": [], **fields})
    choose = partial(show_sources, request, documents)
    narrowed = bool(levels)
    work = RoleWork(roles.ANALYZER, request, answer, documents, engine, levels=levels, narrowed=narrowed, choose=choose)
    return ground_analysis(work), work.warnings


def claim(quote: str, source_id: str = SOURCE, **changes: Any) -> dict[str, Any]:
    quotes = [{"source_id": source_id, "quote": quote}]
    return {"content": f"Claim: {quote[:40]}", "confidence": "high", "quotes": quotes, **changes}


# --- quotes ----------------------------------------------------------------------------------------------------------
COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Größe und Café steht hier.") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        (TEXT, "Old rows would seem to vanish after", "Old rows would   seem to\nvanish after"),
        (TEXT, "at least once. 🧹 It café-reads", "at least once. 🧹 It café-reads"),
        (TEXT, "  Routine Vacuuming\n", "Routine Vacuuming"),
        *((TEXT, quote, None) for quote in ("Old Rows would seem to", "“Old rows would”", "is", "   ")),
        *((TEXT, quote, None) for quote in ("Old rows … vanish after wraparound.", "vanish after wraparound!")),
        (COMPOSED, DECOMPOSED, COMPOSED),
        (DECOMPOSED, COMPOSED, DECOMPOSED),
        ("Some text: auto\u00advacuum runs\u200b often.", "autovacuum runs often", "auto\u00advacuum runs\u200b often"),
        ("A price-determining long‐term rule.", "pricedetermining longterm rule", "price-determining long‐term rule"),
        ("A pricedetermining rule.", "price-determining rule", "pricedetermining rule"),
        ("It runs at 10-20 degrees here.", "It runs at 1020 degrees", None),
        ("Set `wal_level` to `replica` first.", "Set wal_level to replica", "Set `wal_level` to `replica`"),
        ("`a_b`\n(`int`) sets it.", "a_b (int) sets", "`a_b`\n(`int`) sets"),
        ("Set `a b` or `c d` now.", "b` or\u200b `c d` now", "b` or `c d` now"),
        (r"Match \[a-z\] or [1, 2] here.", r"Match \[a-z\] or \[1, 2\] here", r"Match \[a-z\] or [1, 2] here"),
        (r"Match \[a-z\] or C:\dir here.", r"Match [a-z] or C:dir here", None),
    ],
)
def test_a_quote_is_found_word_for_word_or_not_at_all(text: str, quote: str, words: str | None) -> None:
    """White space, compositions, hyphens in words, backslashes before brackets and signs that nobody sees may differ;
    offsets are of the text.
    """
    found = find_quote(text, quote)
    assert (None if found is None else text[slice(*found)]) == words


def test_a_short_quote_that_is_a_line_is_found_there() -> None:
    """A definition whose words another sentence has as well is the line of its own, next to its term."""
    text = "`read-write`\nit must be open (so it is no standby)\n\n`primary`\nit is no standby\n"
    assert find_quote(text, "it is no standby") == (text.rindex("it is"), len(text) - 1)


SETTINGS = """# Settings

`track_time` (`boolean`)
It measures times. The default value is `off`.

`feedback` (`boolean`)
It tells the primary server about queries.

This may bloat it. The default value is `off`.

`archive_mode` (`enum`)
It keeps files. The default value is `off`.
"""


@pytest.mark.parametrize(
    ("content", "others", "term"),
    [
        ("By default `feedback` is off.", (), "`feedback`"),
        ("The report of queries is off by default.", ("It tells the primary server about queries.",), "`feedback`"),
        ("The kept files are off by default.", ("It keeps files.",), "`archive_mode`"),
        ("It is off by default.", (), "`track_time`"),
    ],
)
def test_a_short_quote_is_found_where_its_finding_speaks_of_it(content: str, others: Sequence[str], term: str) -> None:
    """Of several places, below the term that the statement names, else beside the finding's other quotes."""
    quotes = [{"source_id": SOURCE, "quote": text} for text in (*others, "The default value is `off`.")]
    finding = {"content": content, "confidence": "high", "quotes": quotes}
    result, _ = analysed(findings=[finding], text=SETTINGS)
    start = result.evidence[-1].start
    assert start == SETTINGS.index("The default value is `off`.", SETTINGS.index(term))


# --- analyses --------------------------------------------------------------------------------------------------------
def test_evidence_is_the_stored_passage() -> None:
    """Offsets, hash, heading and ids come from the stored text, whatever blanks the quote has (invariant 10)."""
    result, _ = analysed(findings=[claim("Old rows would seem to vanish after wraparound."), claim(OTHER, OTHER_ID)])
    evidence, finding = result.evidence[0], result.findings[0]
    words = "Old rows would   seem to\nvanish after wraparound."
    assert TEXT[evidence.start : evidence.end] == words
    assert evidence.quote_hash == addresses.digest(words)
    assert evidence.id == addresses.evidence_id(SOURCE, evidence.start, evidence.end)
    assert [item.heading for item in result.evidence] == ["Wraparound", "From search"]
    assert (finding.evidence_ids, finding.source_ids) == ([evidence.id], [SOURCE])
    assert finding.id == addresses.finding_id(finding.statement, [evidence.id])
    expected = addresses.sub_query_id("what does vacuum do about wraparound")
    assert finding.sub_query_id == expected


def test_a_finding_says_what_it_is_worth() -> None:
    """The model's own priority, 2 where it gives none or another word, and the number of sub-queries that it answers."""
    queries = [PlanNode(id=f"sq-{number}", text=f"question {number}") for number in range(3)]
    result, _ = analysed(
        findings=[
            claim(VISIT, priority=1, answers=[1, 3, 3, 9]),
            claim(OTHER, OTHER_ID, priority=12),
            claim("Old rows would seem to vanish after wraparound."),
        ],
        sub_queries=queries,
    )
    assert [(one.priority, one.sub_query_count) for one in result.findings] == [(1, 2), (3, 1), (2, 1)]


def test_a_gap_names_sections_that_were_not_shown() -> None:
    """By the numbers of the outline; unknown ones and places that a model makes up itself count for nothing."""
    forged = {"source_id": SOURCE, "start": 0, "end": 5}
    gaps = [{"description": "What it costs.", "in_sections": [1, 2, 2, 99], "unread": [forged]}]
    result, _ = analysed(gaps=gaps)
    (gap,) = result.gaps
    assert [TEXT[one.start : one.end].split("\n", maxsplit=1)[0] for one in gap.unread if one.source_id == SOURCE][
        :1
    ] == ["# Routine Vacuuming\r"]
    assert len(gap.unread) == 2
    assert analysed(EngineKind.EXTRACTIVE, gaps=gaps)[0].gaps[0].unread == []


def test_a_listed_gap_may_be_named_for_its_section() -> None:
    """Its label stands for its words, so that the gap itself gets the place and no second one is opened."""
    listed = Gap(id="gap-1", description="What does it cost?")
    result, _ = analysed(gaps=[{"description": "gap-1", "in_sections": [1]}], open_gaps=[listed])
    (gap,) = result.gaps
    assert gap.description == listed.description
    assert gap.unread


@pytest.mark.parametrize("quote", ["```\nvacuum old rows", "vacuum old rows\n```", "```\nvacuum old rows\n```"])
def test_a_quote_has_no_half_of_a_listing(quote: str) -> None:
    """A line of backticks that opens or closes a listing goes if its other half is not quoted."""
    text = "# Work\n\nRun this:\n\n```\nvacuum old rows\nvacuum the rest\n```\n"
    text = text.replace("\nvacuum the rest", "") if quote.endswith("```") else text
    (span,) = find_quotes(text, quote)
    whole = quote.count("```") == 2
    assert text[slice(*span)] == (quote if whole else "vacuum old rows")


def test_a_reader_that_was_shown_less_says_what_it_saw() -> None:
    """The reading of the sections that it asks for then shows the rest of them, and lists no others as hidden."""
    text = TEXT + "".join(f"\n\n## Part {n}\n\nVacuum freezes old rows before a wraparound. {OTHER}" for n in range(20))
    whole, _ = analysed(sections_wanted=[1], text=text)
    less, _ = analysed(sections_wanted=[1], text=text, levels={SOURCE: Level.COMPRESSED})
    assert whole.seen == []
    assert 0 < sum(one.end - one.start for one in less.seen if one.source_id == SOURCE) < 0.9 * len(text)
    assert analysed(text=text, levels={SOURCE: Level.COMPRESSED})[0].seen == []


def test_what_a_prompt_shows_is_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt and all that is found of its answer share the choice, which takes as long as rendering the pages."""
    rankings = []
    ranked = showing._Choice._ranked
    monkeypatch.setattr(showing._Choice, "_ranked", lambda *given: rankings.append(given[1].id) or ranked(*given))
    text = f"{TEXT}\n\n## Again\n\n{VISIT}"
    queries = [PlanNode(id=f"sq-{number}", text=f"question {number} on vacuum") for number in (1, 2)]
    request = analyze_input([source(reference(text))], engine=EngineKind.MODEL, sub_queries=queries)
    task = task_of(roles.ANALYZER, request, {reference(text).hash: text})
    found = claim(VISIT, answers=[1])
    answer = roles.AnalyzerAnswer.model_validate({"findings": [found, found], "nothing_on": [2]})
    result, _ = ground_answer(task, EngineAnswer(answer, EngineKind.MODEL))
    assert isinstance(result, roles.AnalyzerResult)
    assert (result.nothing_on, len(result.findings)) == ([2], 1)
    assert task.choose is not None
    assert task.choose() is task.choose()
    assert task.narrower is not None
    assert task.narrower(20).choose is not None
    assert rankings == [SOURCE]


def test_silence_counts_for_pages_that_were_shown_whole() -> None:
    """A reader names sub-queries on which the pages say nothing: not one that a finding answers, and none of rules."""
    queries = [PlanNode(id=f"sq-{number}", text=f"question {number} on vacuum") for number in (1, 2)]
    found = claim(VISIT, answers=[1])
    result, _ = analysed(findings=[found], nothing_on=[1, 2, 9], sub_queries=queries)
    assert (result.nothing_on, result.read_whole) == ([2], [SOURCE])
    long = TEXT + f"\n\n## Workers\n\n{OTHER} " * 40
    part, _ = analysed(nothing_on=[2], sub_queries=queries, text=long, levels={SOURCE: Level.COMPRESSED})
    assert (part.nothing_on, part.read_whole) == ([], [])
    by_rules, _ = analysed(EngineKind.EXTRACTIVE, nothing_on=[2], sub_queries=queries)
    assert (by_rules.nothing_on, by_rules.read_whole) == ([], [])


def test_a_quote_without_a_source_is_of_the_only_one() -> None:
    """Where several are shown it is of none, and another id than that of the only one is still unknown."""
    alone = [source(reference(TEXT))]
    (found,) = analysed(findings=[claim(VISIT, source_id="")], sources=alone)[0].findings
    assert found.source_ids == [SOURCE]
    for name, sources in (("", {}), ("src-0000000009", {"sources": alone})):
        result, warnings = analysed(findings=[claim(VISIT, source_id=name)], **sources)
        assert result.findings == []
        assert "a quote from an unknown source was ignored" in warnings


def test_invented_quotes_are_dropped_and_counted() -> None:
    """A finding without any other quote goes with it, and no warning repeats words of a page."""
    half = claim(VISIT)
    half["quotes"].append({"source_id": SOURCE, "quote": "Vacuum is optional for small tables."})
    result, warnings = analysed(findings=[half, claim("SECRET words of nobody"), claim("x", quotes=[])])
    assert (len(result.findings), len(result.evidence), result.dropped_quotes) == (1, 1, 2)
    assert warnings == ["2 findings dropped: no quote is in the sources"]


@pytest.mark.parametrize("source_id", ["src-9999999999", OTHER_ID, "src-0000000003", ""])
def test_a_quote_counts_only_for_its_own_source(source_id: str) -> None:
    """Words under an unknown source, another source or one without a text ground nothing (S0-069, S0-175)."""
    result, _ = analysed(findings=[claim(VISIT, source_id)])
    assert (result.findings, result.evidence, result.dropped_quotes) == ([], [], 1)


@pytest.mark.parametrize(
    ("word", "confidence"),
    [("HIGH", Confidence.MEDIUM), ("speculation", Confidence.SPECULATION), ("very high", Confidence.LOW)],
)
def test_one_source_allows_no_more_than_medium_confidence(word: str, confidence: Confidence) -> None:
    """And a word outside the five levels never becomes a high one (C0-7)."""
    result, _ = analysed(findings=[claim(OTHER, OTHER_ID, confidence=word)])
    assert result.findings[0].confidence is confidence


def test_with_one_voice_the_sources_alone_decide_the_confidence() -> None:
    """Nothing was asked, so that an answer without a confidence is not a doubtful one; a doubt that is given counts."""
    proposed = claim(VISIT)
    del proposed["confidence"]
    sources = [source(reference(TEXT))]
    assert analysed(findings=[proposed], sources=sources)[0].findings[0].confidence is Confidence.MEDIUM
    doubted = proposed | {"confidence": "speculation"}
    assert analysed(findings=[doubted], sources=sources)[0].findings[0].confidence is Confidence.SPECULATION
    elsewhere = source(reference(OTHER), id=OTHER_ID, url="https://elsewhere.test/")
    assert analysed(findings=[proposed], sources=[*sources, elsewhere])[0].findings[0].confidence is Confidence.LOW


def test_only_given_sources_are_judged() -> None:
    """Quality words are ours, and an opinion of an unknown source is ignored (C0-7, S0-063, S0-064, S0-175)."""
    updates = [(SOURCE, "Medium"), (OTHER_ID, "superb"), ("src-9999999999", "high")]
    result, warnings = analysed(
        quality_updates=[{"source_id": name, "quality": quality} for name, quality in updates],
        gaps=[{"description": "costs"}, {"description": " COSTS? "}],
    )
    assert [(item.source_id, item.quality) for item in result.quality_updates] == [
        (SOURCE, "medium"),
        (OTHER_ID, "unknown"),
    ]
    assert [gap.description for gap in result.gaps] == ["costs"]
    assert warnings == ["a quality for an unknown source was ignored"]


def test_findings_have_a_limit_and_excluded_subjects_are_dropped() -> None:
    """A repeated finding counts once, evidence goes with its finding, sources without text count not (C0-23, C0-26)."""
    proposed = [claim(VISIT), claim(VISIT), claim(OTHER, OTHER_ID, content="Autovacuum has workers.")]
    for changes in ({"exclude": ["autovacuum"]},):
        result, _ = analysed(findings=proposed, **changes)
        assert len(result.findings) == 1
        assert [item.source_id for item in result.evidence] == [SOURCE]
    result, _ = analysed(findings=proposed)
    assert len(result.findings) == 2
    assert result.analyzed_source_ids == [SOURCE, OTHER_ID]


def test_a_contradiction_links_both_findings() -> None:
    """By the analyzer's word, numbers from 1; a number that is none links nothing."""
    proposed = [claim(VISIT, contradicts=[2, 9]), claim(OTHER, OTHER_ID)]
    first, second = analysed(findings=proposed)[0].findings
    assert (first.contradicts, second.contradicts) == ([second.id], [first.id])


TIMES = "The launcher starts a worker every 60 seconds in each database."
NAMED = "The setting `max_workers` gives the launcher of each database its limit, 35 at first."
DEFINED = "The launcher has a minute."
DATED = "Release date: 2026-08-13"
LATER = "By default the launcher of PostgreSQL has 35 workers in all."


@pytest.mark.parametrize(
    ("content", "quotes", "passages", "remarks"),
    [
        ("The launcher starts a worker every 60 seconds.", [TIMES, LATER], [TIMES, LATER], []),
        ("The launcher starts a worker every 90 seconds.", [TIMES], [TIMES], ["“90 seconds”"]),
        ("The launcher of PostgreSQL starts a worker every 60 seconds.", [TIMES], [TIMES, LATER], []),
        ("The launcher of PostgreSQL 15 has workers.", [LATER], [LATER], []),
        ("The launcher of Valkey starts a worker every 60 seconds.", [TIMES], [TIMES], ["“Valkey”"]),
        ("The launcher of Postfix starts a worker every 60 seconds.", [TIMES], [TIMES], []),
        ("Of 12 the launcher starts a worker every 60 seconds since release 8.1.2.", [TIMES], [TIMES], ["“8.1.2”"]),
        ("Since 2026-08-13 the launcher starts a worker every 60 seconds.", [TIMES], [TIMES, DATED], []),
        ("Since 2025-08-13 the launcher starts a worker every 60 seconds.", [TIMES], [TIMES], ["“2025-08-13”"]),
        ("The launcher starts a worker every `launch_delay`.", [TIMES], [TIMES], ["“launch_delay”"]),
        ("With max_workers the launcher of a database has 35.", [LATER], [LATER, NAMED], []),
        ("The launcher of Exim starts a worker every 60 seconds.", [TIMES], [TIMES], []),
        ("The `idle_limit` of the launcher is a minute.", [DEFINED], [DEFINED], []),
    ],
)
def test_a_finding_is_the_models_own(content: str, quotes: list[str], passages: list[str], remarks: list[str]) -> None:
    """No comparison of words replaces it or drops a quote; a figure or name gets one more sentence.

    Only what no page has and a figure with another unit get a remark. What its sub-query or the term of its definition
    names needs no passage, and a line of code is no sentence.
    """
    text = f"{DATED}\n\n# Launcher\n\n{TIMES} It never stops.\n\n{LATER}\n\n{NAMED}\n\n"
    text += "```\nThe launcher of Postfix starts a worker every second\n```"
    text += f"\n\n`idle_limit` (`integer`)\nEnds it. {DEFINED}\n"
    queries = [PlanNode(id="sq-1", text="how does Exim start workers")]
    request = analyze_input([source(reference(text), title="Manual of release 15")], sub_queries=queries)
    given = [{"source_id": SOURCE, "quote": quote} for quote in quotes]
    answer = roles.AnalyzerAnswer.model_validate({"findings": [{"content": content, "quotes": given}]})
    work = RoleWork(roles.ANALYZER, request, answer, {reference(text).hash: text}, EngineKind.MODEL)
    result = ground_analysis(work)
    (finding,) = result.findings
    evidence = {item.id: text[item.start : item.end] for item in result.evidence}
    assert finding.statement == content
    assert [evidence[key] for key in finding.evidence_ids] == passages
    assert len(finding.remarks) == len(remarks)
    assert all(remark in line for remark, line in zip(remarks, finding.remarks, strict=True))
    assert work.warnings == []


@pytest.mark.parametrize(
    ("text", "is_added"),
    [
        ("# Launcher\n\n{quoted}\n\n{filler}\n\n{further}", True),
        ("# Launcher\n\n{quoted}\n\n# Limits\n\n{further}", True),
        ("# Launcher\n\n{quoted}\n\n{filler}\n\n# Vacuum\n\n{further}", False),
    ],
    ids=["same section", "next to it", "elsewhere"],
)
def test_a_missing_name_is_looked_for_near_the_quote(text: str, is_added: bool) -> None:
    """Elsewhere on a page the same name belongs to something else."""
    page = text.format(quoted=TIMES, further=LATER, filler="Other words stand here. " * 40)
    quote = {"source_id": SOURCE, "quote": TIMES}
    content = "The launcher of PostgreSQL starts a worker every 60 seconds."
    answer = roles.AnalyzerAnswer.model_validate({"findings": [{"content": content, "quotes": [quote]}]})
    request = analyze_input([source(reference(page))])
    result = ground_analysis(RoleWork(roles.ANALYZER, request, answer, {reference(page).hash: page}, EngineKind.MODEL))
    assert [page[one.start : one.end] for one in result.evidence] == [TIMES, *([LATER] if is_added else [])]


@pytest.mark.parametrize(
    ("text", "passage"),
    [
        ("| a | b |\n| --- | --- |\n| `size` | {filler} |\n| `limit` | {further} |", "| `limit` | {further} |"),
        ("{filler}{filler}{further} {filler}", "{further}"),
        ("```\n{further}\n```", ""),
    ],
    ids=["row of a table", "long paragraph", "listing"],
)
def test_a_passage_that_is_added_is_a_whole_sentence_or_row(text: str, passage: str) -> None:
    """A part that begins within a word, or reaches over several rows, supports what it is not about."""
    filler = "Other words stand here. " * 40
    page = f"# Launcher\n\n{TIMES}\n\n{text}\n".format(further=LATER, filler=filler)
    quote = {"source_id": SOURCE, "quote": TIMES}
    content = "The launcher of PostgreSQL starts a worker every 60 seconds."
    answer = roles.AnalyzerAnswer.model_validate({"findings": [{"content": content, "quotes": [quote]}]})
    request = analyze_input([source(reference(page))])
    result = ground_analysis(RoleWork(roles.ANALYZER, request, answer, {reference(page).hash: page}, EngineKind.MODEL))
    added = [page[one.start : one.end] for one in result.evidence][1:]
    assert added == ([passage.format(further=LATER)] if passage else [])
