"""Method and limits: how a report came about and what it does not say, as facts for every form of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from activities.reporting.claims import needs_warning
from activities.reporting.inputs import JudgedClaim, ReportInputs
from activities.reporting.words import ReportWords
from contracts.checking import CorrectionAction
from contracts.evidence import CheckMethod, Finding, Source, Verdict
from contracts.outcome import HOOK, PERSON, Usage
from contracts.request import EARLIER, Verify
from contracts.state import ResearchState
from contracts.strategies import writer_engine
from contracts.vocabulary import AgentStatus, EngineKind, NodeStatus, Quality, SourceStatus, StopReason

LISTED: Final = 10
"""Statements, files and pages of a list that are shown."""
STATEMENT_CHARACTERS: Final = 200
DOUBTFUL: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)


@dataclass(frozen=True)
class Fact:
    """A label with a sentence and, where there are several things, a list. All text is plain, none is markup."""

    label: str
    value: str = ""
    items: list[str] = field(default_factory=list)
    command: str = ""
    """A command to type, shown after the sentence."""


def report_facts(inputs: ReportInputs) -> list[Fact]:
    """Return all facts in the order in which they are read."""
    say, resolved = inputs.words, inputs.resolved
    run = say(
        "run_words",
        id=resolved.research_id,
        product=f"durable-research {inputs.product_version}",
        strategy=resolved.strategy,
        started=say.moment(inputs.state.started_at),
        ended=say.moment(inputs.ending.ended_at),
    )
    egress = say.translated(resolved.egress)
    command = f"research audit {resolved.research_id}"
    return [
        *_verification(inputs, say),
        _outcome(inputs, say),
        _engine(inputs, say),
        *_preferences(inputs, say),
        *_guidance(inputs, say),
        *_follow_up(inputs, say),
        *_corpus(inputs, say),
        *_agents(inputs, say),
        *_searching(inputs, say),
        *_contradictions(inputs, say),
        *_limits(inputs, say),
        *_usage(inputs, say),
        Fact(say("fact_run"), f"{run} {egress[:1].upper()}{egress[1:].rstrip('.')}{'.' * bool(egress)}".strip()),
        Fact(say("fact_check"), say("check_words"), command=command),
    ]


# --- what was checked ------------------------------------------------------------------------------------------------
def describe_checking(claims: Iterable[JudgedClaim], verify: Verify, say: ReportWords) -> str:
    """Return what the citations of a report were checked for, and what not."""
    judged = [each.judged for each in claims if each.claim.evidence_ids]
    if not judged:
        return say("cites_nothing")
    methods = Counter(each.method for each in judged)
    same, others = methods[CheckMethod.VERBATIM], len(judged) - methods[CheckMethod.VERBATIM]
    if not others:
        return f"{say('leads')} {say('all_quoted', all=same)}"
    if verify is Verify.OFF or others == methods[CheckMethod.NONE]:
        return f"{say('leads')} {say('some_quoted', all=len(judged), same=same, others=others)}"
    verdicts = Counter(each.verdict for each in judged if each.method != CheckMethod.VERBATIM)
    message = "some_checked" if methods[CheckMethod.MODEL] else "some_judged"
    words = say(
        message,
        all=len(judged),
        same=same,
        rules=methods[CheckMethod.RULES],
        model=methods[CheckMethod.MODEL],
        undecided=verdicts[Verdict.NOT_ENOUGH_INFORMATION] + verdicts[Verdict.UNVERIFIED],
        **{verdict.value: verdicts[verdict] for verdict in (Verdict.SUPPORTED, *DOUBTFUL)},
    )
    return f"{say('leads')} {words}"


def _verification(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return what is not borne out, what cites nothing, what was corrected, what was not reached, and the review."""
    facts = []
    claims = inputs.claims
    doubtful = [each for verdict in DOUBTFUL for each in claims if each.judged.verdict == verdict]
    if doubtful:
        counts = Counter(each.judged.verdict.value for each in claims)
        by_model = any(each.judged.method == CheckMethod.MODEL for each in doubtful)
        sentences = [say("care")] * needs_warning(counts) + [say("doubtful_model" if by_model else "doubtful")]
        items = [
            f"{say.name('judged', each.judged.verdict)}: {_shortened(each.claim.words)}"
            f" ({say.translated(each.judged.reason)})"
            for each in doubtful
        ]
        facts.append(_listing(say("fact_doubtful"), " ".join(sentences), items, say))
    if uncited := [_shortened(each.claim.words) for each in claims if not each.claim.evidence_ids]:
        words = say("uncited_words", statements=say.count("statement", len(uncited)))
        facts.append(_listing(say("fact_uncited"), words, uncited, say))
    if made := [each for each in inputs.corrections if each.action is not CorrectionAction.KEEP]:
        words = say("corrected_words", statements=say.count("statement", len(made)))
        items = [
            f"{say.name('correction', each.action)}: {_shortened(each.before)}"
            + f" → {_shortened(each.after)}" * (each.after != each.before)
            for each in made
        ]
        facts.append(_listing(say("fact_corrected"), words, items, say))
    if count := inputs.state.verification.summary.not_reached:
        words = say("unreached_words", statements=say.count("statement", count))
        facts.append(Fact(say("judged_unverified"), words))
    if review := inputs.state.verification.review:
        scores = {name: f"{value:g}" for name, value in review.scores.model_dump().items()}
        method = say.name("reviewer", review.method)
        words = say("reviewed_words", overall=f"{review.overall:g}", method=method, **scores)
        items = [say.translated(reason) for reason in review.reasons]
        items += [say("review_missing", text=each) for each in review.missing]
        facts.append(Fact(say("fact_reviewed"), words, items))
    return facts


def _shortened(text: str) -> str:
    return text if len(text) <= STATEMENT_CHARACTERS else text[:STATEMENT_CHARACTERS] + "…"


def _listing(label: str, words: str, items: Sequence[str], say: ReportWords) -> Fact:
    """Make a fact of the first items of a list, with how many there are."""
    first = f" {say('first_of', shown=LISTED, all=len(items))}" if len(items) > LISTED else ""
    return Fact(label, f"{words}{first}", list(items[:LISTED]))


# --- how the work went -----------------------------------------------------------------------------------------------
def _outcome(inputs: ReportInputs, say: ReportWords) -> Fact:
    reasons = [inputs.why()]
    if inputs.ending.stop_reason is not StopReason.ANSWERED_DIRECTLY:  # which has no plan
        reasons.append(say.name("complete", inputs.ending.completeness.value))
    return Fact(say("fact_outcome"), f"{inputs.outcome()}: {'; '.join(dict.fromkeys(reasons))}.")


def _engine(inputs: ReportInputs, say: ReportWords) -> Fact:
    roles: dict[str, list[str]] = {}
    for role, kind in sorted(inputs.state.engine_by_role.items()):
        roles.setdefault(kind, []).append(say.name("role", role))
    items = [
        f"{say.name('engine_kind', kind)}: {say.name('engine', kind)}"
        + (f" ({', '.join(roles[kind])})" if roles else "")
        for kind in sorted(roles) or [inputs.resolved.engine.value]
    ]
    names = ", ".join(inputs.state.models_used)
    models = say("models", names=names) if names else ""
    if len(items) == 1:
        return Fact(say("fact_engine"), f"{items[0]}. {models}".strip())
    return Fact(say("fact_engine"), f"{say('engines_differ')} {models}".strip(), items)


def _preferences(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return what the request demands of the report beyond the question, and what became of it."""
    resolved = inputs.resolved
    values = {
        "language": resolved.report_language,
        "sections": "; ".join(resolved.sections),
        "readers": resolved.audience,
        "region": resolved.region,
    }
    items = [f"{say.name('wish', name)}: {value}" for name, value in values.items() if value]
    by_model = writer_engine(inputs.state.engine_by_role) is EngineKind.MODEL
    return [Fact(say("fact_asked"), say("wishes_told" if by_model else "wishes_not_told"), items)] if items else []


def _guidance(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return what people and hooks demanded while the run went on."""
    items = [
        f"{say.name('origin', each.origin)}: “{each.text}”"
        for each in inputs.state.guidance
        if each.origin in (PERSON, HOOK)
    ]
    return [Fact(say("fact_guidance"), say("guidance_words"), items)] if items else []


def _follow_up(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    followed = inputs.resolved.follow_up
    if followed is None:
        return []
    again = sum(source.provider == EARLIER for source in inputs.state.readable_sources())
    sources = say.count("source", followed.sources)
    words = say("follows_words", id=followed.research_id, query=followed.query, sources=sources, again=again)
    return [Fact(say("fact_follows"), words)]


def _corpus(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    facts = []
    if corpus := inputs.resolved.corpus:
        named = f"{corpus.name} ({corpus.title})" if corpus.title and corpus.title != corpus.name else corpus.name
        files, when = say.count("file", corpus.files), say.moment(corpus.indexed_at)
        words = say("corpus_words", name=named, files=files, when=when, digest=corpus.digest)
        facts.append(Fact(say("fact_corpus"), words))
    if inputs.skipped:
        words = say("skipped_words", files=say.count("file", len(inputs.skipped)))
        items = [f"{file.path}: {say.translated(file.reason or file.kind)}" for file in inputs.skipped]
        facts.append(Fact(say("fact_skipped"), words, _first(items, say)))
    return facts


def _first(items: list[str], say: ReportWords) -> list[str]:
    """Return the first of many lines, and how many there are besides."""
    more = len(items) - LISTED
    return items[:LISTED] + [say("and_more", count=more)] * (more > 0)


def _agents(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return what each agent was to find out, and what it brought back."""
    lines = []
    for record in inputs.state.agents:
        task, result = record.task, record.result
        searches = {query.text for query in inputs.state.query_ledger if query.sub_query_id == task.plan_node}
        parts = [say.count("finding", len(result.finding_ids))] if result else []
        parts += [say.count("search", len(searches))] if searches else []
        parts += (
            [say.name("agent", record.status)] if record.status in (AgentStatus.CUT_OFF, AgentStatus.FAILED) else []
        )
        parts += [say("agent_went_on", agent=task.continues)] if task.continues else []
        parts += [say.translated(result.problem)] if result and result.problem else []
        lines.append(f"{task.id}: {task.text} – {', '.join(parts)}")
    return (
        [Fact(say("fact_agents"), say("agents_words", agents=say.count("agent", len(lines))), lines)] if lines else []
    )


def _searching(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    state, queries = inputs.state, []
    for query in state.plan.sub_queries:
        parts = [say.name("query", query.status) + _because(query.error or query.status_reason, say)]
        parts += [say.count("result", query.result_count)] if query.status is NodeStatus.COMPLETED else []
        parts += [say("for_a_gap")] if query.gap_id else []
        queries.append(f"{query.text} – {', '.join(parts)}")
    read = sum(source.status is SourceStatus.FULL for source in state.sources.values())
    parts = [say.count("iteration", state.iteration), say.count("query", len(queries))]
    if state.documents_searched is not None:
        parts.append(say("searched_count", documents=say.count("document", state.documents_searched)))
    sources = say.count("source", len(state.sources))
    parts.append(say("searching_words", sources=sources, read=read, cited=len(inputs.cited)))
    facts = [Fact(say("fact_searching"), ", ".join(parts), queries)]
    absent = [each for each in inputs.resolved.providers if not each.available]
    if absent:
        items = [f"{each.name}: {say.translated(each.reason)}" for each in absent]
        facts.append(Fact(say("fact_not_searched"), say("not_searched_words"), items))
    if inputs.unread:
        items = [f"{each.title}: {say.name('status', each.status)}{_because(each.status_reason, say)}"
                 for each in inputs.unread]  # fmt: skip
        words = say("not_read_words", sources=say.count("source", len(inputs.unread)))
        facts.append(Fact(say("fact_not_read"), words, _first(items, say)))
    return facts


def _because(reason: str | None, say: ReportWords) -> str:
    return f" ({say.translated(reason)})" if reason else ""


def _contradictions(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return both sides of what sources disagree about, each with its sources."""

    def side(finding: Finding) -> str:
        sources = inputs.state.sources
        titles = (sources[one].title for one in finding.source_ids if one in sources)
        return f"“{finding.statement}” ({'; '.join(dict.fromkeys(titles))})"

    if not inputs.contradictions:
        return []
    items = [f"{side(one)} – {side(other)}" for one, other in inputs.contradictions]
    count = say.count("contradiction", len(items))
    return [_listing(say("fact_disagree"), say("disagree_words", contradictions=count), items, say)]


def _limits(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    state, facts = inputs.state, []
    if state.gaps:
        words = say("gaps_words", gaps=say.count("gap", len(state.gaps)), open=len(state.unaddressed_gaps()))
        items = [
            f"{say.translated(gap.description)} – {say.name('gap', gap.status)}, {say.name('severity', gap.severity)}"
            for gap in state.gaps
        ]
        facts.append(Fact(say("fact_gaps"), words, items))
    if state.degraded or state.failed_branches:
        notes = [say.translated(note) for note in state.degraded]
        notes += [say("failed_branch", branch=branch) for branch in state.failed_branches]
        facts.append(Fact(say("fact_degraded"), say("degraded_words"), notes))
    limitations = [say.translated(line) for line in state.limitations]
    limitations += [say("replaced_list")] * inputs.replaced_list
    if inputs.uncited_removed:
        limitations.append(say("uncited_removed", statements=say.count("statement", inputs.uncited_removed)))
    if inputs.unresolved:
        limitations.append(say("markers_removed", count=len(inputs.unresolved)))
    if inputs.foreign_urls:
        limitations.append(say("addresses_removed", count=len(inputs.foreign_urls)))
    listed = {say.translated(gap.description) for gap in state.gaps}
    if rest := [line for line in dict.fromkeys(limitations) if line not in listed]:
        facts.append(Fact(say("fact_limitations"), "", rest))
    return facts


# --- usage -----------------------------------------------------------------------------------------------------------
def usage_document(state: ResearchState) -> dict[str, Any]:
    """Return the total and, where it is known who used what, `by_role` and `by_phase`, each of which sums up to it."""
    document = state.usage.model_dump(mode="json")
    # Roles work side by side, so which one answered first is chance.
    for name, parts in (("by_role", dict(sorted(state.usage_by_role.items()))), ("by_phase", state.usage_by_phase)):
        if parts:
            exclude = {"active_seconds"}
            document[name] = {key: part.model_dump(mode="json", exclude=exclude) for key, part in parts.items()}
    return document


def _usage(inputs: ReportInputs, say: ReportWords) -> list[Fact]:
    """Return the total and one line per role; nothing for a run that neither called a model nor paid."""
    state = inputs.state
    if not state.usage.model_calls and state.usage.cost_usd == 0:
        return []
    roles = [
        f"{say.name('role', role)}: {_usage_words(part, say)}" for role, part in sorted(state.usage_by_role.items())
    ]
    return [Fact(say("fact_use"), f"{_usage_words(state.usage, say)}.", roles)]


def _usage_words(usage: Usage, say: ReportWords) -> str:
    parts = []
    if usage.model_calls:
        parts += [say.count("call", usage.model_calls), say.count("token", usage.tokens)]
        parts += [say("cached_share", share=f"{usage.cached_share:.0%}")] if usage.cached_share else []
    parts += [say.count("search", usage.searches)] if usage.searches else []
    parts += [say.count("read", usage.reads)] if usage.reads else []
    if usage.cost_usd is not None:
        cost = f"{usage.cost_usd:.4f} USD"
    elif usage.known_cost_usd:
        cost = say("cost_known", amount=f"{usage.known_cost_usd:.4f}")
    else:
        cost = say("cost_unknown")
    return ", ".join([*parts, cost])


# --- sources ---------------------------------------------------------------------------------------------------------
def pages_of(source: Source, pages: Iterable[int | None], say: ReportWords) -> str:
    """Return the pages of passages as a citation names them (`p. 12`, `slides 3, 7`); empty where there are none."""
    numbers = sorted({page for page in pages if page is not None})
    if not numbers:
        return ""
    kind = "slide" if source.raw is not None and source.raw.media_type.endswith("presentation") else "page"
    shown = ", ".join(map(str, numbers[:LISTED])) + (", …" if len(numbers) > LISTED else "")
    return f"{say.name(kind, 'many' if len(numbers) > 1 else 'one')} {shown}"


def quality_words(quality: Quality, reason: str, say: ReportWords) -> str:
    """Return a source's quality with the reason for it."""
    return say.name("quality", quality.value) + _because(reason, say)
