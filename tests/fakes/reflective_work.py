"""What a sensible model would answer to the roles of the strategy `reflective`: pure functions of the prompt."""

import re
from typing import Any

from tests.fakes.model_work import element, key_words, question_of, unmarked

TOPICS = ("what it is", "how it works", "which settings it has", "where it fails", "what changed", "what it costs")


def classification(prompt: str) -> dict[str, Any]:
    """A greeting is answered directly, what has four words or fewer quickly, everything else deeply."""
    question = question_of(prompt)
    direct = "hello" in question.lower() and "`direct`" in prompt
    return {
        "complexity": "moderate",
        "route": "direct" if direct else "quick" if len(question.split()) <= 4 else "deep",
        "recommended_depth": "auto",
        "is_ambiguous": "it" in question.lower().split(),
        "clarifying_questions": ["What is meant by it?"] if "it" in question.lower().split() else [],
        "reasoning": "by the number of words",
    }


def background(prompt: str) -> dict[str, Any]:
    """The question, and its last words."""
    question = question_of(prompt)
    return {"queries": [question, f"{' '.join(key_words(question)[-3:])} overview"]}


def steps(prompt: str) -> dict[str, Any]:
    """As many steps as are wanted at most, three if that is fewer; topics that no step has had yet."""
    question = question_of(prompt).rstrip("?. ")
    most = int(re.findall(r"still to be done: (?:\d+ to )?(\d+)\.", prompt)[-1])
    known = element(prompt, "steps")
    fresh = [topic for topic in TOPICS if topic not in known][: min(most, 3)]
    return {
        "title": question,
        "thought": f"First {', then '.join(fresh)}.",
        "has_enough_context": False,
        "steps": [
            {
                "title": f"Research {topic}: {question}"[:180],
                "description": f"{question}: {topic}",
                "step_type": "research",
                "needs_search": True,
                "searches": [f"{question}: {topic}"],
            }
            for topic in fresh
        ],
    }


def searches(prompt: str) -> dict[str, Any]:
    """The step's own words first, the question with one word more in the second turn, then nothing."""
    lines = [line for line in element(prompt, "step").splitlines() if line.strip()]
    turn = int(re.findall(r"^Turn (\d+)\.", unmarked(prompt), re.MULTILINE)[-1])
    queries = {1: lines[-1:], 2: [f"{lines[-1]} in detail"]}
    return {"queries": queries.get(turn, []), "reasoning": f"turn {turn}"}


def reflection(prompt: str) -> dict[str, Any]:
    done = element(prompt, "steps").count("(completed)")
    return {"decision": "continue", "reasoning": f"{done} steps are done", "suggested_changes": None}


def answer(prompt: str) -> str:
    return f"# {question_of(prompt)}\n\n## Answer\n\nThis can be said without looking anything up: hello to you, too.\n"
