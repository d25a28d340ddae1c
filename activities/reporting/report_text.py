"""The statements of a report about itself: its notice, what stays open, and the facts on method and limits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from activities.reporting.claims import Claim
from activities.reporting.inputs import DOUBTFUL, ReportInputs
from activities.reporting.report_messages import ReportMessages
from contracts.agents import NodeSummary, collect_nodes
from contracts.checking import CorrectionAction
from contracts.evidence import OWN_DOCUMENTS, CheckMethod, Finding, Gap, Source, Verdict
from contracts.outcome import HOOK, PERSON, Usage
from contracts.protected_sources import NAMED
from contracts.report_updates import REPORTER
from contracts.request import Verify
from contracts.resolved import VECTOR_TABLE, Estimate, rounded
from contracts.sentences import READ_IN_BROWSER, why_stopped
from contracts.strategies import list_declared, writer_engine
from contracts.texts import shorten
from contracts.tokens import LOW_FIDELITY
from contracts.vocabulary import (
    NATURAL_STOPS,
    AgentStatus,
    Completeness,
    EngineKind,
    GapKind,
    GapStatus,
    NodeStatus,
    Outcome,
    ReportSection,
    SourceStatus,
    StopReason,
)

MAX_LISTED: Final = 10
"""Most statements, files or pages that a list shows."""


@dataclass(frozen=True)
class Fact:
    """A label with a sentence and an optional list, all of it plain text without markup."""

    label: str
    value: str = ""
    items: list[str] = field(default_factory=list)
    command: str = ""
    """A command to type, shown after the sentence."""


def notice_of(inputs: ReportInputs) -> tuple[str, str] | None:
    """Return label and sentence of the notice under the title; None for a complete and checked report."""
    say = inputs.messages
    outcome = inputs.ending.outcome
    left_open = _undecided(inputs)
    warned = inputs.checked.warning
    marked = "" if warned else _marked(inputs)
    if outcome is not Outcome.COMPLETED:
        reasons = [end_reason(inputs)]
        if warned:
            reasons.append(_shortfall(inputs))
        text = ". ".join(dict.fromkeys(reasons)) + "."
        return say.name("outcome", outcome), " ".join(filter(None, [text, marked, left_open]))
    if inputs.state.accounts.engine_by_role.get(REPORTER.name) == EngineKind.EXTRACTIVE:
        # Other reports of passages say so in their text; a live one has only its agreed headings.
        return say.name("outcome", outcome), " ".join(filter(None, [say.without_model, marked]))
    unverified = (item for item in inputs.claims if item.judged.verdict is Verdict.UNVERIFIED)
    is_unchecked = inputs.resolved.verify is Verify.OFF and any(item.evidence_ids for item in unverified)
    if is_unchecked:
        return say("not_verified"), say("not_checked")
    if not (marked or left_open):
        return None
    return say("checked_in_part" if left_open else "checked"), " ".join(filter(None, [marked, left_open]))


def _marked(inputs: ReportInputs) -> str:
    """Return a sentence on the cited statements that are marked in the text; empty if there are none."""
    cited = [item.judged.verdict for item in inputs.claims if item.evidence_ids]
    count = sum(verdict in DOUBTFUL for verdict in cited)
    if inputs.resolved.verify is Verify.OFF or not count:
        return ""
    return inputs.messages("marked", all=len(cited), count=count)


def _undecided(inputs: ReportInputs) -> str:
    """Return a sentence on the cited statements that are not decided or not checked; empty if there are none.

    They are not marked in the text.
    """
    cited = [item.judged.verdict for item in inputs.claims if item.evidence_ids]
    undecided, unchecked = (cited.count(verdict) for verdict in (Verdict.NOT_ENOUGH_INFORMATION, Verdict.UNVERIFIED))
    if inputs.resolved.verify is Verify.OFF or not (undecided or unchecked):
        return ""
    return inputs.messages("left_open", all=len(cited), undecided=undecided, unchecked=unchecked)


def end_reason(inputs: ReportInputs) -> str:
    """Return why the run ended as it did; failures take precedence over how the work stopped."""
    state = inputs.state
    ending = inputs.ending
    say = inputs.messages
    if state.work.ending != ending:
        return _shortfall(inputs)
    if ending.outcome is Outcome.PARTIAL and ending.stop_reason in NATURAL_STOPS:
        work_is_lost = ending.is_answered and ending.completeness is not Completeness.FULL
        if state.work.failed_branches or state.accounts.fallbacks or work_is_lost:
            return say("parts_failed")
        return say("text_faulty" if ending.completeness is Completeness.FULL else "complete_partial")
    return say.translated(why_stopped(ending.stop_reason))


def _shortfall(inputs: ReportInputs) -> str:
    """Return a sentence on how many statements are unsupported."""
    count, cited = inputs.checked.shortfall
    return inputs.messages("not_borne_out", count=count, all=cited)


# --- what stays open ------------------------------------------------------------------------------------------------
def open_sections(inputs: ReportInputs) -> list[Fact]:
    """Return the sections that the strategy declares, made of open gaps; they contain no claims."""
    say = inputs.messages
    facts = []
    for section in _declared_sections(inputs):
        items = [_gap_line(inputs, gap) for gap in inputs.state.evidence.gaps if _section_of(gap) is section]
        facts.append(Fact(say(f"section_{section.value}"), "" if items else say(f"none_{section.value}"), items))
    return facts


def _declared_sections(inputs: ReportInputs) -> Sequence[ReportSection]:
    strategy = inputs.resolved.strategy
    return next((declared.report_sections for declared in list_declared() if declared.name == strategy), ())


def _section_of(gap: Gap) -> ReportSection | None:
    """Return the section for a gap; None for a closed one."""
    if gap.status not in (GapStatus.OPEN, GapStatus.UNADDRESSABLE):
        return None
    if gap.kind is GapKind.QUESTION:
        return ReportSection.OPEN_QUESTIONS
    return ReportSection.KNOWLEDGE_GAPS


def _gap_line(inputs: ReportInputs, gap: Gap) -> str:
    """Return a gap with the node that raised it and, for a leaf, its source."""
    say = inputs.messages
    nodes = {node.id: node for node in inputs.state.work.plan.nodes}
    text = say.translated(gap.description)
    if (node := nodes.get(gap.origin.removeprefix("sub_query:"))) is None:
        return text
    goal = nodes[node.parent].text if node.source_id and node.parent in nodes else node.text
    source = inputs.state.evidence.sources.get(node.source_id or "")
    if source is None:
        return say("raised_by_node", gap=text, goal=goal)
    return say("raised_by_source", gap=text, goal=goal, source=source.title or source.url)


# --- method and limits ------------------------------------------------------------------------------------------------
def report_facts(inputs: ReportInputs) -> list[Fact]:
    """Return all facts in reading order."""
    run = (
        _question,
        _verification,
        _outcome,
        _engine,
        _ranking,
        _requested,
        _corpus,
        _agents,
        _searching,
        _contradictions,
        _limits,
        _run,
    )
    thread = (_answers, _verification, _engine, _limits, _run)  # what a single run did is in its own report
    parts = thread if inputs.answers else run
    return [fact for part in parts for fact in part(inputs, inputs.messages)]


def _fact(say: ReportMessages, name: str, items: Sequence[str] = (), /, **values: object) -> Fact:
    """Make a fact from the messages of its label and its sentence."""
    return Fact(say(f"fact_{name}"), say(f"{name}_words", **values), list(items))


def _cut_list(items: Sequence[str], say: ReportMessages) -> list[str]:
    """Return the first lines, and one line with the number of any others."""
    more = len(items) - MAX_LISTED
    return [*items[:MAX_LISTED], *[say("and_more", count=more)] * (more > 0)]


def _lacking_suffix(lacking: Sequence[str], say: ReportMessages) -> str:
    if not lacking:
        return ""
    return f" {say('lacking_part', words=shorten('; '.join(lacking), 200))}"


def _reason_suffix(reason: str | None, say: ReportMessages) -> str:
    if not reason:
        return ""
    return f" ({say.translated(reason)})"


# --- what was checked ------------------------------------------------------------------------------------------------
def describe_checking(claims: Iterable[Claim], say: ReportMessages) -> str:
    """Return a sentence on how far a report's citations were checked."""
    judged = [item.judged for item in claims if item.evidence_ids]
    if not judged:
        return say("cites_nothing")
    methods = Counter(item.method for item in judged)
    verdicts = Counter(item.verdict.value for item in judged if item.method != CheckMethod.VERBATIM)
    figures = {name: verdicts[name] for name in (Verdict.SUPPORTED, *DOUBTFUL)}
    same, rules, model = (methods[method] for method in (CheckMethod.VERBATIM, CheckMethod.RULES, CheckMethod.MODEL))
    undecided = len(judged) - same - sum(figures.values())
    counts = {"all": len(judged), "same": same, "rules": rules, "model": model, "undecided": undecided}
    message = "all_quoted" if same == len(judged) else "some_checked"
    return f"{say('leads')} {say(message, **counts, **figures)}"


def _verification(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield facts on statements that are unsupported, uncited, corrected, removed, or not reached."""
    claims = inputs.claims
    checked = inputs.state.evidence.verification
    if doubtful := [item for verdict in DOUBTFUL for item in claims if item.judged.verdict == verdict]:
        by_model = any(item.judged.method == CheckMethod.MODEL for item in doubtful)
        items = [
            f"{say.name('judged', item.judged.verdict)}: {shorten(item.text, 200)}"
            + _lacking_suffix(item.judged.lacking, say)
            + _reason_suffix(item.judged.reason, say)
            for item in doubtful
        ]
        text = say("doubtful_model" if by_model else "doubtful")
        yield Fact(say("fact_doubtful"), text, _cut_list(items, say))
    if uncited := [shorten(item.text, 200) for item in claims if not item.evidence_ids]:
        yield _fact(say, "uncited", _cut_list(uncited, say), statements=say.count("statement", len(uncited)))
    changes: dict[str, list[str]] = {"corrected": [], "removed": []}
    for correction in inputs.corrections:
        original = shorten(correction.before, 200)
        if correction.action is CorrectionAction.REMOVE:
            line = f"{correction.section}: {original}{_reason_suffix(correction.reason, say)}".removeprefix(": ")
            changes["removed"].append(line)
        else:
            line = f"{say.name('correction', correction.action)}: {original}"
            # Only the citations of a statement change if it is cited further.
            if correction.action is not CorrectionAction.CITE:
                line += f" → {shorten(correction.after, 200)}"
            if correction.dropped:
                line += f" {say('dropped_part', words=shorten(correction.dropped, 100))}"
            changes["corrected"].append(line)
    for name, items in changes.items():
        if items:
            yield _fact(say, name, _cut_list(items, say), statements=say.count("statement", len(items)))
    if count := checked.summary.not_reached:
        yield Fact(say("judged_unverified"), say("unreached_words", statements=say.count("statement", count)))


# --- how the work went -----------------------------------------------------------------------------------------------
def _outcome(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    ending = inputs.ending
    reasons = [end_reason(inputs)]
    if ending.stop_reason is not StopReason.ANSWERED_DIRECTLY:  # which has no plan
        covered = Completeness.FULL if ending.is_answered else ending.completeness
        reasons.append(say.name("complete", covered.value))
    yield Fact(say("fact_outcome"), f"{say.name('outcome', ending.outcome)}: {'; '.join(dict.fromkeys(reasons))}.")


def _engine(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    roles: dict[str, list[str]] = {}
    for role, kind in sorted(inputs.state.accounts.engine_by_role.items()):
        name = say.name("role", role)
        by_rules = inputs.state.accounts.rule_answers.get(role, 0)
        partly = kind == EngineKind.MODEL.value and by_rules
        roles.setdefault(kind, []).append(say("partly_by_model", role=name, count=by_rules) if partly else name)
    items = [
        f"{say.name('engine_kind', kind)}: {say.name('engine', kind)}"
        + (f" ({', '.join(roles[kind])})" if roles else "")
        for kind in sorted(roles) or [inputs.resolved.engine.value]
    ]
    names = ", ".join(inputs.state.accounts.models_used)
    models = say("models", names=names) if names else ""
    if len(items) > 1:
        yield Fact(say("fact_engine"), f"{say('engines_differ')} {models}".strip(), items)
    else:
        yield Fact(say("fact_engine"), f"{items[0]}. {models}".strip(), [])


def _ranking(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield a fact on the order of passages, where rules wrote the report."""
    if writer_engine(inputs.state.accounts.engine_by_role) is EngineKind.EXTRACTIVE:
        name = "ranked_by_meaning" if inputs.resolved.semantic else "ranked_by_words"
        yield Fact(say("fact_ranking"), say(name, table=VECTOR_TABLE), [])


def _answers(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield the questions of a thread, each with its outcome, what came from earlier ones, its cost and its id."""
    items = []
    for number, answer in enumerate(inputs.answers, start=1):
        cost = say("cost_unknown") if answer.cost_usd is None else f"{answer.cost_usd:.2f} USD"
        figures = {"cited": answer.passages_cited, "earlier": answer.passages_earlier}
        outcome = say.name("outcome", answer.status)
        reason = _reason_suffix(answer.reason, say)
        line = say("answer_words", query=answer.query, outcome=outcome, cost=cost, id=answer.research_id, **figures)
        items.append(f"{number} · {line}{reason}")
    yield _fact(say, "answers", items, questions=len(items), answered=sum(item.answered for item in inputs.answers))


def _question(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield the question in the person's own words, where the title is another one or shorter."""
    question = inputs.show(inputs.resolved.query)
    if question != inputs.title:
        yield Fact(say("fact_question"), question)


def _requested(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield facts on preferences that were not applied, approval, guidance, and the run that this one follows."""
    resolved = inputs.resolved
    readers = resolved.constraints
    wishes = [resolved.report_language, "; ".join(resolved.output.sections or []), readers.audience, readers.region]
    if any(wishes) and writer_engine(inputs.state.accounts.engine_by_role) is not EngineKind.MODEL:
        yield Fact(say("fact_asked"), say("wishes_not_told"), [wish for wish in wishes if wish])
    if resolved.cuts:
        yield _fact(say, "cuts", [say.translated(note) for note in resolved.cuts])
    if resolved.approval_waived:
        yield _fact(say, "approval")
    objections = inputs.state.work.plan.objections
    if overruled := [objection.line() for objection in objections if objection.overruled]:
        yield _fact(say, "overruled", overruled)
    if followed := [objection.line() for objection in objections if objection.followed]:
        yield _fact(say, "split", followed)
    notes = [note for note in inputs.state.people.guidance if note.origin in (PERSON, HOOK)]
    if items := [f"{say.name('origin', note.origin)}: “{note.text}”" for note in notes]:
        yield _fact(say, "guidance", items)
    if (earlier := resolved.follow_up) is not None and earlier.sources:
        cited = [item.source for item in inputs.cited for _ in item.passages]
        read = inputs.state.evidence.readable_sources()
        yield _fact(
            say,
            "follows",
            id=earlier.research_id,
            query=earlier.query,
            sources=say.count("source", earlier.sources),
            cited=len(cited),
            earlier=sum(source.earlier for source in cited),
            new=sum(not source.earlier for source in read),
        )


def _corpus(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    if corpus := inputs.resolved.corpus:
        if corpus.title and corpus.title != corpus.name:
            named = f"{corpus.name} ({corpus.title})"
        else:
            named = corpus.name
        files = say.count("file", corpus.files)
        when = say.moment(corpus.indexed_at)
        yield _fact(say, "corpus", name=named, files=files, when=when, digest=corpus.digest)
    notes = [(item.source.title, warning) for item in inputs.cited for warning in item.source.warnings]
    in_browser = [note for note in notes if getattr(note[1], "id", "") == READ_IN_BROWSER]
    if in_browser:
        items = [f"{title or say('untitled')}: {say.translated(note)}" for title, note in in_browser]
        yield _fact(say, "browser", _cut_list(items, say), sources=say.count("source", len(dict(in_browser))))
    if gaps := [note for note in notes if note not in in_browser]:
        items = [f"{title or say('untitled')}: {say.translated(warning)}" for title, warning in gaps]
        yield _fact(say, "reading_gaps", _cut_list(items, say), sources=say.count("source", len(dict(gaps))))
    if inputs.skipped:
        items = [f"{file.path}: {say.translated(file.reason or file.kind)}" for file in inputs.skipped]
        yield _fact(say, "skipped", _cut_list(items, say), files=say.count("file", len(items)))


def _agents(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield the task of each agent with its findings or its end, or the tree of agents."""
    records = inputs.state.work.agents
    sources = inputs.state.evidence.sources

    def nodes(summaries: Sequence[NodeSummary], prefix: str) -> Iterator[str]:
        """Yield a line per node with its place, level, sources and corrections, and why it ended."""
        for number, node in enumerate(summaries, start=1):
            known = [sources[name] for name in node.source_ids if name in sources]
            titles = "; ".join(_cut_list([source.title or source.url for source in known], say))
            figures = {"level": node.level, "corrections": node.corrections, "sources": titles or "–"}
            yield f"{prefix}{number} {say('node_words', goal=node.goal, end=say.name('end', node.end), **figures)}"
            yield from nodes(node.below, f"{prefix}{number}.")

    if any(record.result and record.result.node for record in records):
        items = list(nodes(collect_nodes(records), ""))
        yield _fact(say, "tree", items, nodes=say.count("node", len(items)))
        return
    lines = []
    for record in records:
        findings = say.count("finding", len(record.result.finding_ids) if record.result else 0)
        interrupted = record.status in (AgentStatus.CUT_OFF, AgentStatus.FAILED)
        if interrupted:
            result = f"{findings}, {say.name('agent', record.status)}"
        else:
            result = findings
        lines.append(f"{record.task.id}: {record.task.text} – {result}")
    if lines:
        yield _fact(say, "agents", lines, agents=say.count("agent", len(lines)))


def _searching(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    state = inputs.state
    queries = []
    for query in state.searches():
        parts = [say.name("query", query.status) + _reason_suffix(query.error or query.status_reason, say)]
        if query.status is NodeStatus.COMPLETED:
            parts += [say.count("result", query.result_count)]
        if query.gap_id:
            parts += [say("for_a_gap")]
        queries.append(f"{query.text} – {', '.join(parts)}")
    read = sum(source.status is SourceStatus.FULL for source in state.evidence.sources.values())
    parts = [say.count("iteration", state.work.iteration), say.count("query", len(queries))]
    if state.evidence.documents_searched is not None:
        parts.append(say("searched_count", documents=say.count("document", state.evidence.documents_searched)))
    sources = say.count("source", len(state.evidence.sources))
    parts.append(say("searching_words", sources=sources, read=read, cited=len(inputs.cited)))
    yield Fact(say("fact_searching"), ", ".join(parts), queries)
    absent = [provider for provider in inputs.resolved.providers if not provider.available]
    if items := [f"{provider.name}: {say.translated(provider.reason)}" for provider in absent]:
        yield _fact(say, "not_searched", items)
    if inputs.unread:
        items = [f"{item.title}: {say.name('status', item.status)}{_reason_suffix(item.status_reason, say)}"
                 for item in inputs.unread if item.status is SourceStatus.FAILED or item.provider == NAMED]  # fmt: skip
        yield _fact(say, "not_read", _cut_list(items, say), sources=say.count("source", len(inputs.unread)))


def _contradictions(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield both sides of each contradiction, with their sources."""

    def side(finding: Finding) -> str:
        sources = inputs.state.evidence.sources
        titles = (sources[key].title for key in finding.source_ids if key in sources)
        return f"“{finding.statement}” ({'; '.join(dict.fromkeys(titles))})"

    if items := [f"{side(first)} – {side(second)}" for first, second in inputs.contradictions]:
        yield _fact(say, "disagree", _cut_list(items, say), contradictions=say.count("contradiction", len(items)))


def _limits(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    state = inputs.state
    if fidelity := inputs.fidelity:
        figures = {name: f"{getattr(fidelity, name):.0%}" for name in ("fidelity", "lowest")}
        text = say("shown_words", **figures, band=say.name("band", fidelity.band))
        dropped = len(fidelity.dropped_content_ids)
        unread = fidelity.not_analyzed
        if dropped:
            text += f" {say('dropped_words', items=say.count('item', dropped))}"
        sources = (
            state.evidence.sources[name] for name in fidelity.dropped_content_ids if name in state.evidence.sources
        )
        titles = [inputs.show(source.title) or say("untitled") for source in sources]
        if titles:
            text += f" ({'; '.join(_cut_list(titles, say))})"
        if unread:
            text += f" {say('not_analyzed_words', sources=say.count('source', unread))}"
        if fidelity.fidelity < LOW_FIDELITY:
            text += f" {say('low_fidelity')}"
        yield Fact(say("fact_shown"), text)
    own_sections = _declared_sections(inputs)
    gaps = [
        f"{say.translated(gap.description)} – {say.name('gap', gap.status)}, {say.name('severity', gap.severity)}"
        for gap in state.evidence.gaps
        if _section_of(gap) not in own_sections
    ]
    if gaps:
        yield _fact(
            say,
            "gaps",
            gaps,
            gaps=say.count("gap", len(state.evidence.gaps)),
            open=len(state.evidence.unaddressed_gaps()),
        )
    failed = (
        say("failed_branch", branch=branch)
        for branch in state.work.failed_branches
        if branch not in state.work.degraded
    )
    if notes := [*map(say.translated, state.work.degraded), *failed]:
        yield _fact(say, "degraded", notes)
    limitations = [say.translated(line) for line in state.work.limitations]
    for message, removed in (("markers_removed", inputs.unresolved), ("addresses_removed", inputs.foreign_urls)):
        if removed:
            limitations += [say(message, count=len(removed))]
    described = {say.translated(gap.description) for gap in state.evidence.gaps}
    described |= {say.translated(line) for line in [*state.work.degraded, *state.work.failed_branches]}
    if remaining := [line for line in dict.fromkeys(limitations) if line not in described]:
        yield Fact(say("fact_limitations"), "", remaining)


def _run(inputs: ReportInputs, say: ReportMessages) -> Iterator[Fact]:
    """Yield the cost of a run that called a model or paid, its identity and times, and the command that audits it."""
    state = inputs.state
    resolved = inputs.resolved
    if state.accounts.usage.model_calls or state.accounts.usage.cost_usd != 0:
        yield Fact(say("fact_use"), f"{_describe_usage(state.accounts.usage, say)}.")
    text = say(
        "run_words",
        id=resolved.research_id,
        product=f"durable-research {inputs.product_version}",
        strategy=resolved.strategy,
        started=say.moment(state.clock.started_at),
        ended=say.moment(inputs.ending.ended_at),
    )
    egress = say.translated(resolved.egress).rstrip(".")
    text = f"{text} {egress[:1].upper()}{egress[1:]}{'.' * bool(egress)} {describe_estimate(resolved.estimate, say)}"
    yield Fact(say("fact_run"), text.strip())
    target = f"{resolved.research_id}.json" if inputs.answers else resolved.research_id
    yield Fact(say("fact_check"), say("check_words"), command=f"research audit {target}")


def describe_estimate(estimate: Estimate | None, say: ReportMessages) -> str:
    """Return the estimate made before the run; empty if no paid call was expected."""
    if estimate is None:
        return ""
    amounts = {
        "calls": f"{estimate.likely_calls:,.0f}",
        "tokens": rounded(estimate.likely_tokens),
        "searches": f"{estimate.likely_searches:,.0f}",
    }
    if estimate.likely_usd is None:
        cost = say("cost_unknown")
    else:
        cost = f"{estimate.likely_usd:.2f} USD"
    cap = "–" if estimate.cap_usd is None else f"{estimate.cap_usd:.2f} USD"
    return say("expected_words", **amounts, cost=cost, cap=cap)


def _describe_usage(usage: Usage, say: ReportMessages) -> str:
    parts = []
    if usage.model_calls:
        parts += [say.count("call", usage.model_calls), say.count("token", usage.tokens)]
        if usage.cached_share:
            parts += [say("cached_share", share=f"{usage.cached_share:.0%}")]
    others = {"search": usage.searches, "read": usage.reads}
    parts += [say.count(noun, count) for noun, count in others.items() if count]
    if usage.cost_usd is not None:
        return ", ".join([*parts, f"{usage.cost_usd:.4f} USD"])
    known = usage.known_cost_usd
    return ", ".join([*parts, say("cost_known", amount=f"{known:.4f}") if known else say("cost_unknown")])


# --- sources ---------------------------------------------------------------------------------------------------------
def pages_of(source: Source, pages: Iterable[int | None], say: ReportMessages) -> str:
    """Return the pages of passages as a citation names them (`p. 12`, `slides 3, 7`); empty without pages."""
    numbers = sorted({page for page in pages if page is not None})
    if not numbers:
        return ""
    if source.raw is not None and source.raw.media_type.endswith("presentation"):
        kind = "slide"
    else:
        kind = "page"
    shown = ", ".join(map(str, numbers[:MAX_LISTED])) + (", …" if len(numbers) > MAX_LISTED else "")
    return f"{say.name(kind, 'many' if len(numbers) > 1 else 'one')} {shown}"


def describe_quality(source: Source, say: ReportMessages) -> str:
    """Return a source's quality with its reason; for documents of the operator, only the reason."""
    if source.quality_reason == OWN_DOCUMENTS:
        return say.translated(source.quality_reason)
    return say.name("quality", source.quality.value) + _reason_suffix(source.quality_reason, say)
