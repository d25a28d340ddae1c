"""The synthesizer: writes an evidence brief out of quotations and fixed connecting words."""

from collections.abc import Mapping

from contracts.evidence import Gap
from contracts.plan import PlanNode
from contracts.roles import ReportTextDraft, WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, GapStatus, NodeStatus
from providers.extractive import brief_text
from providers.extractive.arrangement import Arrangement, BriefSection, arrange
from providers.extractive.brief_quotations import Quotation, quotations
from providers.extractive.brief_text import blockquote, one_line
from providers.extractive.facets import ENTITY_PREFIX
from providers.extractive.question import Question, read_question
from providers.extractive.ranking import Reading, aim_of, readings
from providers.extractive.settings_table import table_line
from providers.text import STEMMED_LANGUAGES

BRIEF_WORDS = 900
"""Length of the brief proper; the rest goes under "More passages"."""
MOST_GAPS = 8


def write(task: WriteInput, documents: Mapping[str, str]) -> ReportTextDraft:
    """Write the brief; without findings, an honest admission that cites nothing."""
    question = read_question(task.query)
    every = readings(task.sources, documents, task.language)
    quoted = quotations(task, every, aim_of(question, question.main_facet, task, every))
    if not quoted:
        return ReportTextDraft(markdown=_empty(task))
    sides = [one for entity in question.entities for one in _side(entity, question, task, every, quoted)]
    plan = arrange(quoted, question, task.target_words or BRIEF_WORDS, sides)
    return ReportTextDraft(markdown=_brief(task, plan, quoted))


def _side(
    entity: str, question: Question, task: WriteInput, every: list[Reading], quoted: list[Quotation]
) -> list[Quotation]:
    """The quotation that says best what one side of a comparison is."""
    name = f"{ENTITY_PREFIX}{entity}"[:60]
    at_hand = {one.marker: one for one in quoted}
    ranked = quotations(task, every, aim_of(question, name, task, every, asked=entity, searched=entity))
    return [at_hand[one.marker] for one in ranked if one.facet == name and one.marker in at_hand][:1]


def _brief(task: WriteInput, plan: Arrangement, quoted: list[Quotation]) -> str:
    lines = [f"# {one_line(task.query)}", "", f"> {brief_text.ADMISSION}", ">", f"> {_counts(task, quoted)}", ""]
    if task.cut_short:
        lines += [brief_text.cut_short(task.cut_short), ""]
    lines += [f"## {brief_text.SHORT_ANSWER}", ""]
    if plan.qualified_first:
        lines += [brief_text.QUALIFIED, ""]
    for one in plan.short_answer:
        lines += [_place(one), "", blockquote(one.text, one.marker), ""]
    for section in plan.sections:
        lines += _section(section)
    lines += [f"## {brief_text.NOT_COVERED}", "", *limit_lines(task, quoted), ""]
    if plan.more:
        lines += _section(BriefSection(brief_text.MORE, plan.more))
    return "\n".join(lines).rstrip() + "\n"


def _section(section: BriefSection) -> list[str]:
    lines = [f"## {one_line(section.heading)}", ""]
    if section.rows:
        lines += [brief_text.TABLE_HEAD, *(table_line(row) for row in section.rows), ""]
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


def _place(one: Quotation) -> str:
    title, heading = one_line(one.source.title), one_line(one.passage.heading)
    return f"*{title}*" if not heading or heading == title else f"*{title}: {heading}*"


def _counts(task: WriteInput, quoted: list[Quotation]) -> str:
    cited = {one.source.id for one in quoted}
    parts = []
    if task.documents_searched:
        parts.append(f"{brief_text.plural(task.documents_searched, 'document', 'documents')} searched")
    parts.append(f"{max(documents_read(task), len(cited)):,} read")
    parts.append(f"{len(cited):,} cited")
    parts.append(f"{brief_text.plural(len(quoted), 'passage', 'passages')} quoted")
    return " · ".join(parts)


def _empty(task: WriteInput) -> str:
    lines = [f"# {one_line(task.query)}", "", f"> {brief_text.EMPTY_ADMISSION}", ""]
    if task.cut_short:
        lines += [brief_text.cut_short(task.cut_short), ""]
    return "\n".join([*lines, *empty_lines(task)]).rstrip() + "\n"


def limit_lines(task: WriteInput, quoted: list[Quotation]) -> list[str]:
    """Bullets of the section "Not covered, and limits"."""
    stated = [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    return [
        *(stated or [brief_text.NO_GAPS]),
        _confidence(task),
        _voices(task, quoted),
        *_language(task),
        brief_text.RANKED,
    ]


def empty_lines(task: WriteInput) -> list[str]:
    """The brief that says that nothing was found."""
    answer = brief_text.NO_ANSWER_YET if task.cut_short else brief_text.NO_ANSWER
    lines = [f"## {brief_text.SHORT_ANSWER}", "", answer, ""]
    lines += [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    read = documents_read(task)
    lines += ["", f"## {brief_text.WHAT_WAS_SEARCHED}", ""]
    if task.documents_searched is not None:
        lines.append(
            f"- {brief_text.plural(task.documents_searched, 'document', 'documents')} searched, {read:,} read."
        )
    else:
        lines.append(f"- {brief_text.plural(read, 'document', 'documents')} read.")
    lines += [f"- {_looked_for(query)}: {one_line(query.text)}" for query in task.sub_queries]
    return [*lines, "", f"## {brief_text.WHAT_TO_TRY}", "", *brief_text.TRY, *_language(task)]


def _looked_for(query: PlanNode) -> str:
    return "Not searched to its end" if query.status is NodeStatus.SKIPPED else "Searched for"


def documents_read(task: WriteInput) -> int:
    """Documents whose text was looked at, as far as the input tells: it names all only where it says so."""
    return max(task.source_count, sum(source.text is not None for source in task.sources))


def _gaps(task: WriteInput) -> list[Gap]:
    """Gaps that are still open or cannot be closed, the most important first, each wording once."""
    standing = [gap for gap in task.gaps if gap.status in (GapStatus.OPEN, GapStatus.UNADDRESSABLE)]
    ordered = sorted(standing, key=lambda gap: (gap.priority, gap.id))
    return list({gap.description: gap for gap in ordered}.values())


def _confidence(task: WriteInput) -> str:
    counts = [
        sum(finding.confidence in group for finding in task.findings)
        for group in (
            TOP_CONFIDENCE,
            (Confidence.MEDIUM,),
            (Confidence.LOW, Confidence.SPECULATION),
        )
    ]
    return (
        f"- Confidence: {counts[0]} high (several authoritative documents hold similar passages), "
        f"{counts[1]} medium (one authoritative document, or several others), {counts[2]} low (one document)."
    )


def _voices(task: WriteInput, quoted: list[Quotation]) -> str:
    cited = {one.source.id: one.source for one in quoted}
    publishers = sorted({source.publisher for source in cited.values() if source.publisher})
    pages = brief_text.plural(len(cited), "page", "pages")
    if len(publishers) > 1:
        return f"- Independence: {pages} of {len(publishers)} publishers ({one_line(', '.join(publishers[:5]))})."
    name = publishers[0] if publishers else ""
    if task.corpus is not None:
        name = task.corpus.title or task.corpus.name
        return f"- Independence: {pages} of one collection ({one_line(name)}). {brief_text.ONE_VOICE}"
    if name:
        return f"- Independence: {pages} of one publisher ({one_line(name)}). {brief_text.ONE_VOICE}"
    return f"- Independence: {pages}; their publishers are not known."


def _language(task: WriteInput) -> list[str]:
    base = task.language.split("-")[0].casefold()
    if base == "en":
        return []
    lines = [brief_text.RULES_ARE_ENGLISH.format(language=one_line(task.language))]
    if base not in STEMMED_LANGUAGES:
        lines.append(brief_text.UNSTEMMED.format(language=one_line(task.language)))
    return lines
