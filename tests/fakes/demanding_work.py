"""What a demanding model answers: it wants each thing that a role can be given, so that whole requests show it."""

import json
import re
from typing import Any

from tests.fakes import model_work
from tests.fakes.model_request import ModelRequest

PHASE = re.compile(r"^Phase just finished: (\w+)$", re.MULTILINE)


def answer(request: ModelRequest, *, iterates: bool = True) -> str:
    """Sensible work with phases done twice, a contradiction, a draft to improve and advice after each phase."""
    prompt = request.prompt
    if request.role == "analyzer":
        return json.dumps(_analysis(prompt))
    if request.role == "refiner":
        refined = model_work.refinement(prompt)
        refined["report_improvements"] = ["Say how close a database may come to wraparound."]
        refined["gap_analysis"][-1] |= {"severity": "minor", "addressable": False, "follow_up_queries": []}
        refined["iteration_recommendation"]["should_iterate"] = iterates
        return json.dumps(refined)
    if request.role == "supervisor":
        return json.dumps(_reflection(prompt))
    return request.good_answer()


def _analysis(prompt: str) -> dict[str, Any]:
    first = "Iteration: 1 of" in prompt
    analysis = model_work.analysis(prompt, with_gap=first)
    wanted = model_work.element(prompt, "sub_query")
    for finding, confidence in zip(analysis["findings"], ("medium", "low", "speculation"), strict=False):
        finding["confidence"] = confidence
    if first:
        suggested = ["oldest transaction age", "forced vacuum age"]
        analysis["gaps"].append(
            {
                "description": f"The pages disagree: {wanted}",
                "suggested_queries": suggested,
                "priority": 2,
                "kind": "contradiction",
            }
        )
    analysis["quality_updates"] = [update | {"quality": "medium"} for update in analysis["quality_updates"][:1]]
    return analysis


def _reflection(prompt: str) -> dict[str, Any]:
    stated = PHASE.search(prompt)
    phase = stated[1] if stated else "unknown"
    reflection = model_work.reflection(prompt)
    weak = {"strengths": ["evidence is quoted"], "weaknesses": ["one publisher"], "score": 6.5}
    due = phase == "planning" or ("Iteration: 2 of" in prompt and phase in ("analysis", "synthesis"))
    said = {"rationale": f"{phase}: one aspect is thin", "guidance": f"After {phase}: prefer primary sources."}
    return reflection | said | {"action": "retry" if due else "proceed", "quality_assessment": weak}
