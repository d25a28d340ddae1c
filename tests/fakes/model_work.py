"""What a sensible model would answer to each of our roles: pure functions of the prompt."""

import re
from functools import lru_cache
from typing import Any

STATED_MARK = re.compile(
    r'^Below, names of data elements end in "-(\w+)", and their lines begin with "(.+)"\.$', re.MULTILINE
)
SENTENCE = re.compile(r"[A-Z][^.!?]*(?:[.!?](?!\s|$)[^.!?]*)*[.!?](?=\s|$)")
FINDING_LINE = re.compile(r"^\W*(?P<markers>(?:\[ev-[^\]]+\]\s*)+)(?P<statement>.+)$", re.MULTILINE)
GAP_LINE = re.compile(r"^\W*(?P<id>gap-[\w-]+)[^:\n]*:\s*(?P<description>.+)$", re.MULTILINE)
SHORT = 4


def told(prompt: str) -> tuple[str, str]:
    """The mark and the sign of the prompt's own part; its common part, which comes before, may have others."""
    stated: list[tuple[str, str]] = STATED_MARK.findall(prompt)
    return stated[-1] if stated else ("nothing", "nothing")


@lru_cache(maxsize=64)
def without_signs(prompt: str) -> str:
    """The prompt with its lines of data as they were before signs were put before them."""
    for _, sign in STATED_MARK.findall(prompt):
        prompt = re.sub(rf"^{re.escape(sign)}", "", prompt, flags=re.MULTILINE)
    return prompt


def unmarked(prompt: str) -> str:
    """The prompt without statements of marks, without signs, and with plain names of elements."""
    plain = STATED_MARK.sub("", without_signs(prompt))
    for mark, _ in STATED_MARK.findall(prompt):
        plain = re.sub(rf"(</?\w+)-{mark}\b", r"\1", plain)
    return plain


@lru_cache(maxsize=256)
def element(prompt: str, tag: str) -> str:
    """The content of the first element of that name, genuine if it is one of data."""
    found = re.search(
        rf"<{tag}((?:-{told(prompt)[0]})?)\b[^>]*>\n?(.*?)\n?</{tag}\1>", without_signs(prompt), re.DOTALL
    )
    return found.group(2).strip() if found else ""


def question_of(prompt: str) -> str:
    """The question that the prompt states; that of an agent is data, in the part that all calls share, under its own mark."""
    lines = [line for line in prompt.splitlines() if line.strip()]
    asked = re.search(r"<question(-[0-9a-f]+)?>\n(.*?)\n</question\1>", prompt, re.DOTALL)
    if asked is not None:
        return re.sub(r"(?m)^[0-9a-f]{2}¦ ?", "", asked[2]).strip()
    return element(prompt, "question") or (lines[-1].strip() if lines else "the question")


def key_words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text) if len(word) >= SHORT]


def summary(prompt: str) -> str:
    """As many characters as are asked for, which say whose work they are and of which text they are the beginning."""
    most = int(re.findall(r"fewer than (\d+) characters", prompt)[-1])
    return f"In short: {' '.join(element(prompt, 'original').split())}"[: most - 1]


def clarification(prompt: str) -> dict[str, Any]:
    """A question where one is demanded, or where there is little to go by; nothing once it was answered."""
    question = question_of(prompt)
    little = len(key_words(question)) < SHORT or "Ask at least one question" in prompt
    if not little or element(prompt, "rounds"):
        return {"clear": True, "questions": [], "reason": "nothing is unclear"}
    return {"clear": False, "questions": [f"Which part of “{question}” do you mean?"], "reason": "it says little"}


def sources_of(prompt: str) -> list[tuple[str, str, str]]:
    """Id, quality and text of every genuine source element, in order, without the list of what is not shown."""
    name = f"source-{told(prompt)[0]}"
    found = []
    for match in re.finditer(rf"<{name}\b([^>]*)>\n?(.*?)\n?</{name}>", without_signs(prompt), re.DOTALL):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', match[1]))
        text = match[2].partition("\nNot shown of this source:\n")[0]
        found.append((attributes["id"], attributes.get("quality", "unknown"), text))
    return found


def plan(prompt: str) -> dict[str, Any]:
    """Three sub-queries that share the question's words."""
    question = question_of(prompt).rstrip("?. ")
    topic = " ".join(key_words(question)[-4:]) or question
    wishes = [(question, "the question itself"), (f"how {topic} works", "mechanism"), (f"{topic} settings", "settings")]
    return {
        "research_brief": f"The question is taken apart into what it asks, how it works and what can be set: {topic}.",
        "sub_queries": [
            {"query": query, "rationale": f"needed for {facet}", "priority": number, "facet": facet}
            for number, (query, facet) in enumerate(wishes, start=1)
        ],
    }


def gaps_asked_about(prompt: str) -> list[str]:
    """Labels of the listed gaps whose description is part of what is asked; of all where nothing else is."""
    plain = unmarked(prompt)
    asked = element(plain, "sub_queries") or element(plain, "task") or element(plain, "gaps")
    listed = (GAP_LINE.match(line) for line in element(plain, "gaps").splitlines())
    return [match["id"] for match in listed if match and match["description"].strip(". ") in asked]


LAST_LOOK = "This is the last look at them"


def analysis(prompt: str, *, with_gap: bool = False) -> dict[str, Any]:
    """At most two sentences of each source, quoted as they stand; best match with the question first.

    A last look at open gaps finds nothing: what is known of them was found before.
    """
    if LAST_LOOK in prompt:
        return {"findings": []}
    asked = sub_queries_of(prompt) or [question_of(prompt)]
    wanted = stems_of(question_of(prompt))
    limit = re.search(r"at most (\d+) findings", prompt)
    sources = sources_of(prompt)
    gaps = gaps_asked_about(prompt)
    findings = []
    for source_id, quality, text in sources:
        found = [match.group() for part in re.split(r"\n\s*\n", text) for match in SENTENCE.finditer(part)]
        usable = [quote for quote in found if 30 <= len(quote) <= 400 and "[…]" not in quote and "://" not in quote]
        about = [quote for quote in usable if len(wanted & stems_of(quote)) > 1] or usable
        ranked = sorted(about, key=lambda quote: -len(wanted & stems_of(quote)))
        findings += [
            {
                "content": " ".join(quote.split())[:500],
                "confidence": "high" if quality == "high" else "medium",
                "quotes": [{"source_id": source_id, "quote": quote}],
                "answers": [answered_by(asked, quote, len(findings))],
                "category": "general",
                "answers_gaps": gaps,
            }
            for quote in ranked[:2]
        ]
    gap = {
        "description": f"The sources leave open: {asked[0]}"[:300],
        "sub_query": 1,
        "suggested_queries": [f"{question_of(prompt)[:200]} details"],
        "priority": 1,
        "kind": "missing",
    }
    return {
        "findings": findings[: int(limit.group(1)) if limit else 5],
        "gaps": [gap] if with_gap or not findings else [],
        "quality_updates": [
            {"source_id": source_id, "quality": "medium" if quality == "unknown" else quality}
            for source_id, quality, _ in sources
        ],
    }


def sub_queries_of(prompt: str) -> list[str]:
    """The sub-queries of an analysis, which stand in the part that all calls share and so under its own mark."""
    found = re.search(r"<sub_queries-([0-9a-f]+)>\n(.*?)\n</sub_queries-\1>", prompt, re.DOTALL)
    return re.findall(r"^[0-9a-f]{2}¦ ?\d+\. (.*)$", found[2], re.MULTILINE) if found else []


def stems_of(text: str) -> set[str]:
    """The beginnings of its key words."""
    return {word.lower()[:5] for word in key_words(text)}


def answered_by(asked: list[str], quote: str, number: int) -> int:
    """The number of a sub-query that shares a word with a quote, each in turn."""
    shared = [place for place, query in enumerate(asked, start=1) if stems_of(query) & stems_of(quote)] or [1]
    return shared[number % len(shared)]


def report(prompt: str) -> str:
    """A report that states each finding once, behind it the marker it came with."""
    found = [
        (match["markers"].replace(" ", ""), match["statement"].strip())
        for match in FINDING_LINE.finditer(without_signs(prompt))
    ]
    gaps = [match["description"].strip() for match in GAP_LINE.finditer(without_signs(prompt))]
    stated = [f"{statement.rstrip('.')} {markers}." for markers, statement in found]
    nothing = "The sources that were read do not answer this question."
    if section := re.search(r"^Write section (\d+) alone", prompt, re.MULTILINE):
        return "\n".join([f"## Part {section[1]}", "", *(f"- {line}" for line in stated)])
    is_frame = element(prompt, "outline").strip() != ""
    open_ends = [f"- {gap}" for gap in gaps] or ["- None of the questions asked stayed open."]
    return "\n".join(
        [
            f"# {question_of(prompt)}",
            "",
            "## Summary",
            "",
            " ".join(stated[:2]) or nothing,
            "",
            *([] if is_frame else ["## Key findings", "", *([f"- {line}" for line in stated] or [f"- {nothing}"])]),
            "",
            "## Gaps and limitations",
            "",
            *open_ends,
            "",
            "## Conclusion",
            "",
            stated[-1] if stated else nothing,
        ]
    )


def update(prompt: str) -> dict[str, Any]:
    """One operation that appends the statements of the notes that have room, none of them a second time."""
    plain = without_signs(prompt)
    section, room = (
        element(prompt, "section"),
        int(re.findall(r"^Insert and remove at most (\d+)", plain, re.MULTILINE)[-1]),
    )
    lines: list[str] = []
    for match in FINDING_LINE.finditer(element(prompt, "findings")):
        line = f"{match['statement'].strip().rstrip('.')} {match['markers'].replace(' ', '')}."
        if line not in section and sum(map(len, lines)) + len(line) + 40 <= room:
            lines.append(line)
    return {"operations": [{"kind": "append", "anchor": 0, "text": " ".join(lines)}] if lines else []}


def arrangement(prompt: str) -> dict[str, Any]:
    """Every note in turn under the next heading."""
    plain = unmarked(prompt)
    headings = re.findall(r"^\d+\. ", element(plain, "outline"), re.MULTILINE)
    notes = re.findall(r"^(\d+)\. \(priority", element(plain, "findings"), re.MULTILINE)
    sections: dict[int, list[int]] = {}
    for index, number in enumerate(notes):
        sections.setdefault(index % len(headings) + 1, []).append(int(number))
    return {"sections": [{"heading": heading, "notes": numbers} for heading, numbers in sections.items()]}


RECALL_LINE = re.compile(r"^\W*(\d+)\. .+ \(passages [\d, ]+\)$", re.MULTILINE)


def recall(prompt: str) -> dict[str, Any]:
    """Every question with a passage is answered."""
    return {"answered": [int(number) for number in RECALL_LINE.findall(without_signs(prompt))]}


def refinement(prompt: str) -> dict[str, Any]:
    """Every gap can be closed; another iteration is wanted while one remains."""
    gaps = [(match["id"], match["description"].strip()) for match in GAP_LINE.finditer(without_signs(prompt))]
    remaining = re.search(r"remaining: (\d+)", prompt)
    return {
        "gap_analysis": [
            {
                "gap_id": gap_id,
                "severity": "moderate",
                "addressable": True,
                "follow_up_queries": [{"query": f"more on {description[:200]}", "expected_contribution": "closes it"}],
            }
            for gap_id, description in gaps
        ],
        "iteration_recommendation": {
            "should_iterate": bool(gaps) and (remaining is None or int(remaining.group(1)) > 0),
            "rationale": "open gaps can be closed by searching" if gaps else "nothing is open",
            "priority_gaps": [gap_id for gap_id, _ in gaps[:3]],
        },
        "report_improvements": [],
    }


def reflection(_: str) -> dict[str, Any]:
    return {
        "action": "proceed",
        "rationale": "the figures are good enough for the next phase",
        "quality_assessment": {"score": 7, "strengths": ["evidence is quoted"], "weaknesses": []},
        "guidance": "",
    }
