"""What the brief admits: gaps, how well things are supported, and by how many voices."""

from contracts.evidence import Gap
from contracts.roles import WriteInput
from contracts.vocabulary import TOP_CONFIDENCE, Confidence, GapStatus
from providers.extractive import connecting_words
from providers.extractive.markdown_quoting import one_line
from providers.extractive.quotations import Quotation
from providers.text import STEMMED_LANGUAGES

MOST_GAPS = 8


def limit_lines(task: WriteInput, quoted: list[Quotation]) -> list[str]:
    """Bullets of the section "Not covered, and limits"."""
    stated = [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    return [
        *(stated or [connecting_words.NO_GAPS]),
        _confidence(task),
        _voices(task, quoted),
        *_language(task),
        connecting_words.RANKED,
    ]


def empty_lines(task: WriteInput) -> list[str]:
    """The brief that says that nothing was found."""
    lines = [f"## {connecting_words.SHORT_ANSWER}", "", connecting_words.NO_ANSWER, ""]
    lines += [f"- {one_line(gap.description)}" for gap in _gaps(task)[:MOST_GAPS]]
    read = documents_read(task)
    lines += ["", f"## {connecting_words.WHAT_WAS_SEARCHED}", ""]
    if task.documents_searched is not None:
        lines.append(
            f"- {connecting_words.plural(task.documents_searched, 'document', 'documents')} searched, {read:,} read."
        )
    else:
        lines.append(f"- {connecting_words.plural(read, 'document', 'documents')} read.")
    lines += [f"- Searched for: {one_line(query.text)}" for query in task.sub_queries]
    return [*lines, "", f"## {connecting_words.WHAT_TO_TRY}", "", *connecting_words.TRY, *_language(task)]


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
    pages = connecting_words.plural(len(cited), "page", "pages")
    if len(publishers) > 1:
        return f"- Independence: {pages} of {len(publishers)} publishers ({one_line(', '.join(publishers[:5]))})."
    name = publishers[0] if publishers else ""
    if task.corpus is not None:
        name = task.corpus.title or task.corpus.name
        return f"- Independence: {pages} of one collection ({one_line(name)}). {connecting_words.ONE_VOICE}"
    if name:
        return f"- Independence: {pages} of one publisher ({one_line(name)}). {connecting_words.ONE_VOICE}"
    return f"- Independence: {pages}; their publishers are not known."


def _language(task: WriteInput) -> list[str]:
    base = task.language.split("-")[0].casefold()
    if base == "en":
        return []
    lines = [connecting_words.RULES_ARE_ENGLISH.format(language=one_line(task.language))]
    if base not in STEMMED_LANGUAGES:
        lines.append(connecting_words.UNSTEMMED.format(language=one_line(task.language)))
    return lines
