"""What sensible models answer as librarian, scanner, planner of trees and extractor: pure functions of the prompt."""

import re
from typing import Any

from tests.fakes.model_work import analysis, element, key_words, sources_of, without_signs

WAYS = ("{}", "{} explained", "{} settings", "{} limits")


def scope(prompt: str) -> dict[str, Any]:
    """Each query of an edit as it is, else the question, and its settings where it names more than one thing."""
    edited = re.findall(r"^- (.+)$", element(prompt, "edited"), re.MULTILINE)
    question = element(prompt, "question").strip()
    most = int((re.findall(r"(\d+) queries or fewer", prompt) or ["1"])[-1])
    words = " ".join(key_words(question)[:8])
    found = [question[:500], f"Which settings concern {words}?"] if " and " in question else [question[:500]]
    reason = "a handful of sources answers it"
    judged = [{"query": text, "feasible": True, "reason": reason, "splits": []} for text in edited or found[:most]]
    return {"queries": judged}


def searches(prompt: str) -> dict[str, Any]:
    """The need in a few ways that were not tried, and the first work that a source has mentioned."""
    need, asked = element(prompt, "need").rstrip("?. "), element(prompt, "asked")
    most = int(re.findall(r"at most (\d+) searches", prompt)[-1])
    words = " ".join(key_words(need)[:8]) or need
    works = re.findall(r"^- (.+)$", element(prompt, "works"), re.MULTILINE)[:1]
    made = [need, *(way.format(words) for way in WAYS[1:3]), *works]
    return {"searches": [text for text in made if text not in asked][:most]}


def examination(prompt: str) -> dict[str, Any]:
    """A source is of use where a word of the need is in it."""
    need = {word.lower()[:5] for word in key_words(element(prompt, "need"))}
    return {"assessments": [assessment(name, need, text) for name, _, text in sources_of(prompt)]}


def assessment(name: str, need: set[str], text: str) -> dict[str, Any]:
    fits = bool(need & {word.lower()[:5] for word in key_words(text)})
    return {
        "source_id": name,
        "credibility": "medium",
        "relevance": "high" if fits else "low",
        "reason": "it speaks about the need" if fits else "it speaks about something else",
        "decision": "use" if fits else "reject",
    }


def tree(prompt: str) -> dict[str, Any]:
    """Leaves of the first source for the goal itself, and an executor for the rest where a level is left."""
    goal, labels = (
        element(prompt, "goal").rstrip("?. "),
        re.findall(r"^(src-\S+): ", element(prompt, "sources"), re.MULTILINE),
    )
    most = int(re.findall(r"at most (\d+)(?: leaves|, and no)", prompt)[-1])
    nodes = re.findall(r"at most (\d+) executors", prompt)
    tasks = [{"source": label, "task_type": "EXTRACT_KEY_FACTS", "task_detail": goal} for label in labels]
    if not nodes or int(nodes[-1]) < 2 or len(tasks) < 2:
        return {"leaves": tasks[:most], "nodes": []}
    question = {"source": labels[0], "task_type": "ANSWER_QUESTION", "task_detail": f"{goal}?"}
    return {"leaves": [question], "nodes": [{"goal": f"{goal} in detail", "leaves": tasks[1:][:most], "nodes": []}]}


def three_levels(prompt: str) -> dict[str, Any]:
    """A leaf and an executor below it, at each level, each with a goal that names its level."""
    goal, source = element(prompt, "goal"), re.findall(r"^(src-\S+): ", element(prompt, "sources"), re.MULTILINE)[0]
    nodes: list[dict[str, Any]] = []
    for level in (3, 2, 1):
        text = f"{goal.rstrip('?')} (level {level})?"
        leaf = {"source": source, "task_type": "ANSWER_QUESTION", "task_detail": text}
        nodes = [{"goal": text, "leaves": [leaf], "nodes": nodes}]
    return {"leaves": nodes[0]["leaves"], "nodes": nodes[0]["nodes"]}


def extraction(prompt: str) -> dict[str, Any]:
    """Two sentences of the source, quoted as they stand, and the question that they leave open."""
    found = analysis(prompt)
    task = element(prompt, "task") or element(prompt, "expected")
    opened = [f"What follows from “{task[:150]}” in practice?"] if found["findings"] else []
    return {
        "findings": found["findings"],
        "follow_up_questions": opened,
        "identified_gaps": [],
        "mentioned_works": [],
    }


def self_check(prompt: str) -> dict[str, Any]:
    """A report is good enough once it states something; each gap is judged as one that could be closed."""
    plain = without_signs(prompt)
    found = bool(element(plain, "draft").strip() or re.search(r"^- ", plain, re.MULTILINE))
    gaps = re.findall(r"^\s*(gap-[\w-]+): ", element(plain, "gaps"), re.MULTILINE)
    return {"sufficient": found, "reason": "It is compared with its goal.", "gaps": [{"gap_id": one} for one in gaps]}
