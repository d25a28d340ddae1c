"""Analysis and brief: verbatim passages as findings, and the report that shows them, best first. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from contracts.addresses import normalized_text
from contracts.evidence import source_voice, supported_confidence
from contracts.plan import OTHER_FORM, PlanNode
from contracts.recursive_roles import ExtractInput, ExtractorAnswer
from contracts.report_updates import Operation, ReporterAnswer, UpdateInput
from contracts.roles import (
    AnalyzeInput,
    AnalyzerAnswer,
    ProposedFinding,
    ProposedGap,
    Quote,
    SynthesizerAnswer,
    WriteInput,
)
from contracts.texts import shorten
from contracts.thread_roles import RecallAnswer, RecallInput
from providers.extractive.ranking import COVERAGE_FLOOR, Passage, Ranking, SourceWords
from providers.text import KNOWN_LANGUAGES, has_stem_of, language_data, meaning_words, sentence_spans, subject_keys

RECALL_FLOOR: Final = 0.8
"""Weighted share of a question's words that a passage of the thread must have, for nothing to be searched for it: twice
what a shown passage needs, because a search finds what the thread lacks."""
FIRST_PASSAGES: Final = 10
MORE_PASSAGES: Final = 10
STATEMENT_CHARACTERS: Final = 600
TITLE_CHARACTERS: Final = 120
QUOTE_MARGIN: Final = 4
"""Characters around a block quote: blank lines, and escapes that another writer adds."""
MARKUP: Final = re.compile(
    r"(?P<code>(?P<ticks>``?)(?!`)[^`\n|\[]+(?P=ticks)(?!`))"
    r"|[\\`*\[\]<>|~$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|!(?=\[)|^[-+#=](?=[\s=#+-]|$)|(?<=^\d)[.)]|(?<=^\d\d)[.)]"
)
"""Markup of Markdown; inline code stays code."""
HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]+(.*?\S)[ \t#]*$")
ITEM: Final = re.compile(r"\s*(?:[-*+•]|(\d{1,3})[.)])\s+")


def analyze(task: AnalyzeInput, documents: Mapping[str, str]) -> AnalyzerAnswer:
    """Quote the passages for each sub-query whose coverage reaches the floor."""
    findings: list[ProposedFinding] = []
    gaps: list[ProposedGap] = []
    source_words = SourceWords.of(task, documents)
    for number, query in enumerate(task.queries, start=1):
        ranking = Ranking(task, source_words, query.text)
        passages = [passage for passage in ranking.passages() if passage.coverage >= COVERAGE_FLOOR]
        # Rules take a passage for an answer to a query that it matches, so also to the gap which suggested the query.
        asked = normalized_text(query.text)
        closed = [gap.id for gap in task.gaps if asked in map(normalized_text, gap.suggested_queries)]
        best = ranking.distinct(ranking.by_meaning(passages), task.max_findings)
        shown = ranking.with_neighbours(best)
        quoted = [_finding(item, ranking.text(item), number) for item in shown]
        findings += [finding.with_fields(answers_gaps=closed) for finding in quoted]
        if not passages and query.facet != OTHER_FORM:
            text = shorten(query.text, TITLE_CHARACTERS)
            description = f"No passage matches enough of “{text}”."
            gaps.append(ProposedGap(description=description, priority=2, sub_query=number))
    return AnalyzerAnswer(findings=findings, gaps=gaps)


def recall(task: RecallInput, documents: Mapping[str, str]) -> RecallAnswer:
    """Name the questions of which one archived passage has nearly all words; a question of one word is searched for."""
    queries = [PlanNode(id=gap.id, text=str(gap.description)) for gap in task.gaps]
    if not queries:
        return RecallAnswer()
    analysis = AnalyzeInput(
        sub_query=queries[0], sources=task.read_sources, language=task.language, exclude=task.exclude
    )
    source_words = SourceWords.of(analysis, documents)
    answered = []
    for number, query in enumerate(queries, start=1):
        ranking = Ranking(analysis, source_words, query.text)
        best = max((passage.coverage for passage in ranking.passages()), default=0.0)
        if len(ranking.question.weights) > 1 and best >= RECALL_FLOOR:
            answered.append(number)
    return RecallAnswer(answered=answered)


def extract(task: ExtractInput, documents: Mapping[str, str]) -> ExtractorAnswer:
    """Quote the passages of one source that fit its task."""
    return ExtractorAnswer(findings=analyze(task, documents).findings)


def _finding(passage: Passage, text: str, answers: int) -> ProposedFinding:
    source = passage.source
    return ProposedFinding(
        content=shorten(" ".join(text.split()), STATEMENT_CHARACTERS),
        confidence=supported_confidence([(source_voice(source.url, source.publisher), source.quality)]).value,
        quotes=[Quote(source_id=source.id, quote=text, start=passage.start)],
        answers=[answers],
    )


def write(task: WriteInput, documents: Mapping[str, str]) -> SynthesizerAnswer:
    """Show the passages found, best first, and the words of the question that none of them contains."""
    say = language_data(task.language).brief
    ranking = Ranking(task, SourceWords.of(task, documents), task.query)
    ids = {(item.source_id, item.start, item.end): item.id for item in task.evidence if item.source_id in ranking.texts}
    by_score = sorted(
        (ranking.at(*position) for position in ids), key=lambda item: (-item.score, item.source.id, item.start)
    )
    passages = ranking.distinct(ranking.by_meaning(by_score), FIRST_PASSAGES + MORE_PASSAGES)
    counts = say["counts"].format(
        searched=f"{task.documents_searched or task.source_count:,}",
        read=task.source_count,
        cited=len({passage.source.id for passage in passages}),
    )
    lines = [f"# {_escape(' '.join(task.query.split()))}", ""]
    if passages:
        note = "note"
    elif task.source_count:
        note = "note_empty"
    else:
        note = "note_unread"
    lines += [f"> {say[note]}", ">", f"> {counts}", ""]
    for heading, part in (("passages", passages[:FIRST_PASSAGES]), ("more", passages[FIRST_PASSAGES:])):
        if part:
            lines += [f"## {say[heading]}", ""]
            for passage in part:
                position = (passage.source.id, passage.start, passage.end)
                text = ranking.text(passage)
                lines += [_caption(passage, text), "", *_quote(text, f"[{ids[position]}]"), ""]
    uncovered = _uncovered(task, ranking, passages, say)
    if uncovered or not passages:
        question = _escape(" ".join(task.query.split()))
        lines += [f"## {say['not_covered']}", "", *(f"- {line}" for line in uncovered or [question])]
    return SynthesizerAnswer(markdown="\n".join(lines).rstrip() + "\n")


def quote_notes(task: UpdateInput, documents: Mapping[str, str]) -> ReporterAnswer:
    """Quote the first passage of each note, as long as they fit; remarks of a review are ignored.

    A passage is cut to its first sentences only if it has the whole update for itself; others wait for the next one.
    """
    texts = {source.id: documents.get(source.text.hash, "") for source in task.sources if source.text}
    passages = {item.id: (item, texts.get(item.source_id, "")[item.start : item.end]) for item in task.evidence}
    operations: list[Operation] = []
    if task.issues:
        return ReporterAnswer(operations=operations)
    room = task.most_characters
    for finding in task.findings:
        item, text = next((passages[key] for key in finding.evidence_ids if key in passages), (None, ""))
        if item is None or not text.strip():
            continue
        forms = list(_beginnings(text, f"[{item.id}]"))[: None if not operations else 1]
        shown = next((quote for quote in forms if len(quote) + QUOTE_MARGIN <= room), "")
        if shown:
            operations.append(Operation(text=shown))
            room -= len(shown) + QUOTE_MARGIN
    return ReporterAnswer(operations=operations)


def _beginnings(text: str, marker: str) -> Iterator[str]:
    """Yield a passage as a block quote, whole and then with ever fewer sentences; a table or code only whole."""
    yield "\n".join(_quote(text, marker))
    if not any(line.lstrip().startswith(("|", "```", "~~~")) for line in text.split("\n")):
        for _, end in reversed(sentence_spans(text)[:-1]):
            yield "\n".join(_quote(text[:end].rstrip(), marker))


def _uncovered(task: WriteInput, ranking: Ranking, passages: Sequence[Passage], say: Mapping[str, str]) -> list[str]:
    """Return the words that no document has, with their nearest spelling, and those that no shown passage has."""
    asked = dict.fromkeys(meaning_words(task.query, task.language))
    words = [word for word in asked if not has_stem_of(word, ranking.texts.values())]
    keys = {word: subject_keys(word, task.language) for word in words}
    searched = {word: _searched_keys(word, task) for word in words}
    absent = [word for word in words if all(task.term_documents.get(key) == 0 for key in searched[word])]
    shown = {key for passage in passages for key in (*ranking.keys(passage), *passage.context_keys)}
    missing = [word for word in words if shown.isdisjoint(keys[word]) and word not in absent]
    lines = []
    if absent:
        near = {word: task.spellings.get(searched[word][0]) for word in absent}
        named = [f"{word} ({say['nearest'].format(word=hint)})" if hint else word for word, hint in near.items()]
        count = f"{task.documents_searched or task.source_count:,}"
        lines.append(say["nowhere"].format(count=count, words=_escape(", ".join(named))))
    if missing and task.source_count:
        sentence = say["no_passage" if passages else "scattered"]
        lines.append(sentence.format(words=_escape(", ".join(missing))))
    return lines


def _searched_keys(word: str, task: WriteInput) -> Sequence[str]:
    """Return the keys by which a word was counted: in the question's language, else in that of the documents."""
    own = subject_keys(word, task.language)
    keys_by_language = (subject_keys(word, language) for language in KNOWN_LANGUAGES)
    counted = (keys for keys in (own, *keys_by_language) if any(key in task.term_documents for key in keys))
    return next(counted, own)


def _caption(passage: Passage, text: str) -> str:
    """Return the origin of a passage: title, heading path, and the table header or the introduction above it."""
    if passage.path and text.lstrip().startswith(passage.path[-1]):
        path = passage.path[:-1]
    else:
        path = passage.path
    parts = list(dict.fromkeys((passage.source.title, *path)))
    place = _escape(" › ".join(parts))
    lead = " ".join(passage.lead.strip("| \n").replace("|", "·").split())
    if lead:
        place += f" ({_escape(shorten(lead, TITLE_CHARACTERS))})"
    return f"*{place}*"


def _quote(text: str, marker: str) -> list[str]:
    """Return a passage as a Markdown block quote that shows it literally and ends with its marker."""
    lines = []
    fenced = False
    rows = text.lstrip().startswith("|") and "\n" in text.strip()
    for line in text.strip("\n").split("\n"):
        plain = line.rstrip()
        if plain.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            lines.append(plain.lstrip())
        elif fenced:
            lines.append(plain)
        elif rows and plain.lstrip().startswith("|"):
            lines.append("|".join(_escape(cell) for cell in plain.replace("\\|", "¦").split("|")))
        elif plain.lstrip().startswith("|"):
            if not plain.strip("|:- "):  # the rule below a table header
                continue
            lines.append(" · ".join(_escape(cell.strip()) for cell in plain.strip("| ").split("|")) + "  ")
        elif title := HEADING.match(plain):
            lines.append(f"**{_escape(title[1])}**")
        elif item := ITEM.match(plain):
            mark = f"{item[1]}." if item[1] else "-"
            lines.append(f"{mark} {_escape(plain[item.end() :])}")
        else:
            lines.append(_escape(plain.strip()) + "  " * bool(plain and len(plain) < 90))
    if fenced:
        lines.append("```")
    if lines[-1].startswith(("```", "|")):
        lines += ["", marker]
    else:
        lines[-1] = f"{lines[-1].rstrip()} {marker}"
    return [f"> {line}".rstrip(" ") + "  " * line.endswith("  ") if line else ">" for line in lines]


def _escape(text: str) -> str:
    """Escape one line of a source so that Markdown shows it literally; inline code stays code."""
    return MARKUP.sub(lambda match: match[0] if match["code"] else f"\\{match[0]}", text)
