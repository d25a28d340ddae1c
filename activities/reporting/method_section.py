"""Method and limits: how the report came about and what it does not say, as facts for every form of it."""

from dataclasses import dataclass, field
from typing import Any

from activities.reporting.fixed_sentences import COMPLETENESS, ENGINES, OUTCOMES, count_noun, moment
from activities.reporting.report_inputs import ReportInputs
from contracts.evidence import Finding
from contracts.state import ResearchState
from contracts.usage import Usage
from contracts.vocabulary import AgentRole, EngineKind, GapStatus, NodeStatus, SourceStatus

FILES_LISTED = 10
CONTRADICTIONS_LISTED = 20
GAP_WORDS = {
    GapStatus.OPEN: "open",
    GapStatus.ADDRESSED: "closed by later evidence",
    GapStatus.UNADDRESSABLE: "could not be closed",
    GapStatus.SUPERSEDED: "replaced by another",
}
SUB_QUERY_WORDS = {
    NodeStatus.PENDING: "not searched",
    NodeStatus.EXECUTING: "interrupted",
    NodeStatus.COMPLETED: "searched",
    NodeStatus.FAILED: "failed",
    NodeStatus.SKIPPED: "skipped",
}


@dataclass(frozen=True)
class Fact:
    """A label with a sentence and, where there are several things, a list. All text is plain, none is markup."""

    label: str
    value: str = ""
    items: list[str] = field(default_factory=list)
    command: str = ""
    """A command to type, shown after the sentence."""


def _outcome(matter: ReportInputs) -> Fact:
    ending = matter.ending
    words = f"{OUTCOMES[ending.outcome]}: {matter.why()}; {COMPLETENESS[ending.completeness]}."
    return Fact("Outcome", words)


def _engine(matter: ReportInputs) -> Fact:
    by_role = matter.state.engine_by_role
    roles: dict[str, list[str]] = {}
    for role, kind in sorted(by_role.items()):
        roles.setdefault(kind, []).append(role)
    kinds = sorted(roles) or [matter.resolved.engine.value]
    items = [f"{kind}: {ENGINES[EngineKind(kind)]}"
             + (f" ({', '.join(roles[kind])})" if kind in roles else "") for kind in kinds]  # fmt: skip
    models = f"Models: {', '.join(matter.state.models_used)}." if matter.state.models_used else ""
    if len(items) == 1:
        return Fact("Engine", f"{items[0]}. {models}".strip())
    return Fact("Engine", f"Different engines did different roles. {models}".strip(), items)


def _asked_form(matter: ReportInputs) -> list[Fact]:
    """What was asked of the report beyond the question, and what became of it."""
    asked = matter.resolved
    wishes = {
        "language": asked.report_language,
        "sections": "; ".join(asked.sections),
        "readers": asked.audience,
        "region": asked.region,
    }
    told = [f"{name}: {wish}" for name, wish in wishes.items() if wish]
    if not told:
        return []
    by_model = matter.state.engine_by_role.get(AgentRole.SYNTHESIZER) == EngineKind.MODEL
    applied = "The model that wrote the report was told." if by_model else (
        "Not applied: this report was written without a model, and quotes its sources as they are."
    )  # fmt: skip
    return [Fact("Asked for", applied, told)]


def _corpus(matter: ReportInputs) -> list[Fact]:
    corpus = matter.resolved.corpus
    facts = []
    if corpus:
        named = f"{corpus.name} ({corpus.title})" if corpus.title and corpus.title != corpus.name else corpus.name
        value = (
            f"{named}, {count_noun(corpus.files, 'file')}, indexed {moment(corpus.indexed_at)}, digest {corpus.digest}."
        )
        facts.append(Fact("Corpus", value))
    if matter.skipped:
        listed = [f"{file.path}: {file.reason or file.kind}" for file in matter.skipped[:FILES_LISTED]]
        more = len(matter.skipped) - len(listed)
        value = f"{count_noun(len(matter.skipped), 'file')} of the corpus could not be used."
        facts.append(Fact("Skipped files", value, [*listed, f"and {more:,} more"] if more else listed))
    return facts


def _searching(matter: ReportInputs) -> list[Fact]:
    state = matter.state
    queries = []
    for query in state.plan.sub_queries:
        why = query.error or query.status_reason
        status = SUB_QUERY_WORDS[query.status] + (f" ({why})" if why else "")
        found = f", {count_noun(query.result_count, 'result')}" if query.status is NodeStatus.COMPLETED else ""
        gap = ", asked to close a gap" if query.gap_id else ""
        queries.append(f"{query.text} – {status}{found}{gap}")
    read = sum(source.status is SourceStatus.FULL for source in state.sources.values())
    searched = state.documents_searched
    value = (
        f"{count_noun(state.iteration, 'iteration')}, {count_noun(len(queries), 'sub-query', 'sub-queries')}, "
        + (f"{count_noun(searched, 'document')} searched, " if searched is not None else "")
        + f"{count_noun(len(state.sources), 'source')} found, {read:,} read, {len(matter.cited):,} cited."
    )
    facts = [Fact("Searching", value, queries)]
    silent = [f"{choice.name}: {choice.reason}" for choice in matter.resolved.providers if not choice.available]
    if silent:
        facts.append(Fact("Not searched", "These were to be asked and could not be.", silent))
    if matter.unread:
        listed = [f"{source.title}: {source.status.value.replace('_', ' ')}"
                  + (f" ({source.status_reason})" if source.status_reason else "")
                  for source in matter.unread[:FILES_LISTED]]  # fmt: skip
        more = len(matter.unread) - len(listed)
        value = f"{count_noun(len(matter.unread), 'source')} found but not read."
        facts.append(Fact("Not read", value, [*listed, f"and {more:,} more"] if more else listed))
    return facts


def _limits(matter: ReportInputs) -> list[Fact]:
    state, numbered = matter.state, matter.numbered
    facts = []
    if state.gaps:
        gaps = [f"{gap.description} – {GAP_WORDS[gap.status]}, {gap.severity.value}" for gap in state.gaps]
        facts.append(Fact("Gaps", f"{count_noun(len(gaps), 'gap')}, {len(state.unaddressed_gaps()):,} open.", gaps))
    if state.degraded or state.failed_branches:
        notes = [*state.degraded, *(f"failed: {branch}" for branch in state.failed_branches)]
        facts.append(Fact("Degraded", "The run could not do everything as planned.", notes))
    limitations = [*state.limitations]
    if matter.replaced_list:
        limitations.append("The draft brought its own list of sources; the list above replaces it.")
    if matter.uncited_removed:
        count = count_noun(matter.uncited_removed, "statement")
        limitations.append(f"{count} removed from the draft: the writer cited no passage for them.")
    if numbered.unresolved:
        count = count_noun(len(numbered.unresolved), "citation marker")
        limitations.append(f"{count} removed from the draft: no passage of this run has that name.")
    if numbered.foreign_urls:
        count = count_noun(len(numbered.foreign_urls), "address", "addresses")
        limitations.append(f"{count} removed from the draft: no source of this run is there.")
    if limitations:
        facts.append(Fact("Limitations", "", limitations))
    return facts


def _contradictions(matter: ReportInputs) -> list[Fact]:
    """Both sides of what sources disagree about, each with its sources."""
    if not matter.contradictions:
        return []

    def side(finding: Finding) -> str:
        titles = (matter.state.sources[one].title for one in finding.source_ids if one in matter.state.sources)
        return f"“{finding.statement}” ({'; '.join(dict.fromkeys(titles))})"

    items = [f"{side(one)} – {side(other)}" for one, other in matter.contradictions[:CONTRADICTIONS_LISTED]]
    count = count_noun(len(matter.contradictions), "contradiction")
    return [Fact("Sources disagree", f"{count} between sources; both sides:", items)]


def _usage(matter: ReportInputs) -> list[Fact]:
    words = usage_words(matter.state)
    return [Fact("Use", *words)] if words else []


def _check(matter: ReportInputs) -> Fact:
    return Fact(
        "How to check",
        "This compares every quote with the stored text of its source, and that text with its hash:",
        command=f"research audit {matter.resolved.research_id}",
    )


def method_facts(matter: ReportInputs) -> list[Fact]:
    """All facts, in the order in which they are read."""
    product = f"durable-research {matter.product_version}, strategy {matter.resolved.strategy}."
    times = f"Started {moment(matter.state.started_at)}, ended {moment(matter.ending.ended_at)}."
    return [
        _outcome(matter),
        _engine(matter),
        *_asked_form(matter),
        *_corpus(matter),
        *_searching(matter),
        *_contradictions(matter),
        *_limits(matter),
        *_usage(matter),
        Fact("Run", f"{matter.resolved.research_id}. {product} {times} {_egress(matter)}"),
        _check(matter),
    ]


def _egress(matter: ReportInputs) -> str:
    words = matter.resolved.egress
    return words[:1].upper() + words[1:].rstrip(".") + "." if words else ""


TIMES = {"active_seconds"}
"""Of the run as a whole; roles work side by side."""


def usage_document(state: ResearchState) -> dict[str, Any]:
    """The total and, where it is known who used what, `by_role` and `by_phase`, each of which sums up to it."""
    document = state.usage.model_dump(mode="json")
    for name, parts in (("by_role", state.usage_by_role), ("by_phase", state.usage_by_phase)):
        if parts:
            document[name] = {key: part.model_dump(mode="json", exclude=TIMES) for key, part in parts.items()}
    return document


def usage_words(state: ResearchState) -> tuple[str, list[str]] | None:
    """One sentence of the total and one line per role; None for a run that neither asked a model nor paid."""
    if not state.usage.model_calls and state.usage.cost_usd == 0:
        return None
    return f"{_words(state.usage)}.", [f"{role}: {_words(part)}" for role, part in state.usage_by_role.items()]


def _words(usage: Usage) -> str:
    parts = []
    if usage.model_calls:
        share = usage.cached_share
        cached = f", {share:.0%} of the input from a cache" if share else ""
        parts.append(f"{count_noun(usage.model_calls, 'model call')}, {count_noun(usage.tokens, 'token')}{cached}")
    if usage.searches:
        parts.append(count_noun(usage.searches, "search", "searches"))
    if usage.reads:
        parts.append(count_noun(usage.reads, "read"))
    return ", ".join([*parts, _cost(usage)])


def _cost(usage: Usage) -> str:
    if usage.cost_usd is not None:
        return f"{usage.cost_usd:.4f} USD"
    known = f", {usage.known_cost_usd:.4f} USD of it known" if usage.known_cost_usd else ""
    return f"cost unknown{known}"
