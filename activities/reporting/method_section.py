"""Method and limits: how the report came about and what it does not say, as facts for every form of it."""

from dataclasses import dataclass, field
from typing import Any

from activities.reporting.report_inputs import ReportInputs
from activities.reporting.report_words import ReportWords
from contracts.evidence import Finding
from contracts.outcome import HOOK, PERSON, Usage
from contracts.request import EARLIER
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import AgentStatus, EngineKind, NodeStatus, SourceStatus, StopReason

CUT_OFF, FAILED = AgentStatus.CUT_OFF, AgentStatus.FAILED
FILES_LISTED = 10
CONTRADICTIONS_LISTED = 20


@dataclass(frozen=True)
class Fact:
    """A label with a sentence and, where there are several things, a list. All text is plain, none is markup."""

    label: str
    value: str = ""
    items: list[str] = field(default_factory=list)
    command: str = ""
    """A command to type, shown after the sentence."""


def _outcome(matter: ReportInputs) -> Fact:
    said = [matter.why()]
    if matter.ending.stop_reason is not StopReason.ANSWERED_DIRECTLY:  # which has no plan
        said.append(matter.words[f"complete_{matter.ending.completeness.value}"])
    said = list(dict.fromkeys(said))
    return Fact(matter.words["fact_outcome"], f"{matter.outcome()}: {'; '.join(said)}.")


def _engine(matter: ReportInputs) -> Fact:
    say, roles = matter.words, dict[str, list[str]]()
    for role, kind in sorted(matter.state.engine_by_role.items()):
        roles.setdefault(kind, []).append(say.name("role", role))
    items = [
        f"{say[f'engine_kind_{kind}']}: {say[f'engine_{kind}']}"
        + (f" ({', '.join(roles[kind])})" if kind in roles else "")
        for kind in sorted(roles) or [matter.resolved.engine.value]
    ]
    models = say.say("models", names=", ".join(matter.state.models_used)) if matter.state.models_used else ""
    if len(items) == 1:
        return Fact(say["fact_engine"], f"{items[0]}. {models}".strip())
    return Fact(say["fact_engine"], f"{say['engines_differ']} {models}".strip(), items)


def _asked_form(matter: ReportInputs) -> list[Fact]:
    """What was asked of the report beyond the question, and what became of it."""
    asked, say = matter.resolved, matter.words
    wishes = {
        "wish_language": asked.report_language,
        "wish_sections": "; ".join(asked.sections),
        "wish_readers": asked.audience,
        "wish_region": asked.region,
    }
    told = [f"{say[name]}: {wish}" for name, wish in wishes.items() if wish]
    if not told:
        return []
    by_model = writer_engine(matter.state.engine_by_role) is EngineKind.MODEL
    return [Fact(say["fact_asked"], say["wishes_told" if by_model else "wishes_not_told"], told)]


def _guidance(matter: ReportInputs) -> list[Fact]:
    """What was asked for while the run went on, and what was done with it."""
    say = matter.words
    told = [
        f"{say.name('origin', said.origin)}: “{said.text}”"
        for said in matter.state.guidance
        if said.origin in (PERSON, HOOK)
    ]
    return [Fact(say["fact_guidance"], say["guidance_words"], told)] if told else []


def _follow_up(matter: ReportInputs) -> list[Fact]:
    """What of an earlier run was used."""
    followed, say = matter.resolved.follow_up, matter.words
    if followed is None:
        return []
    again = [source for source in matter.state.readable_sources() if source.provider == EARLIER]
    sources = say.count("source", followed.sources)
    value = say.say("follows_words", id=followed.research_id, query=followed.query, sources=sources, again=len(again))
    return [Fact(say["fact_follows"], value)]


def _corpus(matter: ReportInputs) -> list[Fact]:
    corpus, say = matter.resolved.corpus, matter.words
    facts = []
    if corpus:
        named = f"{corpus.name} ({corpus.title})" if corpus.title and corpus.title != corpus.name else corpus.name
        files, when = say.count("file", corpus.files), say.moment(corpus.indexed_at)
        value = say.say("corpus_words", name=named, files=files, when=when, digest=corpus.digest)
        facts.append(Fact(say["fact_corpus"], value))
    if matter.skipped:
        listed = [f"{file.path}: {say.told(file.reason or file.kind)}" for file in matter.skipped]
        value = say.say("skipped_words", files=say.count("file", len(matter.skipped)))
        facts.append(Fact(say["fact_skipped"], value, _first(listed, say)))
    return facts


def _first(listed: list[str], say: ReportWords) -> list[str]:
    """The first of many lines, and how many there are besides."""
    more = len(listed) - FILES_LISTED
    return [*listed[:FILES_LISTED], *([say.say("and_more", count=more)] if more > 0 else [])]


def _searching(matter: ReportInputs) -> list[Fact]:
    state, say = matter.state, matter.words
    queries = []
    for query in state.plan.sub_queries:
        why = query.error or query.status_reason
        status = say[f"query_{query.status.value}"] + (f" ({say.told(why)})" if why else "")
        found = f", {say.count('result', query.result_count)}" if query.status is NodeStatus.COMPLETED else ""
        gap = f", {say['for_a_gap']}" if query.gap_id else ""
        queries.append(f"{query.text} – {status}{found}{gap}")
    read = sum(source.status is SourceStatus.FULL for source in state.sources.values())
    searched = state.documents_searched
    parts = [say.count("iteration", state.iteration), say.count("query", len(queries))]
    if searched is not None:
        parts.append(say.say("searched_count", documents=say.count("document", searched)))
    sources = say.count("source", len(state.sources))
    parts.append(say.say("searching_words", sources=sources, read=read, cited=len(matter.cited)))
    facts = [Fact(say["fact_searching"], ", ".join(parts), queries)]
    silent = [
        f"{choice.name}: {say.told(choice.reason)}" for choice in matter.resolved.providers if not choice.available
    ]
    if silent:
        facts.append(Fact(say["fact_not_searched"], say["not_searched_words"], silent))
    if matter.unread:
        listed = [
            f"{source.title}: {say[f'status_{source.status.value}']}"
            + (f" ({say.told(source.status_reason)})" if source.status_reason else "")
            for source in matter.unread
        ]
        value = say.say("not_read_words", sources=say.count("source", len(matter.unread)))
        facts.append(Fact(say["fact_not_read"], value, _first(listed, say)))
    return facts


def _agents(matter: ReportInputs) -> list[Fact]:
    """What each agent was to find out, and what it brought back."""
    state, say = matter.state, matter.words
    if not state.agents:
        return []
    lines = []
    for record in state.agents:
        task, result = record.task, record.result
        mine = [query.text for query in state.query_ledger if query.sub_query_id == task.plan_node]
        parts = [say.count("finding", len(result.finding_ids)) if result else ""]
        parts += [say.count("search", len(dict.fromkeys(mine)))] if mine else []
        parts += [say.name("agent", record.status.value)] if record.status in (CUT_OFF, FAILED) else []
        parts += [say.say("agent_went_on", agent=task.continues)] if task.continues else []
        parts += [say.told(result.problem)] if result and result.problem else []
        lines.append(f"{task.id}: {task.text} – {', '.join(part for part in parts if part)}")
    return [Fact(say["fact_agents"], say.say("agents_words", agents=say.count("agent", len(lines))), lines)]


def _limits(matter: ReportInputs) -> list[Fact]:
    state, numbered, say = matter.state, matter.numbered, matter.words
    facts = []
    if state.gaps:
        gaps = [
            f"{say.told(gap.description)} – {say[f'gap_{gap.status.value}']}, {say[f'severity_{gap.severity.value}']}"
            for gap in state.gaps
        ]
        value = say.say("gaps_words", gaps=say.count("gap", len(gaps)), open=len(state.unaddressed_gaps()))
        facts.append(Fact(say["fact_gaps"], value, gaps))
    if state.degraded or state.failed_branches:
        notes = [say.told(note) for note in state.degraded]
        notes += [say.say("failed_branch", branch=branch) for branch in state.failed_branches]
        facts.append(Fact(say["fact_degraded"], say["degraded_words"], notes))
    limitations = [say.told(line) for line in state.limitations]
    if matter.replaced_list:
        limitations.append(say["replaced_list"])
    if matter.uncited_removed:
        limitations.append(say.say("uncited_removed", statements=say.count("statement", matter.uncited_removed)))
    if numbered.unresolved:
        limitations.append(say.say("markers_removed", count=len(numbered.unresolved)))
    if numbered.foreign_urls:
        limitations.append(say.say("addresses_removed", count=len(numbered.foreign_urls)))
    # What is listed as a gap already is not said again.
    stated = {say.told(gap.description) for gap in state.gaps}
    if left := [line for line in dict.fromkeys(limitations) if line not in stated]:
        facts.append(Fact(say["fact_limitations"], "", left))
    return facts


def _contradictions(matter: ReportInputs) -> list[Fact]:
    """Both sides of what sources disagree about, each with its sources."""
    if not matter.contradictions:
        return []

    def side(finding: Finding) -> str:
        titles = (matter.state.sources[one].title for one in finding.source_ids if one in matter.state.sources)
        return f"“{finding.statement}” ({'; '.join(dict.fromkeys(titles))})"

    items = [f"{side(one)} – {side(other)}" for one, other in matter.contradictions[:CONTRADICTIONS_LISTED]]
    say = matter.words
    count = say.count("contradiction", len(matter.contradictions))
    return [Fact(say["fact_disagree"], say.say("disagree_words", contradictions=count), items)]


def _usage(matter: ReportInputs) -> list[Fact]:
    words = usage_words(matter.state, matter.words)
    return [Fact(matter.words["fact_use"], *words)] if words else []


def _check(matter: ReportInputs) -> Fact:
    command = f"research audit {matter.resolved.research_id}"
    return Fact(matter.words["fact_check"], matter.words["check_words"], command=command)


def method_facts(matter: ReportInputs) -> list[Fact]:
    """All facts, in the order in which they are read."""
    say = matter.words
    run = say.say(
        "run_words",
        id=matter.resolved.research_id,
        product=f"durable-research {matter.product_version}",
        strategy=matter.resolved.strategy,
        started=say.moment(matter.state.started_at),
        ended=say.moment(matter.ending.ended_at),
    )
    return [
        _outcome(matter),
        _engine(matter),
        *_asked_form(matter),
        *_guidance(matter),
        *_follow_up(matter),
        *_corpus(matter),
        *_agents(matter),
        *_searching(matter),
        *_contradictions(matter),
        *_limits(matter),
        *_usage(matter),
        Fact(say["fact_run"], f"{run} {_egress(matter)}"),
        _check(matter),
    ]


def _egress(matter: ReportInputs) -> str:
    words = matter.words.told(matter.resolved.egress)
    return words[:1].upper() + words[1:].rstrip(".") + "." if words else ""


TIMES = {"active_seconds"}
"""Of the run as a whole; roles work side by side."""


def usage_document(state: ResearchState) -> dict[str, Any]:
    """The total and, where it is known who used what, `by_role` and `by_phase`, each of which sums up to it."""
    document = state.usage.model_dump(mode="json")
    # Roles work side by side, so which one answered first is chance.
    for name, parts in (("by_role", dict(sorted(state.usage_by_role.items()))), ("by_phase", state.usage_by_phase)):
        if parts:
            document[name] = {key: part.model_dump(mode="json", exclude=TIMES) for key, part in parts.items()}
    return document


def usage_words(state: ResearchState, say: ReportWords) -> tuple[str, list[str]] | None:
    """One sentence of the total and one line per role; None for a run that neither asked a model nor paid."""
    if not state.usage.model_calls and state.usage.cost_usd == 0:
        return None
    roles = [f"{say.name('role', role)}: {_words(part, say)}" for role, part in sorted(state.usage_by_role.items())]
    return f"{_words(state.usage, say)}.", roles


def _words(usage: Usage, say: ReportWords) -> str:
    parts = []
    if usage.model_calls:
        parts += [say.count("call", usage.model_calls), say.count("token", usage.tokens)]
        parts += [say.say("cached_share", share=f"{usage.cached_share:.0%}")] if usage.cached_share else []
    if usage.searches:
        parts.append(say.count("search", usage.searches))
    if usage.reads:
        parts.append(say.count("read", usage.reads))
    return ", ".join([*parts, _cost(usage, say)])


def _cost(usage: Usage, say: ReportWords) -> str:
    if usage.cost_usd is not None:
        return f"{usage.cost_usd:.4f} USD"
    if usage.known_cost_usd:
        return say.say("cost_known", amount=f"{usage.known_cost_usd:.4f}")
    return say["cost_unknown"]
