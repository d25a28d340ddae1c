"""The scoped strategy `executor`: leaves and child executors in parallel → report → self-check → correction.

Each executor is an agent with its part of the tree. A correction adds leaves to the executor itself, and child
executors only if a level is left; earlier findings remain.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar, Final, Self, cast

from contracts.addresses import name_page
from contracts.agents import SUMMARY_CHARACTERS, AgentTask, NodeEnd, NodeSummary, TaskResult
from contracts.call_sizes import FINDINGS_PER_SUB_QUERY
from contracts.evidence import Gap, SectionRef, Source
from contracts.gaps import SettledGap
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import OTHER_FORM, PlanNode
from contracts.recursive_roles import (
    EXECUTOR,
    EXTRACTOR,
    TREE_PLANNER,
    ExtractInput,
    ExtractorResult,
    MentionedWork,
    SelfCheckInput,
    TreeInput,
    VettedSource,
)
from contracts.research_trees import MAX_LEVELS, ResearchTree, TaskType, TreeBounds, TreeLeaf, TreeNode, leaf_id
from contracts.roles import SYNTHESIZER, ProposedGap, SourceExtract
from contracts.sentences import Message
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.vetting import Vetted
from contracts.vocabulary import Action, EngineKind, GapKind, GapStatus, NodeKind, Severity, SourceStatus, StopReason
from workflows.phases.analysis import merge, read_sources
from workflows.phases.drafts import take_draft
from workflows.phases.role_inputs import findings_of_page, findings_to_report, gaps_to_answer, to_extract, write_input
from workflows.phases.vetting import Vetting
from workflows.rules.gaps import open_gaps, with_gaps
from workflows.rules.research_trees import InfeasibleTree, graft
from workflows.run.host import all_answers, ended_calls, run_parallel
from workflows.run.inbox import CallNotAllowed
from workflows.run.research_run import ResearchRun
from workflows.strategies.protocol import Finished, ScopedStrategy
from workflows.strategies.units import UnitName, UnitPosition, carry_out, limit_of_agents

STRATEGY: Final = "executor"
TASK_LABELS: Final = {TaskType.SUMMARIZE: "summary", TaskType.EXTRACT_KEY_FACTS: "key facts"}
SUFFICIENT: Final = "its report is sufficient"
CORRECTIONS_USED_UP: Final = "its corrections are used up"
NO_PROGRESS: Final = "the last correction brought nothing new"
NO_SOURCES: Final = "no further source was found for what is missing"
NOT_CLOSABLE: Final = "nothing that is missing can be closed"
NODE_ENDS: Final = {
    CORRECTIONS_USED_UP: NodeEnd.CORRECTIONS_USED,
    NO_PROGRESS: NodeEnd.NO_PROGRESS,
    NO_SOURCES: NodeEnd.NO_PROGRESS,
    NOT_CLOSABLE: NodeEnd.NOT_CLOSABLE,
}
GAPS_SHOWN: Final = 12
STATEMENTS_SHOWN: Final = 20
MAX_GAPS: Final = 2
"""Gaps addressed per correction, because each costs searches and reads."""
MAX_CANDIDATES: Final = 6
"""Pages read per gap."""


class NodeUnit(UnitName):
    """The units of an executor, in order of first occurrence."""

    WORK = "work", "read"
    REPORT = "report", "join"
    CHECK = "check"
    CORRECTION = "correction", "correct"


ORDER: Final = tuple(NodeUnit)


class ExecutorPosition(UnitPosition):
    """The next unit, this executor's part of the tree, and values passed between units."""

    NAME: ClassVar[str] = STRATEGY

    next_unit: NodeUnit = NodeUnit.WORK
    tree: ResearchTree = ResearchTree()
    """Rooted at this executor; grows by corrections."""
    most_nodes: int = 1
    """Limit of executors in this part."""
    done: list[str] = []
    """Ids of the leaves and child executors that are done."""
    failed: list[str] = []
    """Ids of these without results because of a failure."""
    works: list[MentionedWork] = []
    """Works mentioned by sources, for the librarian."""
    vetted: dict[str, Vetted] = {}
    gap_of: dict[str, str] = {}
    """Leaf or child executor of a correction → the gap that it should close."""
    material: list[str] = []
    """Ids of the gaps that need a correction by the last self-check."""
    corrections: int = 0
    asked: Gap | None = None
    """Gap of an executor above, for which this one was started; None for an executor of the first plan."""
    answered_by: list[str] = []
    """Ids of the findings that answer it, as their readers judge."""
    readings: dict[str, list[SectionRef]] = {}
    """By material gap: sections of pages already read that may answer it."""
    sections: dict[str, list[SectionRef]] = {}
    """By leaf of a correction: the sections that it is shown."""
    seen_evidence: int = 0
    """Number of passages before the last correction."""
    seen_closed: int = 0
    """Number of closed gaps before the last correction."""
    ended: str = ""
    """Reason why there are no more corrections; empty while there may be."""

    @classmethod
    def read(cls, state: ResearchState) -> Self:
        """Return the position as in other strategies; the initial one has the task's part of the tree."""
        position = super().read(state)
        if position.tree.nodes or state.work.task is None:
            return position
        inputs: dict[str, Any] = state.work.task.given
        tree = ResearchTree.model_validate(inputs["tree"])
        asked = None
        if "gap" in inputs:
            asked = Gap.model_validate(inputs["gap"])
        most_nodes = int(inputs.get("most_nodes", len(tree.nodes)))
        return position.with_fields(tree=tree, most_nodes=most_nodes, asked=asked)

    @property
    def due_leaves(self) -> list[TreeLeaf]:
        """Return the leaves of this executor that are not done yet."""
        return [leaf for leaf in self.tree.root.leaves if leaf.id not in self.done]


class ExecutorStrategy(ScopedStrategy):
    """One unit per call."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the next unit."""
        position = ExecutorPosition.of(run.state)
        if position.finished:
            # An executor that a limit cut short is unfinished work of those above it, and a raised limit repeats it.
            is_open = run.state.evidence.unaddressed_gaps()
            natural = StopReason.NO_ACTIONABLE_GAPS if is_open else StopReason.NO_OPEN_GAPS
            return Finished(limit_of_agents(run.state) or natural)
        unit = position.next_unit
        work = {
            NodeUnit.WORK: _work,
            NodeUnit.REPORT: _report,
            NodeUnit.CHECK: _check,
            NodeUnit.CORRECTION: _correct,
        }[unit]
        name = f"{unit}-{position.corrections + 1}" if position.corrections else unit.value
        await carry_out(run, name, work, lambda: _summary(run.state), label=unit.label)
        return Unit(name=name, iteration_ended=unit is NodeUnit.CHECK)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Move to the next unit; a self-check leads to a correction or to the end."""
        position = ExecutorPosition.of(run.state)
        position.next_unit = ORDER[(ORDER.index(position.next_unit) + 1) % len(ORDER)]
        position.finished = bool(position.ended)
        action = Action.COMPLETE if position.finished else Action.PROCEED
        return Pause(phase=opened.unit.name, action=action, rationale=position.ended)

    def progress(self, state: ResearchState) -> Progress:
        """Return the executor's leaves as units, with a summary."""
        position = ExecutorPosition.read(state)
        units = [
            UnitProgress(
                name=leaf.id,
                label=leaf.task_detail or leaf.task_type.value.replace("_", " ").lower(),
                mark=Mark.DONE if leaf.id in position.done else Mark.WAITING,
                detail="failed" if leaf.id in position.failed else "",
            )
            for leaf in (position.tree.root.leaves if position.tree.nodes else [])
        ]
        return Progress(summary=_summary(state), units=units)

    async def conclude(self, run: ResearchRun) -> str:
        """Record unfinished leaves as gaps, and sum up. Raises `Interrupted`."""
        state = run.state
        position = ExecutorPosition.of(run.state)
        goal = position.tree.root.goal
        undone = [leaf.task_detail or goal for leaf in position.due_leaves]
        _add_gaps(state, *(ProposedGap(description=f"Not looked into to its end: {text}") for text in undone))
        if not state.evidence.findings and not state.evidence.unaddressed_gaps():
            _add_gaps(state, ProposedGap(description=f"Nothing in the vetted sources answers “{goal}”."))
        if state.evidence.draft:
            summary = state.evidence.draft.summary
        elif state.evidence.findings:
            summary = state.evidence.findings[0].statement
        else:
            summary = ""
        return f"{_summary(state)}: {summary or 'nothing was found'}"[:SUMMARY_CHARACTERS]

    def describe_node(self, state: ResearchState) -> NodeSummary | None:
        """Return this executor's tree node, with the reason why it ended."""
        position = ExecutorPosition.read(state)
        root = position.tree.root
        return NodeSummary(
            id=state.scope,
            goal=root.goal,
            level=root.level,
            source_ids=list(dict.fromkeys(leaf.source_id for leaf in root.leaves)),
            corrections=position.corrections,
            answered_by=list(dict.fromkeys(position.answered_by)),
            end=NODE_ENDS.get(position.ended, NodeEnd.SUFFICIENT),
        )


def _summary(state: ResearchState) -> str:
    position = ExecutorPosition.read(state)
    leaves = [leaf for leaf in position.tree.root.leaves if leaf.id in position.done]
    children = len(position.tree.children(position.tree.root))
    parts = [plural(len(leaves), "task"), plural(len(state.evidence.findings), "finding")]
    if children:
        parts.append(plural(children, "executor"))
    return ", ".join(parts)


def _add_gaps(state: ResearchState, *gaps: ProposedGap) -> list[str]:
    """Open gaps attributed to this executor; return the ids of the new ones."""
    opened = open_gaps(state, gaps, f"sub_query:{state.scope}")
    state.evidence.gaps = with_gaps(state, opened)
    return [gap.id for gap in opened]


def _close_answered(run: ResearchRun, answered: Collection[str]) -> None:
    """Close the gaps that the report answers, as the executor judged it."""
    for index, gap in enumerate(run.state.evidence.gaps):
        if gap.id in answered and gap.status is GapStatus.OPEN:
            run.state.evidence.gaps[index] = gap.with_fields(status=GapStatus.ADDRESSED)
            reason = {"gap_id": gap.id}
            run.decide(EXECUTOR.name, "gap_addressed", gap.description, reason)
            run.note("gap.closed", f"gap answered by the report: {gap.description}", **reason)


# --- report and self-check -------------------------------------------------------------------------------------------
async def _report(run: ResearchRun) -> None:
    """Write one text from the findings of leaves and child executors; a single input needs none.

    Raises `Interrupted`.
    """
    if len({finding.sub_query_id for finding in run.state.evidence.findings}) < 2:
        return
    output = await run.ask(SYNTHESIZER, "synthesize", write_input(run, issues=[]).with_fields(caller=EXECUTOR.name))
    await take_draft(run, output.draft)


async def _check(run: ResearchRun) -> None:
    """Check the report against the goal, and decide on a correction; without a correction left, nothing is checked.

    Raises `Interrupted`.
    """
    state = run.state
    position = ExecutorPosition.of(run.state)
    goal = position.tree.root.goal
    left = run.resolved.limits.max_corrections - position.corrections
    if not state.evidence.findings:
        _add_gaps(state, ProposedGap(description=f"Nothing was found for: {goal}", suggested_queries=[goal]))
    if left <= 0:
        position.material = []
        position.ended = CORRECTIONS_USED_UP if state.evidence.unaddressed_gaps() else SUFFICIENT
        run.decide(EXECUTOR.name, "end_node", position.ended, {"corrections": position.corrections})
        return
    gaps = sorted(state.evidence.unaddressed_gaps(), key=lambda gap: (gap.severity is Severity.MINOR, gap.priority))[
        :GAPS_SHOWN
    ]
    sources: list[SourceExtract] = []
    if gaps and run.resolved.engine is EngineKind.MODEL:
        sources = [to_extract(source, to_search=False) for source in state.evidence.readable_sources()]
    statements: list[str] = []
    if state.evidence.draft is None:
        shown = findings_to_report(state.evidence.findings)[:STATEMENTS_SHOWN]
        statements = [finding.statement for finding in shown]
    request = SelfCheckInput(
        goal=goal,
        read_sources=sources,
        draft=state.evidence.draft_text,
        statements=statements,
        gaps=gaps,
        corrections_left=left,
    )
    answer = await run.ask(EXECUTOR, "check", request, EngineKind.EXTRACTIVE if not state.evidence.findings else None)
    _close_answered(run, answer.answered)
    evidence = len(state.evidence.passages)
    closed = sum(gap.status is GapStatus.ADDRESSED for gap in state.evidence.gaps)
    is_idle = position.corrections > 0 and (evidence, closed) == (position.seen_evidence, position.seen_closed)
    position.material = answer.material
    position.readings = {reading.gap_id: reading.sections for reading in answer.readings}
    if not answer.sufficient:
        own = [ProposedGap(description=text, suggested_queries=[text]) for text in answer.missing]
        position.material += _add_gaps(state, *own)
    if not position.material:
        position.ended = SUFFICIENT if answer.sufficient else NOT_CLOSABLE
    elif is_idle:
        position.ended = NO_PROGRESS
    position.seen_evidence = evidence
    position.seen_closed = closed
    verdict = position.ended or f"{plural(len(position.material), 'gap')} to correct"
    run.note("node.checked", f"checked against its goal: {verdict}", ended=position.ended, gaps=position.material)
    run.decide(
        EXECUTOR.name,
        "end_node" if position.ended else "correct_node",
        answer.reason or position.ended,
        {"corrections": position.corrections, "gaps": len(gaps)},
        {"material": position.material, "ended": position.ended},
    )


# --- the work: leaves and child executors ----------------------------------------------------------------------------
async def _work(run: ResearchRun) -> None:
    """Do the due leaves and child executors, all in parallel. Raises `Interrupted`.

    Results are in plan order afterwards, whatever the order of completion.
    """
    state = run.state
    position = ExecutorPosition.of(run.state)
    await all_answers(run.host, [partial(work, run, position) for work in (_work_on_leaves, _work_on_children)])
    order = {node.id: number for number, node in enumerate(state.work.plan.nodes)}
    state.evidence.findings = sorted(
        state.evidence.findings, key=lambda finding: order.get(finding.sub_query_id or "", -1)
    )
    state.evidence.gaps = sorted(
        state.evidence.gaps, key=lambda gap: order.get(gap.origin.removeprefix("sub_query:"), -1)
    )


async def _work_on_children(run: ResearchRun, position: ExecutorPosition) -> None:
    """Run the child executors, each as an agent with its part of the tree. Raises `Interrupted`."""
    root = position.tree.root
    numbered = enumerate(position.tree.children(root), start=1)
    due = {f"{run.state.scope}-{number}": node for number, node in numbered if node.id not in position.done}
    deepest = min(run.resolved.limits.max_levels, MAX_LEVELS)
    for name in [name for name, node in due.items() if node.level > deepest]:
        # Only a guard: plans and corrections never contain such a node.
        node = due.pop(name)
        run.branch_failed(Message("executor_too_deep", level=node.level, goal=shorten(node.goal, 120)))
    if not due:
        return
    parts = {name: position.tree.part(node.id) for name, node in due.items()}
    gaps = {gap.id: gap for gap in run.state.evidence.gaps}
    asked = {name: gaps.get(position.gap_of.get(node.id, ""), position.asked) for name, node in due.items()}
    tasks = [executor_task(name, part, len(part.nodes), asked[name]) for name, part in parts.items()]
    show_executors(run, tasks, run.state.scope, root.level)
    results = await run.spawn(tasks, run.resolved.limits.max_parallel, caller=EXECUTOR.name)
    for node, result in zip(due.values(), results, strict=True):
        answers = result.node.answered_by if result.node else []
        if gap := position.gap_of.get(node.id):
            run.settle_gaps([SettledGap(gap_id=gap, answered_by=answers)], EXTRACTOR.name)
        elif position.asked:
            position.answered_by += answers
        position.done.append(node.id)
        if has_failed(result):
            position.failed += [node.id]


def executor_task(name: str, tree: ResearchTree, most_nodes: int, gap: Gap | None = None) -> AgentTask:
    """Return the task of an executor: goal, part of the tree, the gap that it is started for, no more of the run."""
    inputs: dict[str, Any] = {"tree": tree.model_dump(mode="json"), "most_nodes": most_nodes}
    if gap is not None:
        inputs["gap"] = {"id": gap.id, "description": gap.description}
    return AgentTask(id=name, text=tree.root.goal, strategy=STRATEGY, given=inputs, level=tree.root.level)


def show_executors(run: ResearchRun, tasks: Sequence[AgentTask], parent: str, depth: int) -> None:
    """Add starting executors to the plan, each below its parent node."""
    plan = run.state.work.plan
    nodes = [
        PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK, parent=parent, depth=depth, needs_search=False)
        for task in tasks
    ]
    run.state.work.plan = plan.with_nodes(*(plan.newest(node).executing() for node in nodes))


def has_failed(result: TaskResult) -> bool:
    """Return true for an executor without results because of a failure."""
    return result.is_stub or (bool(result.problem) and not result.finding_ids)


async def _work_on_leaves(run: ResearchRun, position: ExecutorPosition) -> None:
    """Do each leaf with its own extractor call, in parallel; answers are merged in leaf order.

    An unreadable source fails only its leaf. Raises `Interrupted`, and `CallNotAllowed` after the last answer.
    """
    leaves = position.due_leaves
    state = run.state
    if not leaves:
        return
    _take_read_pages(state, {leaf.source_id for leaf in leaves})
    state.work.plan = state.work.plan.with_nodes(*(_leaf_node(state, position, leaf).executing() for leaf in leaves))
    readable = []
    for leaf in leaves:
        if (why := _reason_unread(state, leaf)) is None:
            readable.append(leaf)
        else:
            _fail(run, position, leaf, why)
    calls = [partial(_extract, run, position, leaf) for leaf in readable]
    jobs = await run_parallel(run.host, calls, run.resolved.limits.max_parallel)
    for leaf, call, why in ended_calls(readable, jobs):
        if why is not None:
            _fail(run, position, leaf, why)
            continue
        result = call.result()
        node = _leaf_node(state, position, leaf).completed()
        state.work.plan = state.work.plan.with_nodes(node)
        merge(run, node, result)
        if asked := position.asked:
            answers = (settlement.answered_by for settlement in result.settled_gaps if settlement.gap_id == asked.id)
            position.answered_by += [name for names in answers for name in names]
        position.done.append(leaf.id)
        known = {(work.words, work.address) for work in position.works}
        position.works += [work for work in result.mentioned_works if (work.words, work.address) not in known]
    for call in jobs:
        if isinstance(refused := call.exception(), CallNotAllowed):
            raise refused


def _take_read_pages(state: ResearchState, source_ids: Collection[str]) -> None:
    """Take these vetted sources from the parent run, which has already read them; they are not fetched again."""
    missing = set(source_ids) - state.evidence.sources.keys()
    for page in state.evidence.ledger.pages:
        if page.id in missing:
            state.evidence.sources[page.id] = page.with_fields(
                sub_query_ids=[state.scope], iteration=state.work.iteration, analyzed=False
            )
            state.evidence.note_entry(page.entry)


async def _extract(run: ResearchRun, position: ExecutorPosition, leaf: TreeLeaf) -> ExtractorResult:
    """Have a leaf's source read for its task. Raises `Interrupted`, `CallNotAllowed` and `ActivityError`."""
    state = run.state
    goal = position.tree.root.goal
    gaps = [gap for gap in state.evidence.gaps if gap.id == position.gap_of.get(leaf.id)]
    if position.asked:
        gaps.append(position.asked)
    request = ExtractInput(
        caller=EXECUTOR.name,
        task_type=leaf.task_type,
        task_detail=leaf.task_detail,
        sub_query=PlanNode(id=leaf.id, text=leaf.task_detail or goal, expected_contribution=goal),
        sources=[to_extract(state.evidence.sources[leaf.source_id])],
        gaps=gaps_to_answer(gaps),
        wanted=position.sections.get(leaf.id, []),
        max_findings=_finding_limit(run, state.evidence.sources[leaf.source_id]),
        documents_searched=state.evidence.documents_searched,
        term_documents=state.evidence.term_documents,
    )
    result = cast("ExtractorResult", await read_sources(run, EXTRACTOR, f"extract/{leaf.id}", request))
    _note_leaf(run, leaf, len(result.findings), len(result.gaps))  # at once, although results are merged together
    return result


def _finding_limit(run: ResearchRun, source: Source) -> int:
    if run.resolved.engine is EngineKind.MODEL:
        return findings_of_page(source)
    return FINDINGS_PER_SUB_QUERY


def _note_leaf(run: ResearchRun, leaf: TreeLeaf, findings: int, gaps: int) -> None:
    """Add the event of a leaf that was read, for watchers."""
    title = run.state.evidence.sources[leaf.source_id].title
    task = leaf.task_detail or leaf.task_type.value.lower()
    found = f"{plural(findings, 'finding')}, {plural(gaps, 'question')}"
    text = f"read “{shorten(title, 80)}” for: {shorten(task, 100)}: {found}"
    run.note("leaf.read", text, leaf=leaf.id, source_id=leaf.source_id, findings=findings, gaps=gaps)


def _fail(run: ResearchRun, position: ExecutorPosition, leaf: TreeLeaf, reason: str) -> None:
    """Record a failed leaf; the executor continues without it."""
    node = _leaf_node(run.state, position, leaf).failed(reason)
    run.state.work.plan = run.state.work.plan.with_nodes(node)
    position.done.append(leaf.id)
    position.failed.append(leaf.id)
    run.branch_failed(Message("leaf_failed", goal=shorten(node.text, 120), reason=reason))


def _leaf_node(state: ResearchState, position: ExecutorPosition, leaf: TreeLeaf) -> PlanNode:
    """Return a leaf's node in the executor's plan."""
    root = position.tree.root
    source = state.evidence.sources.get(leaf.source_id)
    text = leaf.task_detail or f"{TASK_LABELS.get(leaf.task_type, '')}: {root.goal}".removeprefix(": ")
    return state.work.plan.newest(
        PlanNode(
            id=leaf.id,
            text=shorten(text, 500),
            kind=NodeKind.TASK,
            needs_search=False,
            facet=OTHER_FORM,
            parent=state.scope,
            depth=root.level,
            source_id=leaf.source_id,
            rationale=source.title if source else "",
            task_type=leaf.task_type.value,
            origin=f"gap:{position.gap_of[leaf.id]}" if leaf.id in position.gap_of else "plan",
        )
    )


def _reason_unread(state: ResearchState, leaf: TreeLeaf) -> str | None:
    """Return the reason why a leaf's source has no text; None if it has one."""
    source = state.evidence.sources.get(leaf.source_id)
    if source is None:
        return Message("leaf_source_gone")
    if source.status is SourceStatus.FULL:
        return None
    return source.status_reason or Message("leaf_unread")


# --- corrections: new sources for a gap, new leaves or executors for a question --------------------------------------
async def _correct(run: ResearchRun) -> None:
    """Find sources for the material gaps, and graft work on them below this executor. Raises `Interrupted`."""
    state = run.state
    position = ExecutorPosition.of(run.state)
    wanted = set(position.material)
    root = position.tree.root
    gaps = [gap for gap in state.evidence.unaddressed_gaps() if gap.id in wanted][:MAX_GAPS]
    known_leaves = {leaf.id for leaf in position.tree.leaves}
    # Pages already read come before new searches.
    work = {gap.id: tree for gap in gaps if (tree := _further_reading(position, gap)) is not None}
    gaps = [gap for gap in gaps if gap.id not in work]
    count = len(gaps) + len(work)
    for caller, is_question in (EXECUTOR.name, False), ("planner", True):
        needs = [gap for gap in gaps if (gap.kind is GapKind.QUESTION) is is_question]
        vetting = Vetting(run, position.vetted, caller, MAX_CANDIDATES, position.works)
        results = []
        if needs:
            results = await vetting.carry_out([gap.description for gap in needs])
        for gap, vetted in zip(needs, results, strict=True):
            if vetted.accepted:
                if is_question:
                    # Its root is this executor.
                    work[gap.id] = await plan_tree(
                        run,
                        EXECUTOR.name,
                        f"plan/{gap.id}",
                        vetted,
                        goal=gap.description,
                        node_id=root.id,
                        level=root.level,
                        most_nodes=max(1, position.most_nodes - len(position.tree.nodes) + 1),
                        done=[leaf.task_detail or leaf.task_type.value for leaf in root.leaves],
                    )
                else:
                    work[gap.id] = _gap_tree(run, position, gap, vetted)
    if work:
        _graft(run, position, work)
    fresh = [leaf for leaf in position.tree.leaves if leaf.id not in known_leaves]
    position.corrections += 1
    text = f"{plural(count, 'gap')} taken on, {plural(len(fresh), 'new task')}"
    run.note("node.corrected", text, gaps=count, leaves=len(fresh))
    if not fresh:
        position.ended = NO_SOURCES


async def plan_tree(run: ResearchRun, caller: str, step: str, vetted: Vetted, **fields: Any) -> ResearchTree:
    """Have the planner make a tree over vetted sources; `fields` are additional fields of the request."""
    limits = run.resolved.limits
    known = (run.state.evidence.sources[source.source_id] for source in vetted.accepted)
    titles = {source.id: name_page(source.title, source.url) for source in known}
    sources = [
        VettedSource(id=source.source_id, title=titles[source.source_id], quality=source.quality, reason=source.reason)
        for source in vetted.accepted
    ]
    bounds = {"most_leaves": limits.max_leaves, "most_levels": limits.max_levels}
    request = TreeInput(caller=caller, vetted=sources, **bounds, **fields)
    return (await run.ask(TREE_PLANNER, step, request)).tree(request)


def _further_reading(position: ExecutorPosition, gap: Gap) -> ResearchTree | None:
    """Return leaves that read sections of pages already read for a gap; None if none is left to read for it."""
    root = position.tree.root
    detail = gap.description
    task = TaskType.ANSWER_QUESTION
    known = {leaf.id for leaf in root.leaves}
    by_source = dict[str, list[SectionRef]]()
    for section in position.readings.get(gap.id, []):
        by_source.setdefault(section.source_id, []).append(section)
    leaves = [
        TreeLeaf(id=leaf_id(root.id, source, task, detail), source_id=source, task_type=task, task_detail=detail)
        for source in by_source
    ]
    fresh = [leaf for leaf in leaves if leaf.id not in known]
    position.sections |= {leaf.id: by_source[leaf.source_id] for leaf in fresh}
    if not fresh:
        return None
    return ResearchTree(nodes=[root.with_fields(leaves=fresh)])


def _gap_tree(run: ResearchRun, position: ExecutorPosition, gap: Gap, vetted: Vetted) -> ResearchTree:
    """Return a tree whose leaves ask each vetted source about a gap, directly below the executor."""
    root = position.tree.root
    detail = gap.description
    task = TaskType.ANSWER_QUESTION
    sources = [source.source_id for source in vetted.accepted][: run.resolved.limits.max_leaves]
    leaves = [
        TreeLeaf(id=leaf_id(root.id, source, task, detail), source_id=source, task_type=task, task_detail=detail)
        for source in sources
    ]
    return ResearchTree(nodes=[root.with_fields(leaves=leaves)])


def _graft(run: ResearchRun, position: ExecutorPosition, work: Mapping[str, ResearchTree]) -> None:
    """Add the work on all gaps of one correction; if that makes the tree infeasible, add only its leaves."""
    limits = run.resolved.limits
    root = position.tree.root
    sources = {leaf.source_id for tree in work.values() for leaf in tree.leaves}
    bounds = TreeBounds(position.most_nodes, limits.max_leaves, sources, limits.max_levels, limits.max_corrections + 1)
    nodes = [node for tree in work.values() for node in tree.nodes[1:]]
    top = _interleave([tree.root.leaves for tree in work.values()], root, limits.max_leaves)
    try:
        tree = graft(position.tree, root.id, ResearchTree(nodes=[top, *nodes]), bounds)
    except InfeasibleTree as error:
        run.note("status", f"a correction was reduced to leaves: {error}", level="info")
        top = _interleave([tree.leaves for tree in work.values()], root, limits.max_leaves)
        tree = graft(position.tree, root.id, ResearchTree(nodes=[top]), bounds)
    known = {node.id for node in position.tree.nodes} | {leaf.id for leaf in position.tree.leaves}
    for gap, part in work.items():
        added = {leaf.id for leaf in part.leaves} | {node.id for node in part.nodes if node.parent == root.id}
        position.gap_of |= dict.fromkeys(sorted(added - known), gap)
    position.tree = tree


def _interleave(parts: Sequence[Sequence[TreeLeaf]], root: TreeNode, limit: int) -> TreeNode:
    """Return the executor with at most `limit` new leaves, interleaved over the gaps."""
    known = {leaf.id for leaf in root.leaves}
    fresh = [leaf for leaves in zip_longest(*parts) for leaf in leaves if leaf is not None and leaf.id not in known]
    return root.with_fields(leaves=list({leaf.id: leaf for leaf in fresh}.values())[:limit])
