"""What is made of a role's answers of which one thing is odd, for each of its things, against a recorded table a role.

`python -m tests.unit.activities.test_recorded_answers` records. Read the difference before you record.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from activities.roles import finishers, reviewer
from activities.roles.corrector import finish_correction
from activities.roles.finishers import Draft
from activities.roles.labels import label_key, label_of
from activities.roles.reflective import coordinator, investigator, reflector, researcher, step_planner
from contracts import checking_roles, reflective_roles, roles
from contracts.checking import AskedClaim, DoubtfulClaim, ShownPassage
from contracts.claims import Verdict
from contracts.documents import DocumentRef
from contracts.evidence import Gap
from contracts.usage import CallAccount
from contracts.vocabulary import EngineKind, NodeStatus
from contracts.waiting import QuestionRound
from providers.errors import InvalidOutput
from tests.unit.activities.scripted import common, plan_input

FOLDER = Path(__file__).parent / "recorded_answers"
RUN = re.compile(r"(\w)\1{40,}")
WORDS = ("", "  two   words ", "x" * 5_000, "\ud800", "splendid", "What is vacuum?", "REMOVE", "high")
NUMBERS = (-5, 0, 1, 4.5, 10, 10.5, 99)
GIVEN = common() | {"engine": EngineKind.MODEL}


def passage(identity: str) -> ShownPassage:
    """A passage of a manual."""
    return ShownPassage(evidence_id=identity, title="Manual", before="", quote=f"Words of {identity}.", after="")


CLAIMS = [
    DoubtfulClaim(
        number=number,
        asked=AskedClaim(fingerprint=f"c-{number}", text=f"It is said {number}.", passages=[passage("ev-1")]),
        verdict=Verdict.UNSUPPORTED,
        reason="not there",
        candidates=[passage("ev-2"), passage("ev-3")],
    )
    for number in (4, 7)
]
CORRECT = checking_roles.CorrectInput(**GIVEN, claims=CLAIMS)
KEY = label_key(CORRECT)
SUMMARY = reflective_roles.StepSummary(title="What it is", status=NodeStatus.COMPLETED)


def proposal(action: str, text: str = "It is said less.", names: tuple[str, ...] = ("ev-2",)) -> dict[str, Any]:
    """A proposal for the first claim."""
    passages = [label_of(name, KEY) for name in names]
    return {"claim": label_of("c-4", KEY), "action": action, "text": text, "passages": passages, "reason": "so"}


ASSESSMENT = {"score": 7, "strengths": ["clear"], "weaknesses": ["short"]}
ROLES: dict[str, tuple[Callable[[Any], Any], Any, Any, list[dict[str, Any]]]] = {
    "planner": (
        finishers.finish_plan,
        plan_input(max_sub_queries=3),
        roles.PlanDraft,
        [{"research_brief": "A brief.", "sub_queries": [
            {"query": f"question {number}", "rationale": "because", "priority": number, "facet": "part"}
            for number in (2, 1, 3)
        ]}],
    ),
    "clarifier": (
        finishers.finish_clarification,
        roles.ClarifyInput(**GIVEN, rounds=[QuestionRound(round=1, questions=["Which?"], answers=[""])]),
        roles.ClarifyDraft,
        [{"clear": False, "questions": ["Which?", "When was it?"], "reason": "two kinds"}],
    ),
    "clarifier_required": (
        finishers.finish_clarification,
        roles.ClarifyInput(**GIVEN, required=True),
        roles.ClarifyDraft,
        [{"clear": True, "questions": ["When was it?"], "reason": "two kinds"}],
    ),
    "refiner": (
        finishers.finish_refinement,
        roles.RefineInput(
            **GIVEN,
            gaps=[Gap(id="gap-a", description="a"), Gap(id="gap-b", description="b")],
            remaining_iterations=1,
            asked=["What is vacuum?"],
        ),
        roles.RefineDraft,
        [{
            "gap_analysis": [
                {"gap_id": "gap-a", "severity": "critical", "addressable": True, "follow_up_queries": [
                    {"query": "how old rows are frozen", "expected_contribution": "the age"}]},
                {"gap_id": "gap-b", "severity": "minor", "addressable": False, "follow_up_queries": []},
            ],
            "iteration_recommendation": {"should_iterate": True, "rationale": "it pays", "priority_gaps": ["gap-b"]},
            "report_improvements": ["be brief"],
        }],
    ),
    "supervisor": (
        finishers.finish_reflection,
        roles.ReflectInput(**GIVEN, phase="analysis", prompt="p", gate_valid=True, gate_score=7),
        roles.ReflectionDraft,
        [{"action": "retry", "rationale": "thin", "quality_assessment": ASSESSMENT, "guidance": "look again"}],
    ),
    "reviewer": (
        reviewer.finish_review,
        checking_roles.ReviewInput(**GIVEN, draft=DocumentRef(hash="sha256:" + "0" * 64), sub_queries=["a"], findings=3),
        checking_roles.ReviewDraft,
        [{"coverage": 7, "support": 6.5, "depth": 5, "readability": 9, "reasons": ["r"], "missing": ["m"], "notes": ["n"]}],
    ),
    "corrector": (
        finish_correction,
        CORRECT,
        checking_roles.CorrectDraft,
        [{"proposals": [proposal(action, text, names)]}
         for action in ("keep", "replace", "add", "rewrite", "soften", "remove")
         for text in ("It is said less.", "It is said 4.", "", "So it is [1].")
         for names in ((), ("ev-1",), ("ev-2", "ev-2"), ("ev-3", "ev-9", "ev-1"))]
        + [{"proposals": [proposal("rewrite"), proposal("remove")]}],
    ),
    "coordinator": (
        coordinator.finish,
        reflective_roles.ClassifyInput(**GIVEN),
        reflective_roles.ClassificationDraft,
        [{"complexity": "simple", "follow_up_type": "new_topic", "route": "direct", "recommended_depth": "light",
          "is_ambiguous": True, "clarifying_questions": ["Which?"], "brief": "b", "reasoning": "r"}],
    ),
    "coordinator_of_research": (
        coordinator.finish,
        reflective_roles.ClassifyInput(**GIVEN, may_answer=False),
        reflective_roles.ClassificationDraft,
        [{"complexity": "simple", "follow_up_type": "new_topic", "route": "direct", "recommended_depth": "light"}],
    ),
    "investigator": (
        investigator.finish,
        reflective_roles.InvestigateInput(**GIVEN, most_queries=2),
        reflective_roles.QueriesDraft,
        [{"queries": ["what it is", "what it costs"]}],
    ),
    "step_planner": (
        step_planner.finish,
        reflective_roles.PlanStepsInput(**GIVEN, steps=[SUMMARY], fewest=1, most=3),
        reflective_roles.StepsDraft,
        [{"title": "T", "thought": "t", "has_enough_context": enough, "steps": [
            {"title": f"Step {number}", "description": "d", "step_type": "research", "needs_search": True}
            for number in range(2)
        ]} for enough in (False, True)],
    ),
    "researcher": (
        researcher.finish,
        reflective_roles.ResearchStepInput(**GIVEN, step_title="S", asked=["what it is"]),
        reflective_roles.ResearchTurnDraft,
        [{"queries": ["what it is", "what it costs", "who says so"], "reasoning": "r"}],
    ),
    "reflector": (
        reflector.finish,
        reflective_roles.ReflectOnStepInput(**GIVEN, steps=[SUMMARY], pending=["p"], completed=1),
        reflective_roles.StepReflectionDraft,
        [{"decision": decision, "reasoning": "r", "suggested_changes": ["c"]} for decision in ("continue", "adjust")],
    ),
    "reflector_without_choice": (
        reflector.finish,
        reflective_roles.ReflectOnStepInput(**GIVEN, steps=[SUMMARY], fewest_steps=2, completed=1, may_adjust=False),
        reflective_roles.StepReflectionDraft,
        [{"decision": decision} for decision in ("continue", "adjust", "adjust_plan", "finalize", "complete", "write")],
    ),
}  # fmt: skip


def odd(value: Any) -> Iterator[Any]:
    """Other values in the place of this one."""
    yield None
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from NUMBERS
    elif isinstance(value, str):
        yield from (*WORDS, value.upper(), f" {value} ")
    elif isinstance(value, list):
        yield []
        yield [*value, *value]
        yield [f"{each} {number}" if isinstance(each, str) else each for number in range(12) for each in value[:1]]


def variants(whole: Any, value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The answer with one thing changed, and where; of lists the first two things."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, part in inside:
        for other in odd(part):
            changed = copy.deepcopy(whole)
            parent = changed
            for step in place:
                parent = parent[step]
            parent[key] = other
            yield f"{'.'.join(map(str, (*place, key)))} = {other!r}", changed
        yield from variants(whole, part, (*place, key))


def made_of(role: str, answer: Any) -> str:
    """What the workflow gets of an answer, or why it gets nothing."""
    finish, given, kind, _ = ROLES[role]
    try:
        draft = kind.model_validate(answer)
    except ValidationError as error:
        return f"unreadable: {error.errors()[0]['msg']}"
    try:
        output = finish(Draft(given, draft, {}, CallAccount()))
    except InvalidOutput as error:
        return f"no answer: {error}"
    told = output.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(told)


def table(role: str) -> str:
    """Each answer as it is, then with one thing changed."""
    lines = []
    for number, answer in enumerate(ROLES[role][3]):
        lines += [f"answer {number}", f"  {made_of(role, answer)}"]
        # The many answers of a corrector differ enough from each other.
        for name, changed in variants(answer, answer) if number < 2 else ():
            lines += [name, f"  {made_of(role, changed)}"]
    text = RUN.sub(lambda run: f"{run[1]}×{len(run[0])}", "\n".join(lines))
    return text.encode("ascii", "backslashreplace").decode() + "\n"


@pytest.mark.parametrize("role", ROLES)
def test_what_is_made_of_an_odd_answer_is_what_was_recorded(role: str) -> None:
    """Values, warnings and refusals are, word for word, what they were."""
    assert table(role).splitlines() == (FOLDER / f"{role}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name_of_role in ROLES:
        (FOLDER / f"{name_of_role}.txt").write_text(table(name_of_role), encoding="utf-8")
