"""Everything that leaves runs of the strategies that plan in steps and that send agents, against recorded files.

`python -m tests.unit.workflows.test_recorded_strategies [NAME ...]` records. Read the difference before you record.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts import failures
from contracts.vocabulary import StopReason
from tests.fakes import reflective_work
from tests.fakes.model_work import element, question_of
from tests.fakes.orchestrator_work import blocks, opening_of
from tests.fakes.wordy_work import TAIL, WORD
from tests.unit.workflows.test_orchestrator_strategy import TASKS
from tests.unit.workflows.test_rare_whole_runs import (
    ANSWER,
    ASKED,
    EDITED,
    FULL,
    Run,
    Way,
    Work,
    agree,
    answering,
    record,
    recording_of,
    sent,
)
from workflows.rules.guidance_reading import read_guidance
from workflows.rules.replies import read_revision
from workflows.run.guidance import PERSON
from workflows.run.inbox import Revised

FOLDER = Path(__file__).parent / "recorded_strategies"
Turn = str | list[tuple[str, dict[str, Any]]]
"""Words, or calls."""
REPORT: Turn = [("generate_report", {})]


def in_turns(*turns: Turn) -> Work:
    """A model that says one thing after the other, and the last one from then on."""

    def work(body: Mapping[str, Any]) -> list[dict[str, Any]]:
        said = sum(message["role"] == "assistant" for message in body["messages"])
        turn = turns[min(said, len(turns) - 1)]
        return [{"type": "text", "text": turn}] if isinstance(turn, str) else blocks(body, *turn)

    return work


def by_task(works: Mapping[str, Work], otherwise: Work) -> Work:
    """Agents that work differently on tasks with these words."""

    def work(body: Mapping[str, Any]) -> list[dict[str, Any]]:
        task = question_of(opening_of(body))
        return next((one for words, one in works.items() if words in task), otherwise)(body)

    return work


def send(*tasks: str, **more: Any) -> Turn:
    """Agents for these."""
    return [("research_agent", {"task": task, **more}) for task in tasks]


def think(thought: str) -> Turn:
    """A thought."""
    return [("think_tool", {"reasoning": thought})]


def look(*pages: int, query: str = "") -> Turn:
    """A search, and pages."""
    opened: list[tuple[str, dict[str, Any]]] = [("open_page", {"index": page}) for page in pages]
    return [*([("search", {"query": query})] if query else []), *opened]


def interrupted(activity: str, call: int, reason: StopReason = StopReason.USER_STOPPED) -> Callable[[Run], object]:
    """The run is to end before one call of an activity."""
    return lambda run: run.stop_at(activity, call, reason)


def steered(activity: str, call: int, *words: str) -> Callable[[Run], object]:
    """A person says something before one call of an activity."""

    def steer(run: Run) -> None:
        def say() -> None:
            run.inbox.steering += [read_guidance(PERSON, each, run.state) for each in words]

        run.at(activity, call, say)

    return steer


def cancelled(activity: str, call: int) -> Callable[[Run], object]:
    """The workflow is cancelled in one call of an activity."""
    return lambda run: run.at(activity, call, lambda: run.task and run.task.cancel())


def reflections(*said: tuple[str, str]) -> Callable[[str], Any]:
    """A reflector that decides by the number of steps that are done."""

    def answer(prompt: str) -> Any:
        done = element(prompt, "steps").count("(completed)")
        decision, changes = said[min(max(done, 1), len(said)) - 1]
        suggested = [changes] if changes else None
        return {"decision": decision, "reasoning": f"{done} are done: {decision}", "suggested_changes": suggested}

    return answer


def enough_after_a_step() -> Callable[[str], Any]:
    """A planner that has enough as soon as a step is done."""
    sensible = reflective_work.steps
    enough = {"has_enough_context": True, "thought": "it is all there", "steps": [], "title": "Enough"}
    return lambda prompt: enough if "(completed)" in element(prompt, "steps") else sensible(prompt)


def classified(**changes: Any) -> Callable[[str], Any]:
    """A coordinator that says this instead."""
    sensible = reflective_work.classification
    return lambda prompt: sensible(prompt) | changes


LONG = f"It goes on{TAIL}"


def talked_at(run: Run) -> None:
    """A person and failures that need many words."""
    steered("analyze_sources", 1, f"Please look at {LONG}", f"What about {LONG}?")(run)
    run.failing("search", failures.SEARCH_REJECTED, 2, words=LONG)
    run.failing("analyze_sources", failures.WORKER_LOST, 2, words=LONG)


CYCLES = {"limits": {"max_iterations": 9}}
ORCHESTRATED: dict[str, Way] = {
    "alone_on_the_web": Way(web=True, wishes={"verify": "light", "depth": "extended"}),
    "directed_on_the_web": Way(web=True, scenario="good", wishes=ASKED, requests=True),
    "odd_orders": Way(
        scenario="good",
        requests=True,
        wishes=CYCLES,
        works={
            "orchestrator": in_turns(
                [
                    ("research_agent", {"task": "Find out about step 2 of the plan"}),
                    ("research_agent", {}),
                    ("search", {"query": "vacuum"}),
                    ("research_agent", {"task": TASKS[0], "continue_agent": "agent-7"}),
                    *REPORT,
                ],
                [*send(TASKS[0], steps=[1, 9]), *send(TASKS[0]), *REPORT],
                think("What of locks?"),
                think("And of backups?"),
                send(TASKS[3], continue_agent="agent-1"),
                [*think("Enough."), *REPORT],
                [*REPORT, *send("What do explicit locks of the engine protect against, in detail?")],
                think("Now."),
                REPORT,
                REPORT,
            )
        },
    ),
    "odd_work": Way(
        scenario="good",
        requests=True,
        wishes=CYCLES,
        works={
            "orchestrator": in_turns(send(TASKS[0], TASKS[3]), think("Good."), REPORT),
            "agent": by_task(
                {
                    TASKS[3]: in_turns("I would rather talk.", look(1, query="explicit locks of the engine"), "Well.", "No."),
                },
                in_turns(
                    [*think("First."), *look(query="vacuum"), *think("Second.")],
                    [*look(query="vacuum tables wraparound"), *look(query="Vacuum  tables wraparound?"), *REPORT],
                    [*look(1, 1, 0, 99), *look(query="quantum pancakes")],
                    [*look(1, 2), ("search", {}), ("open_page", {"index": "two"}), ("fly", {})],
                    [("generate_report", {"open_questions": ["How much?", " ", "x" * 500]})],
                ),
            ),
        },
    ),
    "few_pages": Way(
        scenario="good",
        wishes={"limits": {"max_iterations": 4, "max_searches_per_step": 1, "max_reads_per_step": 1}},
        works={
            "agent": in_turns(
                look(query="vacuum wraparound"), look(1, 2, query="locks of the engine"), look(2), look(3), REPORT
            )
        },
    ),
    "silent_later": Way(
        scenario="good",
        wishes=CYCLES,
        works={"orchestrator": in_turns(send(*TASKS[:2]), think("And?"), "I would rather talk.")},
    ),
    "many": Way(
        scenario="good",
        ordered=False,
        wishes={"limits": {"max_parallel": 4, "max_parallel_reads": 6, "max_iterations": 4}},
        works={"orchestrator": in_turns(send(*TASKS), think("Good."), REPORT)},
    ),
    "agent_lost": Way(
        scenario="good",
        wishes=CYCLES,
        works={"orchestrator": in_turns(send(*TASKS[:2]), send(TASKS[0]), think("So be it."), REPORT)},
        disturb=lambda run: run.failing("prepare_agent", failures.STORE_UNAVAILABLE, 1),
    ),
    "wished": Way(
        scenario="good",
        wishes=CYCLES,
        requests=True,
        disturb=steered("orchestrate", 1, "Leave locks out", "What does a base backup copy?"),
        works={
            "orchestrator": in_turns(
                send(*TASKS[:2], steps=[1, 2, 3]), think("On."), REPORT, [*send(TASKS[3]), *REPORT],
                send("What does a base backup of a cluster copy?", steps=[4]), think("Done."), REPORT,
            )
        },
    ),
    "capped": Way(scenario="good", wishes={"limits": {"max_iterations": 4, "max_cost_usd": 0.9}}, again={"limits": CYCLES["limits"]}),
    "few_cycles": Way(
        scenario="good",
        wishes={"limits": {"max_iterations": 3}},
        works={"orchestrator": in_turns(send(TASKS[0], steps=[1]), think("On."), send(TASKS[3]))},
        again={"limits": {"max_iterations": 5}},
    ),
    "empty_turns": Way(scenario="good", by_role={"orchestrator": "empty", "agent": "empty", "outliner": "hopeless"}),
    "short_report": Way(scenario="good", by_role={"synthesizer": "hopeless"}, wishes={"gates": {"think": "rules"}}),
    "asked": Way(
        scenario="good",
        wishes={"gates": {"approve": "phrase", "clarify": "required"}},
        disturb=answering(lambda _: ANSWER, lambda _: Revised("look at autovacuum settings"), agree),
        requests=True,
    ),
}  # fmt: skip
STEPS = {"limits": {"max_steps": 5, "max_iterations": 3, "min_steps": 2}}
REFLECTIVE: dict[str, Way] = {
    "adjusted": Way(
        scenario="good",
        requests=True,
        wishes=STEPS,
        answers={"reflection": reflections(("continue", ""), ("adjust", "Look at backups, too."), ("complete", ""))},
    ),
    "completed_early": Way(
        scenario="good", wishes=STEPS, answers={"reflection": reflections(("complete", ""), ("complete", ""))}
    ),
    "adjusted_always": Way(
        scenario="good", wishes=STEPS, answers={"reflection": reflections(("adjust", "More."), ("adjust", "Still more."))}
    ),
    "enough_context": Way(
        scenario="good",
        wishes=STEPS,
        answers={
            "reflection": reflections(("adjust", "More.")),
            "steps": enough_after_a_step(),
        },
    ),
    "ambiguous": Way(
        scenario="good",
        answers={
            "classification": classified(
                is_ambiguous=True, clarifying_questions=["Which engine?", "Which year?"], recommended_depth="light",
                complexity="simple", brief="The engine of the manual.",
            )
        },
    ),
    "quick_by_choice": Way(scenario="good", answers={"classification": classified(route="quick")}, disturb=sent),
    "direct_by_choice": Way(
        scenario="good", wishes={"mode": "auto"}, answers={"classification": classified(route="direct")}
    ),
    "wished": Way(scenario="good", wishes=STEPS, disturb=steered("search", 3, "Leave locks out", "What does a base backup copy?")),
    "wished_late": Way(wishes=STEPS, disturb=steered("write_report", 1, "What does a base backup copy?")),
    "cancelled_report": Way(scenario="good", wishes=STEPS, disturb=cancelled("write_report", 1), again={"verify": "light"}),
    "lost_searches": Way(
        scenario="good", wishes=STEPS, disturb=lambda run: run.failing("search", failures.SEARCH_REJECTED, 2, 3, 4), again={}
    ),
    "hopeless_reflector": Way(
        scenario="good", wishes=STEPS, by_role={"reflector": "hopeless", "investigator": "hopeless"}
    ),
    "short_report": Way(scenario="good", wishes=STEPS, by_role={"synthesizer": "hopeless"}),
    "approved": Way(
        scenario="good",
        wishes=STEPS | {"gates": {"approve": "plan", "clarify": "required"}},
        disturb=answering(lambda _: ANSWER, lambda state: read_revision(state, [], EDITED), agree),
    ),
}  # fmt: skip
SUPERVISED: dict[str, Way] = {
    "completed": Way(scenario="good", again={"limits": {"max_iterations": 3}}),
    "few_calls": Way(scenario="gaps", wishes={"limits": {"max_model_calls": 5}}, again={"limits": {"max_model_calls": 60}}),
    "unreadable": Way(disturb=lambda run: run.failing("read_source", failures.SOURCE_UNREADABLE, kind="not_found"), again={}),
}  # fmt: skip
LONG_TASKS = [f"{task} Say it {WORD * 300}" for task in TASKS[:2]]
WORDY_WISHES = ASKED | FULL | {"checks": {"review": "model"}}
WORDY: dict[str, Way] = {
    "supervisor_wordy": Way(ordered=False, scenario="wordy", requests=True, wishes=WORDY_WISHES, disturb=talked_at),
    "supervisor_wordy_web": Way(web=True, wordy=True, ordered=False, scenario="wordy", disturb=talked_at),
    "supervisor_wordy_alone": Way(web=True, wordy=True, disturb=talked_at),
    "reflective_wordy": Way(ordered=False, scenario="wordy", requests=True, wishes=STEPS, disturb=talked_at),
    "orchestrator_wordy": Way(
        scenario="wordy",
        requests=True,
        wishes=CYCLES,
        disturb=talked_at,
        works={
            "orchestrator": in_turns(
                send(*LONG_TASKS), think(LONG), send(LONG), send(TASKS[3], continue_agent=LONG), think(LONG), REPORT
            )
        },
    ),
}
WAYS: dict[str, Way] = WORDY | {
    f"{strategy}_{name}": way
    for strategy, ways in (("orchestrator", ORCHESTRATED), ("reflective", REFLECTIVE), ("supervisor", SUPERVISED))
    for name, way in ways.items()
}
for _name, _way in WAYS.items():
    _way.strategy = _name.partition("_")[0]
    if _way.again is not None:
        # Reflections beside a phase that is done again would come when they like.
        _way.wishes = _way.wishes | {"gates": {"think": "rules"}}
    # An agent begins beside the taking over of the one before it.
    _way.ordered &= _way.strategy != "orchestrator"


@pytest.mark.parametrize("name", WAYS)
async def test_what_leaves_a_run_of_a_strategy_is_what_was_recorded(name: str, tmp_path: Path) -> None:
    """State, calls, events, status, agents and report are, word for word, what they were when somebody read them."""
    made = await recording_of(WAYS[name], tmp_path)
    assert made.splitlines() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    record(WAYS, FOLDER)
