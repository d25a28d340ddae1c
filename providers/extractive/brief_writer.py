"""The synthesizer: writes an evidence brief out of quotations and fixed connecting words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from contracts.addresses import normalized_text
from contracts.evidence import Finding, Gap, voice_of
from contracts.plan import PlanNode
from contracts.roles import SynthesizerAnswer, WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, GapStatus, NodeStatus
from providers.extractive.answer_search import AnswerSearch
from providers.extractive.arrangement import MORE, Arrangement, BriefSection, arrange
from providers.extractive.asked_form import MEASURES, AnswerForm, AskedForm, first_question, read_asked
from providers.extractive.brief_quotations import Quotation, quotations
from providers.extractive.brief_text import BriefWords
from providers.extractive.facets import ENTITY_PREFIX, QUALIFICATION
from providers.extractive.numbered_codes import without_code_lines
from providers.extractive.passages import NAMING, shorten
from providers.extractive.question import QUESTION_PREFIX, Question, read_question, split_questions
from providers.extractive.question_terms import text_keys
from providers.extractive.quoted_markdown import QuotedRows, one_line, quote_lines, quoted_cell, quoted_rows
from providers.extractive.ranking import aim_of, known_frequencies
from providers.extractive.sentence_places import NUMBERING
from providers.extractive.settings_table import SettingRow, rows, settings_lines
from providers.extractive.sides import what_is
from providers.extractive.sources_read import Reading, readings
from providers.extractive.text_structure import LABEL_LENGTH
from providers.language_words import KNOWN_LANGUAGES, language_words
from providers.text import STEMMED_LANGUAGES, detect_language

UNANSWERED = "no passage that was read gives {what} for it"
NOT_ALL_ANSWERED = "no passage that was read answers {questions}"
ONE_FACT: Final = MEASURES | {AnswerForm.PERSON, AnswerForm.TIME, AnswerForm.PLACE, AnswerForm.VALUE}
"""Forms that one fact answers: what else was read is no part of the answer."""
PASSAGES_PER_QUESTION = 3
NEAR_PER_QUESTION = 2
MOST_MORE = 6
CELL_WORDS = 70
"""Words of a quotation that make a cell of a table readable."""
SHARE: Final = re.compile(r"(?<!\d)\d++\s?%")
GUIDANCE: Final = "guidance"
SITE_NAME: Final = re.compile(r"\s(?:[—–|·-]|::)\s[^—–|·]{3,80}$")
BRIEF_WORDS = 900
"""Length of the brief proper; the rest goes under "More passages"."""
LONGEST_TERM = 90
"""Characters of a term that stand above a passage."""
MOST_GAPS = 8
LONGEST_TITLE = 120
OWN_SHARE = 0.3
"""Share of the documents from which on they speak the question's language."""
LOOKED_AT = 3_000
"""Characters of each document that tell its language."""


def write(task: WriteInput, documents: Mapping[str, str]) -> SynthesizerAnswer:
    """Write the brief; without findings, an honest admission that cites nothing."""
    every = readings(task.sources, documents, task.language)
    say = BriefWords(task.language)
    several = split_questions(task.query, task.language)
    if several:
        return _write_several(task, several, every, say)
    question = read_question(task.query, task.language)
    quoted = quotations(task, every, aim_of(question, question.main_facet, task, every))
    if not quoted:
        return SynthesizerAnswer(markdown=_empty(task, every, say), answers_question=False, unanswered="")
    asked = read_asked(task.query, task.language)
    answers = _answering(asked, task, every, quoted)
    if answers and asked.form is AnswerForm.DIFFERENCE:
        sides = _answering_sides(question, task, every, quoted, answers)
    else:
        sides = _sides(question, task, every, quoted)
    words, one_fact = task.target_words or BRIEF_WORDS, asked.form in ONE_FACT
    settings = _settings(task, asked, every, quoted)
    plan = arrange(quoted, question, words, [*sides.values()], answers, settings=settings, one_fact=one_fact)
    lines = _brief(task, plan, sides, quoted, every, question, asked, say)
    unanswered = "" if plan.answered else UNANSWERED.format(what=BriefWords("en").missing(asked.form))
    return SynthesizerAnswer(markdown=lines, answers_question=plan.answered, unanswered=unanswered)


def _write_several(task: WriteInput, several: list[str], every: list[Reading], say: BriefWords) -> SynthesizerAnswer:
    """A brief with a section for each question of a text; it answers the text if each of them is answered."""
    page = QuotedPages(every, say)
    placed: list[Quotation] = []
    lines: list[str] = []
    missing: list[str] = []
    for number, text in enumerate(several, start=1):
        own = task.model_copy(update={"query": text, "findings": _findings_for(f"{QUESTION_PREFIX}{number}", task)})
        question, asked = read_question(text, task.language), read_asked(text, task.language)
        quoted = [one for one in quotations(own, every, aim_of(question, question.main_facet, own, every))
                  if one.marker not in {other.marker for other in placed}]  # fmt: skip
        answers = _answering(asked, own, every, quoted)
        chosen = answers[:PASSAGES_PER_QUESTION] or quoted[:NEAR_PER_QUESTION]
        lines += [f"## {one_line(shorten(text, LONGEST_TITLE))}", ""]
        if not answers:
            missing.append(f"“{shorten(text, LONGEST_TITLE)}”")
            lines += [say.say("near_why", what=say.missing(asked.form)) if chosen else say["no_answer"], ""]
        lines += page.section(BriefSection("", chosen))
        placed += chosen
    question = read_question(task.query, task.language)
    rest = [one for one in quotations(task, every, aim_of(question, question.main_facet, task, every))
            if one.marker not in {other.marker for other in placed}]  # fmt: skip
    if not placed:
        return SynthesizerAnswer(markdown=_empty(task, every, say), answers_question=False, unanswered="")
    lines += [f"## {say['not_covered']}", "", *limit_lines(task, placed, say, answered=not missing), ""]
    if rest:
        lines += [f"## {say['more']}", "", *page.section(BriefSection(MORE, rest[:MOST_MORE]))]
    head = _head(task, [*placed, *rest[:MOST_MORE]], every, say, " ".join(several))
    text = "\n".join([*head, *lines]).rstrip() + "\n"
    unanswered = NOT_ALL_ANSWERED.format(questions=", ".join(missing)) if missing else ""
    return SynthesizerAnswer(markdown=text, answers_question=not missing, unanswered=unanswered[:300])


def _findings_for(facet: str, task: WriteInput) -> list[Finding]:
    of_query = {query.id for query in task.sub_queries if query.facet == facet}
    return [one for one in task.findings if one.category == facet or one.sub_query_id in of_query]


def title_of(query: str) -> str:
    """The title of a brief: the question; of a long text the first sentence that asks, cut between words."""
    return shorten(first_question(query), LONGEST_TITLE)


def _answering(asked: AskedForm, task: WriteInput, every: list[Reading], quoted: list[Quotation]) -> list[Quotation]:
    """The quotations that answer in the form that the question asks for, the surest first."""
    search = AnswerSearch.of(asked, known_frequencies(task, every, task.query))
    at_hand = {reading.source.id: reading for reading in every}
    told = without_code_lines((one.passage for one in quoted), at_hand, task.query)
    found = []
    for one in quoted:
        if one.passage not in told:
            continue
        strength = search.strength_of(at_hand[one.source.id], one.passage.start, one.passage.end)
        if strength > 0:
            found.append((strength, one))
    return [one for _, one in sorted(found, key=lambda pair: -round(pair[0], 6))]


def _settings(task: WriteInput, asked: AskedForm, every: list[Reading], quoted: list[Quotation]) -> list[SettingRow]:
    """The table of settings, where the question or a search of its plan is about settings."""
    wanted = asked.form is AnswerForm.VALUE or any(query.facet == "settings" for query in task.sub_queries)
    return rows(quoted, {one.source.id: one.document for one in every}) if wanted else []


def _sides(question: Question, task: WriteInput, every: list[Reading], quoted: list[Quotation]) -> dict[str, Quotation]:
    """The quotation that says best what each side of a comparison is; a short one rather than a long one."""
    found: dict[str, Quotation] = {}
    at_hand = {one.marker: one for one in quoted}
    for entity in question.entities:
        name = f"{ENTITY_PREFIX}{entity}"[:60]
        told = _answering(what_is(entity, task.language), task, every, quoted)
        ranked = quotations(task, every, aim_of(question, name, task, every, asked=entity, searched=entity))
        own = [at_hand[one.marker] for one in ranked if one.facet == name and one.marker in at_hand]
        own = [*told, *(one for one in own if one not in told)]
        own = [one for one in own if one not in found.values()]
        if own:
            found[entity] = next((one for one in own[:3] if one.words <= CELL_WORDS), own[0])
    return found


def _answering_sides(
    question: Question, task: WriteInput, every: list[Reading], quoted: list[Quotation], answers: list[Quotation]
) -> dict[str, Quotation]:
    """For each side a quotation that counts: an answer that speaks of it alone, else one that says what it is.

    None where a side has none: beside an answer nothing is shown that only comes near.
    """
    keys = {entity: text_keys(entity, task.language) for entity in question.entities}
    found: dict[str, Quotation] = {}
    for entity, own in keys.items():
        other = frozenset[str]().union(*(theirs for name, theirs in keys.items() if name != entity)) - own
        alone = (one for one in answers if own <= one.passage.keys and other.isdisjoint(one.passage.keys))
        told = [*alone, *_answering(what_is(entity, task.language), task, every, quoted)]
        if free := [one for one in told if one not in found.values()]:
            found[entity] = next((one for one in free[:3] if one.words <= CELL_WORDS), free[0])
    return found if len(found) == len(keys) else {}


def _brief(
    task: WriteInput,
    plan: Arrangement,
    sides: Mapping[str, Quotation],
    quoted: list[Quotation],
    every: list[Reading],
    question: Question,
    asked: AskedForm,
    say: BriefWords,
) -> str:
    page = QuotedPages(every, say)
    lines = _head(task, quoted, every, say)
    lines += [f"## {say['short_answer'] if plan.answered else say['near']}", ""]
    if not plan.answered:
        lines += [say.say("near_why", what=say.missing(asked.form)), ""]
    if plan.qualified_first:
        lines += [say["qualified"], ""]
    beside = sides if len(sides) > 1 else {}
    lines += page.side_by_side(beside)
    shown = [*beside.values()]
    lines += page.section(BriefSection("", [one for one in plan.short_answer if one not in shown]))
    for section in plan.sections:
        left = replace(section, quoted=[one for one in section.quoted if one not in shown])
        if left.quoted or left.rows:
            # What does not answer does not stand under the heading of an answer.
            near = not plan.answered and section.name == question.main_facet
            lines += [*([] if near else [f"## {one_line(_heading(section.name, say))}", ""]), *page.section(left)]
    lines += [f"## {say['not_covered']}", "", *limit_lines(task, quoted, say, answered=plan.answered), ""]
    if more := [one for one in plan.more if one not in shown]:
        lines += [f"## {say['more']}", "", *page.section(BriefSection(MORE, more))]
    return "\n".join(lines).rstrip() + "\n"


def _head(
    task: WriteInput, quoted: list[Quotation], every: list[Reading], say: BriefWords, asked: str = ""
) -> list[str]:
    """Title, what kind of report it is, and what a reader must know first."""
    lines = [f"# {one_line(title_of(asked or task.query))}", "", f"> {say['admission']}", ">"]
    lines += [f"> {_counts(task, quoted, say)}", ""]
    lines += [f"> {line}\n" for line in _other_language(task, every, say)]
    if task.cut_short:
        lines += [say.cut_short(task.cut_short), ""]
    return lines


class QuotedPages:
    """Quotations as lines of Markdown, each under the page and the heading that it is from."""

    def __init__(self, every: Iterable[Reading], say: BriefWords) -> None:
        self._documents = {reading.source.id: reading.document for reading in every}
        self._endings = shared_endings(reading.source.title for reading in every)
        self._say = say

    def section(self, section: BriefSection) -> list[str]:
        """A part of the brief without its heading."""
        lines: list[str] = settings_lines(section.rows, self._say) if section.rows else []
        place, table = "", None
        for one in section.quoted:
            here, rows = self.place(one), self._rows(one)
            if here != place:
                lines += [here, ""]
            elif rows is not None and table == rows.table:
                lines[-1:] = [*rows.rows, ""]
                continue
            place, table = here, rows.table if rows else None
            if rows is not None:
                lines += [*rows.head, *rows.rows]
            else:
                lines += quote_lines(self._documents[one.source.id], *self._range(one), one.marker)
            lines.append("")
        return lines

    def side_by_side(self, sides: Mapping[str, Quotation]) -> list[str]:
        """A table with one quoted cell for each side of a comparison, and where it is from."""
        if not sides:
            return []
        cells = [
            f"“{quoted_cell(self._documents[one.source.id], *self._range(one))}” {one.marker}" for one in sides.values()
        ]
        rows = (
            [one_line(name) for name in sides],
            ["---"] * len(sides),
            cells,
            [self.place(one) for one in sides.values()],
        )
        return [*(f"| {' | '.join(row)} |" for row in rows), ""]

    def place(self, one: Quotation) -> str:
        """The page and the heading of a quotation, in italics."""
        title = NUMBERING.sub("", without_site(one.source.title, self._endings))
        heading = NUMBERING.sub("", one.passage.heading)
        term = self._term_above(one)
        if term:
            return f"*{one_line(title)}: {one_line(term)}*"
        same = not heading or heading.casefold() in (title.casefold(), one.source.title.casefold())
        return f"*{one_line(title)}*" if same else f"*{one_line(title)}: {one_line(heading)}*"

    def _term_above(self, one: Quotation) -> str:
        """The term that a passage explains, where it was quoted without it; else empty."""
        document = self._documents[one.source.id]
        first = next(iter(document.blocks_within(*self._range(one))), None)
        if first is None or first.label is None or not first.label < one.passage.start:
            return ""
        term = document.text[first.label : first.label + LABEL_LENGTH].split("\n", 1)[0].strip()
        return term if len(term) <= LONGEST_TERM and NAMING.search(term) else ""

    def _rows(self, one: Quotation) -> QuotedRows | None:
        document = self._documents[one.source.id]
        return quoted_rows(one.source.id, document, *self._range(one), one.marker)

    def _range(self, one: Quotation) -> tuple[int, int]:
        return one.passage.start, one.passage.end


def shared_endings(titles: Iterable[str]) -> frozenset[str]:
    """What several titles end with behind a dash or a bar: names of sites."""
    counted = Counter(found[0] for title in set(titles) if (found := SITE_NAME.search(title)))
    return frozenset(ending for ending, count in counted.items() if count > 1)


def without_site(title: str, endings: frozenset[str]) -> str:
    """A title without the name of its site."""
    found = SITE_NAME.search(title)
    return title[: found.start()] if found and found[0] in endings else title


def _heading(name: str, say: BriefWords) -> str:
    if name == QUALIFICATION:
        return say["disagree"]
    return name.removeprefix(ENTITY_PREFIX) if name.startswith(ENTITY_PREFIX) else say.heading(name)


def _counts(task: WriteInput, quoted: list[Quotation], say: BriefWords) -> str:
    cited = {one.source.id for one in quoted}
    parts = []
    if task.documents_searched:
        parts.append(say.say("searched", count=say.count(task.documents_searched, "document", "documents")))
    parts.append(say.say("read", count=say.number(max(documents_read(task), len(cited)))))
    parts.append(say.say("cited", count=say.number(len(cited))))
    parts.append(say.say("passage_quoted" if len(quoted) == 1 else "passages_quoted", count=say.number(len(quoted))))
    return " · ".join(parts)


def _empty(task: WriteInput, every: list[Reading], say: BriefWords) -> str:
    lines = [f"# {one_line(title_of(task.query))}", "", f"> {say['admission_empty']}", ""]
    lines += [f"> {line}\n" for line in _other_language(task, every, say)]
    if task.cut_short:
        lines += [say.cut_short(task.cut_short), ""]
    return "\n".join([*lines, *empty_lines(task, say)]).rstrip() + "\n"


def limit_lines(task: WriteInput, quoted: list[Quotation], say: BriefWords, *, answered: bool = True) -> list[str]:
    """Bullets of the section "Not covered, and limits"."""
    stated = [f"- {one_line(say.told(gap.description))}" for gap in _gaps(task)[:MOST_GAPS]]
    nothing = [f"- {say['no_gaps']}"] if answered and not task.gaps else []
    return [
        *(stated or nothing),
        *_support(task, quoted, say),
        *_language(task, say),
        f"- {say['ranked']}",
    ]


def empty_lines(task: WriteInput, say: BriefWords) -> list[str]:
    """The brief that says that nothing was found."""
    answer = say["no_answer_yet" if task.cut_short else "no_answer"]
    lines = [f"## {say['short_answer']}", "", answer, ""]
    lines += [f"- {one_line(say.told(gap.description))}" for gap in _gaps(task)[:MOST_GAPS]]
    read = say.say("read", count=say.number(documents_read(task)))
    lines += ["", f"## {say['what_was_searched']}", ""]
    if task.documents_searched is not None:
        count = say.count(task.documents_searched, "document", "documents")
        lines.append(f"- {say.say('searched', count=count)}, {read}.")
    else:
        lines.append(f"- {say.say('read', count=say.count(documents_read(task), 'document', 'documents'))}.")
    lines += [f"- {_looked_for(query, say)}" for query in task.sub_queries]
    foreign = ["try_language"] if not documents_read(task) else []
    tries = [f"- {say[name]}" for name in ("try_words", *foreign, "try_one", "try_more")]
    return [*lines, "", f"## {say['what_to_try']}", "", *tries, *_language(task, say)]


def _looked_for(query: PlanNode, say: BriefWords) -> str:
    name = "searched_in_part" if query.status is NodeStatus.SKIPPED else "searched_for"
    return say.say(name, query=one_line(query.text))


def documents_read(task: WriteInput) -> int:
    """Documents whose text was looked at, as far as the input tells: it names all only where it says so."""
    return max(task.source_count, sum(source.text is not None for source in task.sources))


def _gaps(task: WriteInput) -> list[Gap]:
    """Gaps that are still open or cannot be closed, the most important first, each wording once."""
    standing = [gap for gap in task.gaps if gap.status in (GapStatus.OPEN, GapStatus.UNADDRESSABLE)]
    silent = language_words("en").told["gap_silent"]
    unasked = {silent.format(query=query.text[:250]) for query in task.sub_queries if _unasked(query, task)}
    asked = [gap for gap in standing if gap.description not in unasked]
    ordered = sorted(asked, key=lambda gap: (gap.priority, gap.id))
    told: dict[str, Gap] = {}
    for gap in ordered:
        told.setdefault(SHARE.sub("", gap.description), gap)
    return list(told.values())


def _unasked(query: PlanNode, task: WriteInput) -> bool:
    """Whether rules added a search that found nothing: nobody asked for it, so its silence is no gap of the answer."""
    own = query.facet == GUIDANCE or query.facet.startswith((ENTITY_PREFIX, QUESTION_PREFIX))
    return not own and normalized_text(query.text) != normalized_text(task.query)


def _confidence(task: WriteInput, say: BriefWords) -> str:
    high, medium, low = (
        sum(finding.confidence in group for finding in task.findings)
        for group in (TOP_CONFIDENCE, (Confidence.MEDIUM,), (Confidence.LOW, Confidence.SPECULATION))
    )
    return f"- {say.say('confidence', high=high, medium=medium, low=low)}"


def _support(task: WriteInput, quoted: list[Quotation], say: BriefWords) -> list[str]:
    """How well what is quoted is supported: of one voice there is nothing to count."""
    voices = {voice_of(one.source.url, one.source.publisher) for one in quoted} - {""}
    named = task.corpus is not None or any(one.source.publisher for one in quoted)
    told = _voices(task, quoted, say)
    return [told] if len(voices) == 1 and named else [_confidence(task, say), told]


def _voices(task: WriteInput, quoted: list[Quotation], say: BriefWords) -> str:
    cited = {one.source.id: one.source for one in quoted}
    voices = {voice_of(source.url, source.publisher) for source in cited.values()} - {""}
    publishers = sorted({source.publisher for source in cited.values() if source.publisher})
    pages = say.count(len(cited), "page", "pages")
    if task.corpus is not None and len(voices) <= 1:
        name = task.corpus.title or task.corpus.name
        return f"- {say.say('independence_collection', pages=pages, name=one_line(name))}"
    if len(voices) > 1:
        names = one_line(", ".join((publishers or sorted(voices))[:5]))
        return f"- {say.say('independence_many', pages=pages, count=len(voices), names=names)}"
    if publishers:
        return f"- {say.say('independence_publisher', pages=pages, name=one_line(publishers[0]))}"
    return f"- {say.say('independence_unknown', pages=pages)}"


def _other_language(task: WriteInput, every: list[Reading], say: BriefWords) -> list[str]:
    """Up front: the documents speak another language than the question."""
    own = task.language.split("-")[0].casefold()
    spoken = Counter(detect_language(reading.document.text[:LOOKED_AT]) for reading in every)
    # A collection that is translated in part speaks its language all the same.
    if not spoken or own not in KNOWN_LANGUAGES or spoken[own] >= OWN_SHARE * spoken.total():
        return []
    found = spoken.most_common(1)[0][0]
    if found not in KNOWN_LANGUAGES:
        return []
    return [say.say("other_language", question=say.language_name(own), documents=say.language_name(found))]


def _language(task: WriteInput, say: BriefWords) -> list[str]:
    base = task.language.split("-")[0].casefold()
    if base in KNOWN_LANGUAGES:
        return []
    lines = [f"- {say.say('foreign_rules', language=one_line(task.language))}"]
    if base not in STEMMED_LANGUAGES:
        lines.append(f"- {say.say('unstemmed', language=one_line(task.language))}")
    return lines
