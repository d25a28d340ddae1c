"""The synthesizer: writes an evidence brief out of quotations and fixed connecting words."""

from collections.abc import Mapping

from contracts.evidence import Gap
from contracts.independence import voice_of
from contracts.plan import PlanNode
from contracts.roles import ReportTextDraft, WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, GapStatus, NodeStatus
from providers.extractive.answer_search import AnswerSearch
from providers.extractive.arrangement import MORE, Arrangement, BriefSection, arrange
from providers.extractive.asked_form import AskedForm, first_question, read_asked
from providers.extractive.brief_quotations import Quotation, quotations
from providers.extractive.brief_text import BriefWords, blockquote, one_line
from providers.extractive.facets import ENTITY_PREFIX, QUALIFICATION
from providers.extractive.passages import shorten
from providers.extractive.question import Question, read_question
from providers.extractive.ranking import aim_of, known_frequencies
from providers.extractive.sentence_places import NUMBERING
from providers.extractive.settings_table import table_head, table_line
from providers.extractive.sources_read import Reading, readings
from providers.language_words import KNOWN_LANGUAGES
from providers.text import STEMMED_LANGUAGES, detect_language

UNANSWERED = "no passage that was read gives {what} for it"
BRIEF_WORDS = 900
"""Length of the brief proper; the rest goes under "More passages"."""
MOST_GAPS = 8
LONGEST_TITLE = 120
LOOKED_AT = 3_000
"""Characters of each document that tell its language."""


def write(task: WriteInput, documents: Mapping[str, str]) -> ReportTextDraft:
    """Write the brief; without findings, an honest admission that cites nothing."""
    question = read_question(task.query, task.language)
    say = BriefWords(task.language)
    every = readings(task.sources, documents, task.language)
    quoted = quotations(task, every, aim_of(question, question.main_facet, task, every))
    if not quoted:
        return ReportTextDraft(markdown=_empty(task, every, say), answers_question=False, unanswered="")
    asked = read_asked(task.query, task.language)
    answers = _answering(asked, task, every, quoted)
    sides = [one for entity in question.entities for one in _side(entity, question, task, every, quoted)]
    plan = arrange(quoted, question, task.target_words or BRIEF_WORDS, sides, answers)
    lines = _brief(task, plan, quoted, every, asked, say)
    unanswered = "" if plan.answered else UNANSWERED.format(what=BriefWords("en").missing(asked.form))
    return ReportTextDraft(markdown=lines, answers_question=plan.answered, unanswered=unanswered)


def title_of(query: str) -> str:
    """The title of a brief: the question; of a long text the first sentence that asks, cut between words."""
    return shorten(first_question(query), LONGEST_TITLE)


def _answering(asked: AskedForm, task: WriteInput, every: list[Reading], quoted: list[Quotation]) -> list[Quotation]:
    """The quotations that answer in the form that the question asks for, the surest first."""
    search = AnswerSearch.of(asked, known_frequencies(task, every, task.query))
    at_hand = {reading.source.id: reading for reading in every}
    found = []
    for one in quoted:
        strength = search.strength_of(at_hand[one.source.id], one.passage.start, one.passage.end)
        if strength > 0:
            found.append((strength, one))
    return [one for _, one in sorted(found, key=lambda pair: -round(pair[0], 6))]


def _side(
    entity: str, question: Question, task: WriteInput, every: list[Reading], quoted: list[Quotation]
) -> list[Quotation]:
    """The quotation that says best what one side of a comparison is."""
    name = f"{ENTITY_PREFIX}{entity}"[:60]
    at_hand = {one.marker: one for one in quoted}
    ranked = quotations(task, every, aim_of(question, name, task, every, asked=entity, searched=entity))
    return [at_hand[one.marker] for one in ranked if one.facet == name and one.marker in at_hand][:1]


def _brief(
    task: WriteInput,
    plan: Arrangement,
    quoted: list[Quotation],
    every: list[Reading],
    asked: AskedForm,
    say: BriefWords,
) -> str:
    lines = [f"# {one_line(title_of(task.query))}", "", f"> {say['admission']}", ">"]
    lines += [f"> {_counts(task, quoted, say)}", ""]
    lines += [f"> {line}\n" for line in _other_language(task, every, say)]
    if task.cut_short:
        lines += [say.cut_short(task.cut_short), ""]
    lines += [f"## {say['short_answer'] if plan.answered else say['near']}", ""]
    if not plan.answered:
        lines += [say.say("near_why", what=say.missing(asked.form)), ""]
    elif plan.qualified_first:
        lines += [say["qualified"], ""]
    lines += _section_body(BriefSection("", plan.short_answer))
    for section in plan.sections:
        lines += _section(section, say)
    lines += [f"## {say['not_covered']}", "", *limit_lines(task, quoted, say, answered=plan.answered), ""]
    if plan.more:
        lines += _section(BriefSection(MORE, plan.more), say)
    return "\n".join(lines).rstrip() + "\n"


def _section(section: BriefSection, say: BriefWords) -> list[str]:
    lines = [f"## {one_line(_heading(section.name, say))}", ""]
    if section.rows:
        lines += [table_head(say), *(table_line(row) for row in section.rows), ""]
    return [*lines, *_section_body(section)]


def _section_body(section: BriefSection) -> list[str]:
    lines: list[str] = []
    place = ""
    for number, one in enumerate(section.quoted, start=1):
        here = _place(one)
        if section.numbered:
            lines += [f"{number}. {here}", "", blockquote(one.text, one.marker, indent="   "), ""]
            continue
        if here != place:
            lines += [here, ""]
            place = here
        lines += [blockquote(one.text, one.marker), ""]
    return lines


def _heading(name: str, say: BriefWords) -> str:
    if name == QUALIFICATION:
        return say["disagree"]
    if name == MORE:
        return say["more"]
    return name.removeprefix(ENTITY_PREFIX) if name.startswith(ENTITY_PREFIX) else say.heading(name)


def _place(one: Quotation) -> str:
    title, heading = (one_line(NUMBERING.sub("", text)) for text in (one.source.title, one.passage.heading))
    return f"*{title}*" if not heading or heading == title else f"*{title}: {heading}*"


def _counts(task: WriteInput, quoted: list[Quotation], say: BriefWords) -> str:
    cited = {one.source.id for one in quoted}
    parts = []
    if task.documents_searched:
        parts.append(say.say("searched", count=say.count(task.documents_searched, "document", "documents")))
    parts.append(say.say("read", count=f"{max(documents_read(task), len(cited)):,}"))
    parts.append(say.say("cited", count=f"{len(cited):,}"))
    parts.append(say.say("passage_quoted" if len(quoted) == 1 else "passages_quoted", count=f"{len(quoted):,}"))
    return " · ".join(parts)


def _empty(task: WriteInput, every: list[Reading], say: BriefWords) -> str:
    lines = [f"# {one_line(title_of(task.query))}", "", f"> {say['admission_empty']}", ""]
    lines += [f"> {line}\n" for line in _other_language(task, every, say)]
    if task.cut_short:
        lines += [say.cut_short(task.cut_short), ""]
    return "\n".join([*lines, *empty_lines(task, say)]).rstrip() + "\n"


def limit_lines(task: WriteInput, quoted: list[Quotation], say: BriefWords, *, answered: bool = True) -> list[str]:
    """Bullets of the section "Not covered, and limits"."""
    stated = [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    nothing = [f"- {say['no_gaps']}"] if answered else []
    return [
        *(stated or nothing),
        _confidence(task, say),
        _voices(task, quoted, say),
        *_language(task, say),
        f"- {say['ranked']}",
    ]


def empty_lines(task: WriteInput, say: BriefWords) -> list[str]:
    """The brief that says that nothing was found."""
    answer = say["no_answer_yet" if task.cut_short else "no_answer"]
    lines = [f"## {say['short_answer']}", "", answer, ""]
    lines += [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    read = say.say("read", count=f"{documents_read(task):,}")
    lines += ["", f"## {say['what_was_searched']}", ""]
    if task.documents_searched is not None:
        count = say.count(task.documents_searched, "document", "documents")
        lines.append(f"- {say.say('searched', count=count)}, {read}.")
    else:
        lines.append(f"- {say.say('read', count=say.count(documents_read(task), 'document', 'documents'))}.")
    lines += [f"- {_looked_for(query, say)}" for query in task.sub_queries]
    tries = [f"- {say[name]}" for name in ("try_words", "try_one", "try_more")]
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
    ordered = sorted(standing, key=lambda gap: (gap.priority, gap.id))
    return list({gap.description: gap for gap in ordered}.values())


def _confidence(task: WriteInput, say: BriefWords) -> str:
    high, medium, low = (
        sum(finding.confidence in group for finding in task.findings)
        for group in (TOP_CONFIDENCE, (Confidence.MEDIUM,), (Confidence.LOW, Confidence.SPECULATION))
    )
    return f"- {say.say('confidence', high=high, medium=medium, low=low)}"


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
    spoken = detect_language(" ".join(reading.document.text[:LOOKED_AT] for reading in every))
    own = task.language.split("-")[0].casefold()
    if not every or spoken == own or spoken not in KNOWN_LANGUAGES or own not in KNOWN_LANGUAGES:
        return []
    names = (BriefWords(code)["language"] for code in (own, spoken))
    question, found = names
    return [say.say("other_language", question=question, documents=found)]


def _language(task: WriteInput, say: BriefWords) -> list[str]:
    base = task.language.split("-")[0].casefold()
    if base in KNOWN_LANGUAGES:
        return []
    lines = [f"- {say.say('foreign_rules', language=one_line(task.language))}"]
    if base not in STEMMED_LANGUAGES:
        lines.append(f"- {say.say('unstemmed', language=one_line(task.language))}")
    return lines
