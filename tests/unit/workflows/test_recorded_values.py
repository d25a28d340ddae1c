"""What pure rules make of many values side by side, against recorded tables, one for each group of rules.

`python -m tests.unit.workflows.test_recorded_values` records. Read the difference before you record.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from contracts.agents import AgentShare
from contracts.decisions import Exclusion
from contracts.evidence import QualityUpdate
from contracts.expected_calls import CallSize
from contracts.messages import SearchResponse
from contracts.orchestrator_roles import OutlinedStep
from contracts.plan import Plan
from contracts.reflective_roles import (
    ClassificationOutput,
    Complexity,
    ReflectionDecision,
    Route,
    StepDraft,
    StepReflectionOutput,
)
from contracts.request import Mode, SearchPolicy
from contracts.resolved import ModelPrice, ProviderChoice, pack_words
from contracts.roles import FollowUpDraft, GapAssessment, GapDraft, SubQueryDraft
from contracts.sources import SearchHit
from contracts.usage import CallAccount, Usage
from contracts.vocabulary import Confidence, EngineKind, GapStatus, NodeStatus, Quality, Severity, StopReason
from providers.language_words import guidance_words
from tests.fakes import states
from tests.fakes.wordy_work import TAIL
from tests.unit.workflows.test_recorded_states import LIMITS, STEP_LIMITS, line
from workflows.phases import provider_searches
from workflows.rules import allocation, gaps, query_matching, scoping, search_merging, source_quality, sub_queries
from workflows.rules.guidance_reading import MOST_EXCLUSIONS, read_guidance
from workflows.rules.unworked_endings import explain_unworked
from workflows.run import activity_options, budget
from workflows.strategies.orchestrator import cycle_rules, report_evaluation, task_checks, task_nodes
from workflows.strategies.orchestrator.agent_reports import collapse, report_of
from workflows.strategies.reflective import routing, step_decision, steps

FOLDER = Path(__file__).parent / "recorded_values"
ACCOUNT = {"account": CallAccount()}
Lines = Iterator[tuple[str, object]]
"""What was given, and what came of it."""
WISHES = (
    "Leave locks out", "leave version 9 out, look at the settings of 16", "Do not cover locks, vacuum or indexes & costs.",
    "please, kindly skip the chapter about “replication”!", "I am not interested in costs, but tell me more about speed",
    "don't use example.org", "use only sources from example.org and example.com", "what about locks?", "be nicer", "...", "",
    "focus on the tone", "What about the style of the report?", "Look at it; write it as a poem\nLeave it out",
    "What happens without WAL ?", "leave wraparound out", "add a table, look at prices", "Focus on a table of prices, too",
    "leave out one two three four five six seven eight nine words", "leave out one two three four five six seven words",
    "focus on backups and leave the costs out and then add a table", "leave out " + ", ".join(f"part{n}" for n in range(12)),
    "x" * 2_100, "Look at " + TAIL,
)  # fmt: skip
TASKS = (
    "", "Vacuum", "Vacuum tables", "Vacuum ta we", "Vacuum it now", "吸尘器", "How are tables vacuumed?", "x" * 4_000 + " a b",
    "a b " + "x" * 3_996, "a b " + "x" * 3_997, "What is step 2 of the plan about?", "What about it is important?",
    "The user's question in other words", "How do agents of agent-1 work?", "it is possible to vacuum tables", "...",
    "the question of whether tables are vacuumed", "Compare these tables with others", "As found above, what is missing?",
)  # fmt: skip


def hits(*urls: str, **changes: object) -> list[SearchHit]:
    """Hits in this order."""
    return [states.hit(f"https://{url}.test/x", rank).model_copy(update=changes) for rank, url in enumerate(urls, 1)]


def guidance() -> Lines:
    """What is understood of what people say, by language, engine and place in the run."""
    for language, texts in (
        ("en", WISHES),
        ("de", ("Lass bitte die Sperren weg", "sei netter", "nur von example.org")),
    ):
        for engine in EngineKind:
            for nodes in ([], [states.sub_query("a")]):
                given = states.state(phase="gathering", plan=Plan(nodes=nodes))
                words = pack_words(guidance_words(language))
                given.resolved = states.resolved(engine=engine, guidance_words=words, question_words=["wraparound"])
                for text in texts:
                    yield f"{language}, {engine.value}, {len(nodes)}: {text[:60]}", read_guidance("person", text, given)
    last = states.state(iteration=3, plan=states.plan(states.sub_query("a")))
    last.resolved = states.resolved(guidance_words=pack_words(guidance_words("en")))
    yield "in the last iteration", read_guidance("person", "look at backups", last)
    last.resolved = last.resolved.model_copy(update={"limits": STEP_LIMITS})
    yield "in steps", read_guidance("person", "look at backups", last)
    last.exclusions = [Exclusion(subject=f"part {number}", origin="person") for number in range(MOST_EXCLUSIONS - 1)]
    yield "with many exclusions", read_guidance("person", "leave out locks, costs and backups", last)
    yield "without words", read_guidance("person", " look at backups ", states.state())


def orchestrating() -> Lines:
    """Tasks, tools, reminders, remarks, steps and reports."""
    for task in TASKS:
        yield (
            f"task {task[:40]}",
            [
                task_checks.problem_of(task),
                task_checks.repeated_by(task, [("agent-1", "How are tables vacuumed"), ("agent-2", task)]),
            ],
        )
    for flags in product((False, True), repeat=4):
        named = dict(zip(("reasons", "has_results", "thought", "must_think"), flags, strict=True))
        yield f"tools {flags}", cycle_rules.offered_tools(**named)
    for cycle, silent, reminded in product(range(3), range(2), (False, True)):
        yield (
            f"reminder {cycle} {silent} {reminded}",
            cycle_rules.reminder_of(cycle, silent=silent, reminded=reminded, told=["News."]),
        )
    for most in range(1, 5):
        yield f"cycles {most}", cycle_rules.deciding_cycles(LIMITS.model_copy(update={"max_iterations": most}))
    sure = [
        states.finding(f"Tables are vacuumed {n} times.", evidence_ids=["ev-1"], source_ids=[f"s{n % 2}"])
        for n in range(4)
    ]
    weak = [one.model_copy(update={"confidence": Confidence.LOW}) for one in sure]
    task = "Which WAL settings are there for vacuuming tables at Ärzte, and what about costs of the thing?"
    for name, findings in {
        "none": [], "one": sure[:1], "two": sure[:2], "three": sure[:3], "four": sure, "half weak": [*sure[:2], *weak[2:]],
        "mostly weak": [sure[0], *weak[1:]], "uncited": [one.model_copy(update={"evidence_ids": []}) for one in sure],
        "contested": [sure[0].model_copy(update={"contradicts": ["x"]}), *sure[1:]],
    }.items():  # fmt: skip
        yield f"remarks, {name}", [report_evaluation.remarks_on(task, findings, left) for left in (0, 1, 2)]
        for most in (10_000, 30, 20, 10):
            yield f"report, {name}, {most}", report_of(findings, most)
    reports = [report_of([*sure, *weak]), report_of(weak[1:3]), report_of([])]
    yield "one numbering", collapse(reports)
    yield "one numbering, with earlier ones", collapse(reports, {3: "s0", 7: "s9"})
    plan = Plan(
        nodes=[
            task_nodes.step_node(OutlinedStep(step=text, facet="f"))
            for text in ("How are tables vacuumed?", "Which locks do tables take?", "x" * 600)
        ]
    )
    for numbers, text in product(
        ([], [1], [2, 1, 2], [0, 3, 4]), ("tables vacuumed often", "locks of tables", "tables", "backups")
    ):
        yield f"serves {numbers} {text}", [step.text[:30] for step in task_nodes.served_steps(plan, numbers, text)]
    first = plan.nodes[0].id
    for own, step in product(NodeStatus, NodeStatus):
        made = task_nodes.task_node("agent-1", "x" * 600, plan.nodes[:1], 2).model_copy(
            update={"status": own, "finding_count": 2}
        )
        other = made.model_copy(update={"id": "agent-2", "status": NodeStatus.FAILED})
        nodes = [plan.nodes[0].model_copy(update={"status": step, "finding_count": 1}), *plan.nodes[1:], made, other]
        after = task_nodes.with_steps_after(Plan(nodes=nodes), {"agent-2": [first, plan.nodes[1].id]})
        yield f"after {own.value} of {step.value}", [[node.status, node.finding_count] for node in after.nodes]
    for status, origin, found, stated in product(
        GapStatus, ("sub_query:agent-1", "analysis"), ([], ["f"]), ([], ["gap-x"])
    ):
        gap = states.gap("a", id="gap-x", status=status, origin=origin)
        yield (
            f"closed {status.value} {origin} {found} {stated}",
            task_nodes.with_closed_gaps([gap], ["agent-1"], found, stated),
        )
    mixed = Plan(nodes=[states.sub_query("a"), states.sub_query("b", parent="x"), states.sub_query("a"), plan.nodes[0]])
    yield "queries as steps", task_nodes.with_queries_as_steps(mixed)
    yield "a wish", task_nodes.with_wish(plan, states.gap("d" * 390, suggested_queries=["first", "second"]))
    yield "a wish without queries", task_nodes.with_wish(plan, states.gap("a"))
    for number in range(1, 5):
        for left in (AgentShare(sources=7, model_calls=5, tokens=10, cost_usd=1.0), AgentShare(sources=1)):
            yield f"shares {number}", scoping.shares_of(left, number)


def reflecting() -> Lines:
    """Routes, choices, decisions and steps."""
    for complexity, route, depth in product(Complexity, Route, ("auto", "light", "extended")):
        said = ClassificationOutput(complexity=complexity, route=route, recommended_depth=depth, **ACCOUNT)
        yield f"{complexity.value} {route.value} {depth}", [
            [routing.route_of(said, mode) for mode in (Mode.AUTO, Mode.QUICK, Mode.DEEP)], routing.limits_choice(said, route)
        ]  # fmt: skip
    yield "the only step", routing.only_step("y" * 600)
    base = [
        steps.step_node(_step(f"Step {number}"), 1).model_copy(update={"id": f"step-{number}"}) for number in range(3)
    ]
    for done, planned, iteration, decision in product(range(4), range(4), (1, 3), (None, *ReflectionDecision)):
        if done > planned:
            continue
        nodes = [
            one.model_copy(update={"status": NodeStatus.COMPLETED if n < done else NodeStatus.PENDING})
            for n, one in enumerate(base[:planned])
        ]
        state = states.state(plan=Plan(nodes=nodes), iteration=iteration)
        limits = STEP_LIMITS.model_copy(update={"min_steps": 2, "max_steps": 3, "max_iterations": 3})
        said_of = None if decision is None else StepReflectionOutput(decision=decision, reasoning="z" * 600, **ACCOUNT)
        yield (
            f"{done} of {planned} in {iteration}: {decision}",
            step_decision.decide_step(state, limits, "a step", said_of),
        )
        room = steps.room_for_steps(state.plan, 3)
        wished, gone = steps.with_wish(state.plan, states.gap("w" * 390, origin="steer"), iteration, 3)
        yield "  with a wish", [room, [node.text[:9] for node in wished.nodes], gone.text if gone else None]


def _step(title: str) -> StepDraft:
    return StepDraft(title=title, description=f"{title} in detail", expected_contribution="c" * 400)


def searching() -> Lines:
    """Queries, hits, shares of the budget, and what is told apart."""
    texts = (
        "How does vacuum work?", "how does  vacuum work", "How do vacuums work?", "vacuum work", "vacuum of 2024", "vacuum of 2025",
        "vacuum without locks", "vacuum with locks", "vacuum vs locks", "locks vs vacuum", "吸尘器 怎么 工作", "", "the of",
        "vacuum costs", "costs of vacuum", "vacuuming settings", "vacuum setting", "vacuum retention policies disks", "vacuum retention policy disks", "vacuum class", "why vacuum", "when vacuum",
    )  # fmt: skip
    for text in texts:
        yield (
            f"query {text}",
            [
                query_matching.normalized_query(text),
                [other for other in texts if query_matching.same_query(text, other)],
            ],
        )
    yield "not repeated", [query_matching.drop_repeated(texts), query_matching.drop_repeated(texts, ["vacuum costs"])]
    drafts = [
        SubQueryDraft(
            query=f" {text} " + "q" * 510 * (place == 3), rationale="r" * 310, priority=place % 4 - 1, facet="f" * 70
        )
        for place, text in enumerate(texts)
        if text
    ]
    for limit in (1, 4, 30):
        yield f"sub-queries, {limit}", sub_queries.plan_sub_queries(drafts, 2, limit)
    for budget_of, number, position, each in product((0, 1, 2, 7, 20), (0, 1, 3), (0, 1, 2), (1, 4)):
        yield (
            f"share {budget_of} {number} {position} {each}",
            allocation.guaranteed_share(budget_of, number, position, each),
        )
    found = {"a": hits("p", "q", "r", "p"), "b": hits("q", "s", "t"), "c": hits("p", "u", "t", "v")[::-1]}
    for most, room, known in product((0, 1, 2, 3, 5, 9), (0, 1, 2, 9), ([], ["q"])):
        taken = [allocation.by_url(hit) for hit in hits(*known)]
        yield f"allotted {most} {room} {known}", allocation.allot(found, taken, most, dict.fromkeys(found, room))
    answers = [
        SearchResponse(provider="one", hits=[*hits("p", "q"), *hits("w", doi="10.1/x", snippet="short")]),
        SearchResponse(
            provider="two",
            hits=hits("q", "z", doi="10.1/x", snippet="a longer one", authors=["Ida"], published_at="2024"),
            cost_usd=None,
        ),
        SearchResponse(
            provider="three",
            cached=True,
            cost_usd=0.5,
            warnings=["slow"],
            spent_before=Usage(searches=1, cost_usd=0.25),
        ),
    ]
    for limit in (-1, 0, 1, 2, 9):
        yield f"merged {limit}", search_merging.merge_hits(answers, limit)
    yield "folded", search_merging.folded_in(answers)
    yield "used", [provider_searches.used_by(each) for each in answers]
    services = [
        ProviderChoice(name=name, available=name != "brave", reason="", host="h") for name in ("one", "two", "brave")
    ]
    resolved = states.resolved(providers=services)
    turns = provider_searches.places(resolved)
    yield "places", turns
    for policy in SearchPolicy:
        yield f"in turn, {policy.value}", provider_searches.in_turn(turns, policy)
    for known_quality, update in product(Quality, (*(each.value for each in Quality), "splendid")):
        made = states.source("https://a.test", quality=known_quality)
        yield (
            f"{known_quality.value}, now {update}",
            source_quality.update_quality(made, QualityUpdate(source_id=made.id, quality=update)),
        )


def gaps_and_limits() -> Lines:
    """What becomes of gaps; what calls may use; how long they may take; words for runs that did not work."""
    drafts = [
        GapDraft(description="d" * 450, suggested_queries=["s" * 310, "b", "c", "d"], priority=0, kind="question"),
        GapDraft(description="Do locks help?", kind="nonsense"),
        GapDraft(description=" "),
    ]
    for status in GapStatus:
        known = [states.gap("Do locks help?", status=status), states.gap("steered", origin=gaps.STEER, status=status)]
        state = states.state(gaps=known, iteration=2)
        yield f"opened beside {status.value}", gaps.open_gaps(state, drafts, "sub_query:a")
        yield "  stated anew", gaps.reopen_stated(known, drafts)
        query = states.sub_query("a", gap_id=known[0].id, origin=f"gap:{known[0].id}")
        for found in ([], [states.finding("x", sub_query_id=query.id)]):
            yield "  analyzed", gaps.after_analysis(known, [query], found)
        for iteration in (1, 2):
            yield (
                "  taken back",
                gaps.withdrawn(
                    [*known, states.gap("of it", origin=f"sub_query:{query.id}", status=status)], [query], iteration
                ),
            )
        for severity, addressable in product(Severity, (False, True)):
            said = [GapAssessment(gap_id=gap.id, severity=severity, addressable=addressable) for gap in known]
            yield f"  {severity.value} {addressable}", gaps.apply_assessments(known, said)
        yield "  asked for", gaps.asked_for(known)
        queries = [
            FollowUpDraft(query=text, expected_contribution="e" * 310) for text in ("new one", "q" * 510, "third")
        ]
        follow = [
            GapAssessment(gap_id=known[0].id, severity=Severity.MINOR, addressable=True, follow_up_queries=queries)
        ]
        for limit, first in product((0, 1, 9), ([], [known[1].id])):
            yield f"  followed {limit}", sub_queries.follow_ups(state, follow, first, limit)
    for status in NodeStatus:
        yield (
            f"silent {status.value}",
            gaps.silent_gap(states.sub_query("q" * 300, status=status, status_reason="no time")),
        )
    price = ModelPrice(input=3.0, output=15.0)
    for calls, tokens, cost in product((None, 0, 3, 10, 40), (None, 0, 50_000), (None, 0.0, 1.0)):
        limits = LIMITS.model_copy(update={"max_model_calls": calls, "max_tokens": tokens, "max_cost_usd": cost})
        kept = [budget.report_reserve(limits, number, price) for number in (0, 4)]
        yield (
            f"limits {calls} {tokens} {cost}",
            [*kept, budget.report_reserve(limits, 2, None, 2_000), budget.check_reserve(limits)],
        )
        for used in (
            Usage(),
            Usage(model_calls=2, input_tokens=10_000, cost_usd=0.4),
            Usage(model_calls=3, cost_usd=None),
        ):
            wanted = budget.reservation(CallSize(20_000, 20_000), price)
            yield "  refused", [budget.refusal(limits, used, held, wanted) for held in (budget.NOTHING, wanted)]
    for seconds in (0.0, 0.5, 1.0, 30.0, 600.0, 5_000.0, 100_000.0):
        options = [
            *(activity_options.role_options("id", "words", engine, seconds) for engine in EngineKind),
            *(activity_options.search_options("id", "words", seconds, alone=alone) for alone in (False, True)),
            activity_options.read_options("id", "words", seconds), activity_options.selection_options("id", "words", seconds),
            activity_options.prepare_options(seconds), activity_options.check_options("id", seconds),
            activity_options.record_options("id", "words", seconds), activity_options.hook_options("id", "queue", seconds),
        ]  # fmt: skip
        yield f"{seconds} s", options
    yield (
        "other calls",
        [
            activity_options.turn_options(),
            activity_options.cancel_save_options("id"),
            activity_options.record_options("id", "words"),
        ],
    )
    for text in ("", "How does it work?", "x" * 250, f"a{TAIL}", "the of and", "`a` *b* <c> [d](e)"):
        yield f"summary of {text[:20]}", activity_options.show_summary(text)
    for reason in StopReason:
        try:
            yield f"ended by {reason.value}", explain_unworked(reason, "r-1")
        except KeyError as error:
            yield f"ended by {reason.value}", repr(error)


GROUPS: dict[str, Callable[[], Lines]] = {
    each.__name__: each for each in (guidance, orchestrating, reflecting, searching, gaps_and_limits)
}


def table(group: str) -> str:
    """Everything of a group."""
    return "".join(f"{given}: {line(made)}\n" for given, made in GROUPS[group]())


@pytest.mark.parametrize("group", GROUPS)
def test_what_rules_make_of_values_is_what_was_recorded(group: str) -> None:
    """Every value and every word is what it was when somebody read it."""
    assert table(group).splitlines() == (FOLDER / f"{group}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in GROUPS:
        (FOLDER / f"{name}.txt").write_text(table(name), encoding="utf-8")
