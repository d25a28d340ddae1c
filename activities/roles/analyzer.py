"""Grounding of an analysis in stored text: every finding has verbatim passages.

What a statement says is the model's. A figure or a name in it that a comparison of words does not find in its passages
is looked for in their sections and next to them, a date on the whole page. If its pages do not have it at all, a remark
on the finding says so; a plain number alone, as of an example, is worth none.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from activities.reporting.passages import term_above
from activities.roles.grounding import MAX_QUOTE_CHARACTERS, RoleWork, evidence_at, find_quote, find_quotes
from contracts.addresses import PLACE_CHARACTERS, canonical_url, finding_id, linked_place
from contracts.evidence import (
    Evidence,
    Finding,
    SectionRef,
    Verdict,
    bounded_confidence,
    source_voice,
    supported_confidence,
)
from contracts.exclusions import mentions_any
from contracts.gaps import SettledGap
from contracts.lenient import to_line
from contracts.recursive_roles import ExtractorAnswer, ExtractorResult, MentionedWork
from contracts.roles import (
    MAX_SECTIONS_WANTED,
    AnalyzeInput,
    AnalyzerAnswer,
    AnalyzerResult,
    ProposedFinding,
    ProposedGap,
    QualityUpdate,
    SourceExtract,
)
from contracts.texts import plural
from contracts.tokens import Level
from contracts.vocabulary import EngineKind
from providers.tokens.sections import sections_of
from providers.tokens.showing import numbered_sections, rest_of_pages
from providers.tokens.shown_sources import ShownSource
from providers.tokens.surroundings import sentence_at
from providers.verification.quantities import DATE, RELEASE, find_quantities
from providers.verification.rules import ClaimJudgement, find_code_names, find_differences, shared_words

MAX_REMARKS: Final = 4  # per finding
MAX_LINKED_PLACES: Final = 25  # of a page that was read, in the order of its text
MAX_PLACES: Final = 20  # places of a figure or a name in a source at which a passage is looked for
AROUND_CHARACTERS: Final = 600  # of the text on each side of a quote, in which a figure or a name is looked for
RELATED_SHARE: Final = 0.3  # share of a statement's words from which a sentence is about the same thing
Work = RoleWork[AnalyzeInput, AnalyzerAnswer]


def ground_analysis(work: Work) -> AnalyzerResult:
    """Return findings with evidence, each a `text[start:end]` of a stored text; others are dropped and counted."""
    request = work.request
    answer = work.answer
    sources = {source.id: source for source in request.sources}
    findings: dict[str, Finding] = {}
    evidence: dict[str, Evidence] = {}
    answered: dict[str, list[int]] = {}
    numbered: dict[int, str] = {}
    dropped = dropped_quotes = 0
    for number, proposed in enumerate(answer.findings, start=1):
        grounded = _ground(work, sources, proposed)
        dropped_quotes += len(proposed.quotes) - len(grounded)
        if mentions_any(proposed.content, request.exclude):
            continue
        if not grounded or not proposed.content:
            dropped += 1
            continue
        grounded, remarks = _compare(work, proposed.content, grounded)
        finding = _finding(work, proposed, remarks, grounded)
        numbered[number] = finding.id
        if len(findings) < request.finding_limit:
            findings.setdefault(finding.id, finding)
            evidence |= {item.id: item for item in grounded}
            known = [one for one in proposed.answers if 0 < one <= len(request.queries)]
            answered[finding.id] = list(dict.fromkeys([*answered.get(finding.id, []), *known]))
        else:
            work.warnings.append(f"findings beyond the limit of {request.finding_limit} were dropped")
    if dropped:
        work.warnings.append(f"{plural(dropped, 'finding')} dropped: no quote is in the sources")
    contradictions = [
        (numbered.get(number, ""), numbered.get(opposed, ""))
        for number, proposed in enumerate(answer.findings, start=1)
        for opposed in proposed.contradicts
    ]
    wanted = _wanted_sections(work)
    counted = [finding.with_fields(sub_query_count=max(1, len(answered[name]))) for name, finding in findings.items()]
    return AnalyzerResult(
        findings=_link_contradictions(counted, contradictions),
        evidence=list(evidence.values()),
        gaps=_gaps(work),
        settled_gaps=_settled_gaps(work, {number: name for number, name in numbered.items() if name in findings}),
        quality_updates=_quality_updates(work),
        analyzed_source_ids=[
            source.id
            for source in request.sources
            if source.id not in work.hidden and source.text and work.documents.get(source.text.hash)
        ],
        answered=[answered[name] for name in findings] if len(request.queries) > 1 else [],
        **_silence(work, answered),
        wanted=wanted,
        outline=_outline(work),
        links=_links(work),
        seen=_seen_parts(work) if wanted and work.narrowed else [],
        dropped_quotes=dropped_quotes,
    )


def _quality_updates(work: Work) -> list[QualityUpdate]:
    """Return the ratings of sources; none by a model where one collection is searched, whose publisher is one."""
    if work.engine is EngineKind.MODEL and work.request.one_collection:
        return []
    known = {source.id for source in work.request.sources}
    opinions = {_named_source(work.request, item.source_id): item for item in work.answer.quality_updates}
    if opinions.keys() - known:
        work.warnings.append("a quality for an unknown source was ignored")
    return [item.with_fields(source_id=name) for name, item in opinions.items() if name in known]


def _named_source(request: AnalyzeInput, name: str) -> str:
    """Return the id of the source that an answer names; where it names none and the call has one, the id of that."""
    if not name and len(request.sources) == 1:
        return request.sources[0].id
    return name


def _gaps(work: Work) -> list[ProposedGap]:
    """Return the gaps of an answer, with the sections in which a model expects their answers."""
    known = {}
    if work.engine is EngineKind.MODEL:
        known = numbered_sections(work.request, work.documents)
    listed = {gap.id: gap.description for gap in work.request.gaps}
    gaps = []
    for named in work.answer.fitted(work.request, work.warnings).gaps:
        gap = named.with_fields(description=listed.get(named.description, named.description))
        numbers = list(dict.fromkeys(gap.in_sections))[:MAX_SECTIONS_WANTED]
        unread = [known[number] for number in numbers if number in known]
        gaps.append(gap.with_fields(unread=unread))
    return gaps


def _settled_gaps(work: Work, numbered: Mapping[int, str]) -> list[SettledGap]:
    """Return the gaps of the request that findings answer; `numbered` are finding ids by their number in the answer."""
    answered_by: dict[str, list[str]] = {gap.id: [] for gap in work.request.gaps}
    for number, proposed in enumerate(work.answer.findings, start=1):
        for name in proposed.answers_gaps:
            if number in numbered and name in answered_by:
                answered_by[name].append(numbered[number])
    return [
        SettledGap(gap_id=gap_id, answered_by=list(dict.fromkeys(names)))
        for gap_id, names in answered_by.items()
        if names
    ]


def _wanted_sections(work: Work) -> list[SectionRef]:
    """Return the sections that a model asked for, with what else of their pages fits into the call that shows them.

    An answer about such sections asks for no more.
    """
    if work.engine is not EngineKind.MODEL or work.request.wanted:
        return []
    known = numbered_sections(work.request, work.documents)
    wanted = [known[number] for number in dict.fromkeys(work.answer.sections_wanted) if number in known]
    if len(wanted) < len(set(work.answer.sections_wanted)):
        work.warnings.append("sections that do not exist were asked for")
    asked = wanted[:MAX_SECTIONS_WANTED]
    if not asked:
        return []
    return [*asked, *rest_of_pages(work.request, work.documents, asked)]


def _silence(work: Work, answered: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the sub-queries on which a model found nothing, with the sources of which it was shown all.

    `answered` are the numbers of sub-queries that each finding answers: of these it found something.
    """
    if work.engine is not EngineKind.MODEL or work.request.wanted:
        return {}
    numbers = range(1, len(work.request.queries) + 1)
    found = {number for named in answered.values() for number in named}
    silent = [number for number in dict.fromkeys(work.answer.nothing_on) if number in numbers and number not in found]
    if not silent:
        return {}
    shown = (one.at(work.levels.get(one.source.id, Level.FULL)) for one in _shown_to(work))
    whole = [one.source.id for one in shown if not one.hidden]
    if not whole:
        return {}
    return {"nothing_on": silent, "read_whole": whole}


def _seen_parts(work: Work) -> list[SectionRef]:
    """Return the parts of its sources that a model was shown."""
    shown = (one.at(work.levels.get(one.source.id, Level.FULL)) for one in _shown_to(work))
    return [SectionRef(source_id=one.source.id, start=start, end=end) for one in shown for start, end in one.spans]


def _outline(work: Work) -> list[str]:
    """Return the sections of which a model saw nothing or a part, by number, if the request wants to know."""
    if not work.request.outlined or work.engine is not EngineKind.MODEL:
        return []
    shown = (one.at(work.levels.get(one.source.id, Level.FULL)) for one in _shown_to(work))
    return [line for one in shown for line in one.outline()]


def _links(work: Work) -> list[str]:
    """Return the places of documents of the collection to which the sources link, if the request wants to know."""
    if not work.request.outlined or work.engine is not EngineKind.MODEL:
        return []
    places = (linked_place(source.url, link) for source in work.request.sources for link in source.links)
    return [to_line(place, PLACE_CHARACTERS) for place in dict.fromkeys(places) if place][:MAX_LINKED_PLACES]


def _shown_to(work: Work) -> Sequence[ShownSource]:
    """Return what the prompt of an analysis showed of its sources; empty for rules, which read whole texts."""
    if work.engine is not EngineKind.MODEL or work.choose is None:
        return []
    return work.choose()


def ground_extraction(work: Work) -> ExtractorResult:
    """Return the analysis of one source, with the other works that it verifiably mentions."""
    assert isinstance(work.answer, ExtractorAnswer)
    texts = [work.documents.get(source.text.hash, "") for source in work.request.sources if source.text]
    links = {canonical_url(link) for source in work.request.sources for link in source.links}
    works = list[MentionedWork]()
    for named in work.answer.fitted(work.request, []).mentioned_works:
        words = named.words if any(find_quote(text, named.words) for text in texts) else ""
        address = named.address if canonical_url(named.address) in links else ""
        if words or address:
            works.append(MentionedWork(words=words, address=address))
    if len(works) < len(work.answer.mentioned_works):
        work.warnings.append("works that the source does not mention were dropped")
    analysis = ground_analysis(work)
    return ExtractorResult.model_validate({**dict(analysis), "mentioned_works": works})


def _ground(work: Work, sources: Mapping[str, SourceExtract], proposed: ProposedFinding) -> list[Evidence]:
    """Return the passages of a finding's quotes that are in the stored text of their sources."""
    found: list[tuple[SourceExtract, str, list[tuple[int, int]]]] = []
    for quote in proposed.quotes:
        source = sources.get(_named_source(work.request, quote.source_id))
        if source is None:
            work.warnings.append("a quote from an unknown source was ignored")
            continue
        text = ""
        if source.text:
            text = work.documents.get(source.text.hash, "")
        if quote.start is None:
            places = find_quotes(text, quote.quote)
        else:
            places = [span] if (span := find_quote(text, quote.quote, quote.start)) else []
        if places:
            found.append((source, text, places))
    grounded = []
    for source, text, places in found:
        beside = [spans[0] for other, _, spans in found if other is source and len(spans) == 1]
        item = evidence_at(source.id, text, *_likely_place(work, proposed.content, source, text, places, beside))
        hinted = (hint.heading for hint in source.sections if hint.start <= item.start < hint.end)
        heading = item.heading or to_line(next(hinted, ""), 120)
        grounded.append(item.with_fields(heading=heading))
    return grounded


def _likely_place(
    work: Work,
    statement: str,
    source: SourceExtract,
    text: str,
    places: Sequence[tuple[int, int]],
    beside: Sequence[tuple[int, int]],
) -> tuple[int, int]:
    """Return the one of a quote's places in a source that its finding most likely means.

    Places that the model was shown come before others, then those in the definition of a term that the statement has,
    those in the definition of, and nearest to, the finding's other quotes, `beside`, and those below a heading whose
    words it has.
    """
    if len(places) == 1:
        return places[0]
    spans = next((one.spans for one in _shown_to(work) if one.source.id == source.id), ())
    words = statement.replace("`", "").casefold()
    terms_beside = {term_above(text, start) for start, _ in beside}

    def rank(place: tuple[int, int]) -> tuple[bool, bool, bool, int, float]:
        start, end = place
        is_shown = any(first <= start and end <= last for first, last in spans)
        term = term_above(text, start).replace("`", "").partition("(")[0].strip().casefold()
        is_named = bool(term) and re.search(rf"(?<!\w){re.escape(term)}(?!\w)", words) is not None
        distance = min((abs(start - other) for other, _ in beside), default=0)
        (share,) = shared_words(evidence_at(source.id, text, start, end).heading, [statement], work.request.language)
        return not is_shown, not is_named, term_above(text, start) not in terms_beside, distance, -share

    return min(places, key=rank)


def _compare(work: Work, statement: str, evidence: list[Evidence]) -> tuple[list[Evidence], list[str]]:
    """Return the passages of a model's statement, with one more beside them for each figure or name that they lack,
    and the remarks on what they lack all the same.
    """
    if work.engine is not EngineKind.MODEL:
        return evidence, []
    sources = {source.id: source for source in work.request.sources}
    language = work.request.language
    pages = list(dict.fromkeys(_text(work, item) for item in evidence))
    questions = [work.request.query, *(node.text for node in work.request.sub_queries or [work.request.sub_query])]

    def differences(items: Sequence[Evidence]) -> dict[str, ClaimJudgement]:
        terms = (term_above(_text(work, item), item.start) for item in items)
        titles = (text for item in items for text in (sources[item.source_id].title, item.heading))
        about = [text for text in (*titles, *terms) if text]
        quotes = [_text(work, item)[item.start : item.end] for item in items]
        found = find_differences(statement, quotes, [*about, *questions], language, pages=pages)
        found += find_code_names(statement, [*quotes, *about, *questions])
        return {difference.words: difference for difference in found}

    problems = differences(evidence)
    added = list[Evidence]()
    for words in list(problems)[:MAX_REMARKS]:
        cited = dict.fromkeys(item.source_id for item in evidence)
        passages = (
            _find_passage(work, sources[key], statement, words, [one for one in evidence if one.source_id == key])
            for key in cited
        )
        passage = next((item for item in passages if item), None)
        if passage and len(fewer := differences([*evidence, *added, passage])) < len(problems):
            problems = fewer
            added.append(passage)
    remarks = [difference.reason for difference in problems.values() if _is_remarkable(difference, pages)]
    return [*evidence, *added], remarks[:MAX_REMARKS]


def _is_remarkable(difference: ClaimJudgement, pages: Sequence[str]) -> bool:
    """Return whether a difference is worth a remark: another figure, one with a unit, or what none of its pages has."""
    quantity = next(iter(find_quantities(difference.words)), None)
    if difference.verdict is Verdict.CONTRADICTED:
        return True
    if quantity is not None and quantity.raw == difference.words and quantity.unit not in (DATE, RELEASE):
        return bool(quantity.unit)
    return not any(map(_pattern_of(difference.words).search, pages))


def _pattern_of(words: str) -> re.Pattern[str]:
    """Return the pattern of these words as words of their own."""
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)


def _text(work: Work, item: Evidence) -> str:
    source = next(source for source in work.request.sources if source.id == item.source_id)
    if not source.text:
        return ""
    return work.documents[source.text.hash]


def _find_passage(
    work: Work, source: SourceExtract, statement: str, words: str, quoted: Sequence[Evidence]
) -> Evidence | None:
    """Return the sentence with these words that shares most with a statement, in the sections of its `quoted` passages
    or next to these; None if none is related.

    Far from them a page has the same number or name for other things, but a date that it has once may be that of all.
    """
    text = ""
    if source.text:
        text = work.documents.get(source.text.hash, "")
    spans = [(one.start, one.end) for one in sections_of(text) if any(one.start <= at.start < one.end for at in quoted)]
    spans += [(at.start - AROUND_CHARACTERS, at.end + AROUND_CHARACTERS) for at in quoted]
    pattern = _pattern_of(words)
    is_once = len(list(islice(pattern.finditer(text), 2))) == 1
    is_only_date = is_once and any(quantity.unit == DATE for quantity in find_quantities(words))
    if is_only_date:
        spans.append((0, len(text)))
    near = (match for match in pattern.finditer(text) if any(start <= match.start() < end for start, end in spans))
    best = None
    best_share = 0.0 if is_only_date else RELATED_SHARE
    for match in islice(near, MAX_PLACES):
        sentence = sentence_at(text, match.start(), MAX_QUOTE_CHARACTERS)
        if sentence is None:
            continue
        (share,) = shared_words(statement, [text[slice(*sentence)]], work.request.language)
        if share >= best_share:
            best = sentence
            best_share = share
    if not best:
        return None
    return evidence_at(source.id, text, *best)


def _finding(work: Work, proposed: ProposedFinding, remarks: Sequence[str], evidence: Sequence[Evidence]) -> Finding:
    """Return the finding with its passages; number and quality of its sources cap its confidence."""
    evidence_ids = list(dict.fromkeys(item.id for item in evidence))
    source_ids = list(dict.fromkeys(item.source_id for item in evidence))
    cited = [source for source in work.request.sources if source.id in source_ids]
    supported = supported_confidence((source_voice(source.url, source.publisher), source.quality) for source in cited)
    is_asked = work.engine is not EngineKind.MODEL or not work.request.one_collection
    voices = {source_voice(source.url, source.publisher) for source in work.request.sources}
    is_given = is_asked and (len(voices) > 1 or "confidence" in proposed.model_fields_set)
    claimed = proposed.confidence if is_given else supported
    return Finding(
        id=finding_id(proposed.content, evidence_ids),
        statement=proposed.content,
        confidence=bounded_confidence(claimed, supported),
        evidence_ids=evidence_ids,
        source_ids=source_ids,
        sub_query_id=_owner_of(work, proposed),
        category=proposed.category or None,
        remarks=list(remarks),
        priority=proposed.priority,
        iteration=work.request.iteration,
    )


def _owner_of(work: Work, proposed: ProposedFinding) -> str:
    """Return the id of the first sub-query that a finding says it answers, else of the call's first one."""
    queries = work.request.queries
    return next((queries[number - 1].id for number in proposed.answers if 0 < number <= len(queries)), queries[0].id)


def _link_contradictions(findings: Sequence[Finding], pairs: Sequence[tuple[str, str]]) -> list[Finding]:
    """Return the findings, with contradictions claimed by the analyzer recorded on both sides."""
    opposed = {*pairs, *((second, first) for first, second in pairs)}
    return [
        item.with_fields(
            contradicts=[other.id for other in findings if other is not item and (item.id, other.id) in opposed]
        )
        for item in findings
    ]
