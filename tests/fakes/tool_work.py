"""What a sensible model would do with tools, turn by turn, and as an outliner: pure functions of the conversation."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.conversation import blocks_of, signed, text_of
from tests.fakes.model_work import clarification, element, key_words, question_of

Blocks = list[dict[str, Any]]
ASPECTS = ("how it works", "which settings it has", "where it fails")
THOUGHTS_BEFORE_END = 1


def opening_of(body: Mapping[str, Any]) -> str:
    return "\n".join(text_of(block) for block in blocks_of(body["messages"][0]))


def called(body: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The calls so far, in order."""
    said = (block for message in body["messages"] for block in blocks_of(message))
    return [(block["name"], block["input"]) for block in said if block["type"] == "tool_use"]


def answered(body: Mapping[str, Any]) -> list[str]:
    said = (block for message in body["messages"] for block in blocks_of(message))
    return [block["content"] for block in said if block["type"] == "tool_result"]


def listed(answer: str) -> list[int]:
    """The numbers of the pages that a search lists, each at the beginning of a line."""
    return [int(number) for number in re.findall(r"^(?:\w+¦)?(\d+)\. ", answer, re.MULTILINE)]


def offered(body: Mapping[str, Any]) -> list[str]:
    return [tool["name"] for tool in body.get("tools") or []]


def turns(body: Mapping[str, Any]) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def blocks(body: Mapping[str, Any], *wanted: tuple[str, dict[str, Any]], thought: str = "") -> Blocks:
    """Calls under ids that are new in the conversation, after a thought if there is one."""
    made = [
        {"type": "tool_use", "id": f"toolu_{turns(body)}_{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(wanted)
    ]
    return [*([signed(thought)] if thought else []), *made]


def outline(prompt: str) -> dict[str, Any]:
    """Three steps, or as many as are allowed."""
    question = question_of(prompt).rstrip("?. ")
    most = int(re.findall(r"at most (\d+) steps", prompt)[-1])
    return {
        "approach": f"First {', then '.join(ASPECTS[:most])}.",
        "steps": [{"step": f"{question}: {aspect}", "facet": aspect} for aspect in ASPECTS[:most]],
    }


def decomposition(prompt: str) -> dict[str, Any]:
    """A query and a heading for each aspect, and the questions that the clarifier of the product would ask."""
    question = question_of(prompt).rstrip("?. ")
    most = int(re.findall(r"at most (\d+) queries", prompt)[-1])
    return {
        "brief": f"What is known about: {question}.",
        "clarifying_questions": clarification(prompt)["questions"],
        "expanded_queries": [f"{question}: {aspect}" for aspect in ASPECTS[:most]],
        "outline": [aspect.capitalize() for aspect in ASPECTS],
        "assumptions": ["The current version is meant."],
    }


def take_in(body: Mapping[str, Any]) -> Blocks:
    """Hand over, or ask what the clarifier of the product would ask."""
    asked = clarification(opening_of(body))["questions"]
    return blocks(body, ("ask_person", {"questions": asked}) if asked else ("generate_plan", {}))


def plan_steps(body: Mapping[str, Any]) -> list[str]:
    return re.findall(r"^- \d+\. (.+)$", element(opening_of(body), "plan"), re.MULTILINE)


def orchestrate(body: Mapping[str, Any]) -> Blocks:
    """One agent for each step, a thought when they are back, then the report."""
    made = [name for name, _ in called(body)]
    if "research_agent" not in made:
        tasks = [
            ("research_agent", {"task": f"{step}. Give figures.", "steps": [number], "searches": [first_query(step)]})
            for number, step in enumerate(plan_steps(body), start=1)
        ]
        return blocks(body, *tasks)
    if "think_tool" in offered(body) and made.count("think_tool") < THOUGHTS_BEFORE_END:
        return blocks(body, ("think_tool", {"reasoning": "Each step has a report; nothing contradicts itself."}))
    return blocks(body, ("generate_report", {}))


def first_query(task: str) -> str:
    return " ".join(key_words(task)[:12])


def work(body: Mapping[str, Any]) -> Blocks:
    """Open the first six pages that are known, search once more for details, report; without any page, search first."""
    task = question_of(opening_of(body))
    made = [name for name, _ in called(body)]
    pages = listed("\n".join([element(opening_of(body), "pages"), *answered(body)[:1]]))
    if not made and not pages:
        return blocks(body, ("search", {"query": first_query(task)}))
    if "open_page" not in made and pages and "open_page" in offered(body):
        further = ("search", {"query": f"{' '.join(key_words(task)[-6:])} in detail"})
        more = [further] if "search" in offered(body) else []
        return blocks(body, *(("open_page", {"index": page}) for page in pages[:6]), *more)
    return blocks(body, ("generate_report", {"open_questions": []}))


def ask_glossary(body: Mapping[str, Any]) -> Blocks:
    """Look the word up, then what its answer refers to, then hand over."""
    answers, made = answered(body), called(body)
    thought = f"Turn {turns(body)}: {{what}} next? \u2014 I have {len(answers)} answers."
    if not made:
        opening = "".join(block["text"] for block in blocks_of(body["messages"][0]))
        word = re.findall(r"Look up (\w+) first", opening)[-1]
        return blocks(body, ("look_up", {"word": word}), thought=thought)
    further = re.search(r"See also: (\w+)", answers[-1])
    if further and not any(given.get("word") == further[1] for _, given in made):
        return blocks(body, ("look_up", {"word": further[1]}), thought=thought)
    words = [given["word"] for name, given in made if name == "look_up" and given]
    return blocks(body, ("hand_over", {"text": "Found.", "words": words}), thought=thought)


def research_live(body: Mapping[str, Any]) -> Blocks:
    """Ask every query, then wave by wave: fetch up to five pages, have them read, write their notes down; finish."""
    plan, made = opening_of(body), called(body)
    queries = re.findall(r"^- (.+)$", element(plan, "queries"), re.MULTILINE)
    headings = re.findall(r"^- (.+)$", element(plan, "outline"), re.MULTILINE)
    answers = "\n".join(answered(body))
    names = [name for name, _ in made]
    found = element(plan, "pages")
    if not found and "web_search" not in names:
        return blocks(body, *(("web_search", {"query": query}) for query in queries))
    fetched = {given["page"] for name, given in made if name == "fetch_url"}
    parsed = {given["file_id"] for name, given in made if name == "parse_content"}
    written = {note for name, given in made if name == "update_report" for note in given["notes"]}
    pages = listed(f"{found}\n{answers}")
    files = [name for name in dict.fromkeys(re.findall(r"file ([0-9a-f]{12}),", answers)) if name not in parsed]
    notes = [int(number) for number in re.findall(r"note (\d+): ", answers)]
    due = [note for note in dict.fromkeys(notes) if note not in written]
    wave = [page for page in dict.fromkeys(pages) if page not in fetched][:5]
    share = -(-len(due) // len(headings)) if due else 1
    calls = [("parse_content", {"file_id": name}) for name in files]
    calls += [("update_report", {"heading": heading, "notes": due[place * share :][:share], "purpose": "Report."})
              for place, heading in enumerate(headings) if due[place * share :][:share]]  # fmt: skip
    calls += [("fetch_url", {"page": page}) for page in wave] if int(pages_left(plan)) > len(fetched) else []
    return blocks(body, *(calls[:8] or [("finish", {"open_questions": headings})]))


def pages_left(plan: str) -> str:
    return re.findall(r"You may fetch (\d+) pages", plan)[-1]


TOOL_WORK: dict[str, Callable[[Mapping[str, Any]], Blocks]] = {
    "asker": ask_glossary,
    "intake": take_in,
    "orchestrator": orchestrate,
    "agent": work,
    "living_agent": research_live,
}
"""By role."""
