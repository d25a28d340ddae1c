"""The synthesizer: an evidence brief out of quotations and fixed connecting words."""

from collections.abc import Mapping

from contracts.roles import ReportTextDraft, WriteInput
from providers.extractive import connecting_words
from providers.extractive.arrangement import Arrangement, BriefSection, arrange
from providers.extractive.facets import ENTITY_PREFIX
from providers.extractive.limits_section import documents_read, empty_lines, limit_lines
from providers.extractive.markdown_quoting import blockquote, one_line
from providers.extractive.question import Question, read_question
from providers.extractive.quotations import Quotation, quotations
from providers.extractive.ranking_aims import aim_of
from providers.extractive.sentence_ranking import Reading, readings
from providers.extractive.settings_table import table_line

BRIEF_WORDS = 900
"""Length of the brief proper; the rest goes under "More passages"."""


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
    lines = [f"# {one_line(task.query)}", "", f"> {connecting_words.ADMISSION}", ">", f"> {_counts(task, quoted)}", ""]
    if task.cut_short:
        lines += [connecting_words.cut_short(task.cut_short), ""]
    lines += [f"## {connecting_words.SHORT_ANSWER}", ""]
    if plan.qualified_first:
        lines += [connecting_words.QUALIFIED, ""]
    for one in plan.short_answer:
        lines += [_place(one), "", blockquote(one.text, one.marker), ""]
    for section in plan.sections:
        lines += _section(section)
    lines += [f"## {connecting_words.NOT_COVERED}", "", *limit_lines(task, quoted), ""]
    if plan.more:
        lines += _section(BriefSection(connecting_words.MORE, plan.more))
    return "\n".join(lines).rstrip() + "\n"


def _section(section: BriefSection) -> list[str]:
    lines = [f"## {one_line(section.heading)}", ""]
    if section.rows:
        lines += [connecting_words.TABLE_HEAD, *(table_line(row) for row in section.rows), ""]
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
        parts.append(f"{connecting_words.plural(task.documents_searched, 'document', 'documents')} searched")
    parts.append(f"{max(documents_read(task), len(cited)):,} read")
    parts.append(f"{len(cited):,} cited")
    parts.append(f"{connecting_words.plural(len(quoted), 'passage', 'passages')} quoted")
    return " · ".join(parts)


def _empty(task: WriteInput) -> str:
    lines = [f"# {one_line(task.query)}", "", f"> {connecting_words.EMPTY_ADMISSION}", ""]
    if task.cut_short:
        lines += [connecting_words.cut_short(task.cut_short), ""]
    return "\n".join([*lines, *empty_lines(task)]).rstrip() + "\n"
