"""What checkers answer, sensible and otherwise: pure functions of the prompt."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.model_work import FINDING_LINE, SENTENCE, question_of, told, without_signs

WORD = re.compile(r"\w+")
LONG_WORD = re.compile(r"\w{4,}")
ENOUGH, A_LITTLE = 0.6, 0.15
EMBROIDERY = re.compile("It is not true|nobody else would choose")
"""What a checker that can read sees in the sentences of `_embroidered`, and a comparison of words does not."""


@dataclass(frozen=True)
class Asked:
    """A statement of the prompt with its passages."""

    label: str
    text: str
    passages: list[str]
    remarks: list[str]
    """What a comparison of words asks about."""


def elements_of(prompt: str) -> list[tuple[str, list[str]]]:
    """Label and lines of every genuine statement, in order."""
    mark, plain = told(prompt)[0], without_signs(prompt)
    found = re.findall(rf'<statement-{mark} id="([^"]+)">\n(.*?)\n</statement-{mark}>', plain, re.DOTALL)
    shared = shared_passages(prompt)
    return [(label, [_whole(line, shared) for line in text.splitlines()]) for label, text in found]


def shared_passages(prompt: str) -> dict[str, str]:
    """The passages that several statements have, by their labels, each with what follows its label."""
    mark, plain = told(prompt)[0], without_signs(prompt)
    (text,) = re.findall(rf"<passages-{mark}>\n(.*?)\n</passages-{mark}>", plain, re.DOTALL) or [""]
    return {line.split()[0].rstrip(":"): line[len(line.split()[0].rstrip(":")) :] for line in text.splitlines()}


def _whole(line: str, shared: dict[str, str]) -> str:
    """The line of a passage with its text, where that stands once for several statements."""
    kind, _, label = line.partition(" ")
    if kind == "passage" and label in shared:
        return f"passage{shared[label]}"
    return f"{line}{shared[label]}" if kind in ("cited", "other") and label in shared else line


def sections_of(prompt: str) -> dict[str, list[str]]:
    """The sentences of the long parts of pages of a second look, by the label of the part."""
    mark, plain = told(prompt)[0], without_signs(prompt)
    found = re.findall(rf'<section-{mark} id="([^"]+)"[^>]*>\n(.*?)\n</section-{mark}>', plain, re.DOTALL)
    parts = ((label, re.split(r"\n\n|(?<=[.!?])\s", text)) for label, text in found)
    return {label: [" ".join(part.split()) for part in sentences if part.strip()] for label, sentences in parts}


def statements_of(prompt: str) -> list[Asked]:
    sections = sections_of(prompt)
    return [
        Asked(
            label,
            next(line for line in lines if line.startswith("statement: ")).removeprefix("statement: "),
            [
                line.partition("): " if line.startswith(("passage (", "other (")) else ": ")[2]
                for line in lines
                if line.startswith(("passage", "other"))
            ]
            + [
                part
                for line in lines
                if line.startswith("section ")
                for part in sections.get(line.removeprefix("section ").strip(), [])
            ],
            [line for line in lines if line.startswith("remark: ")],
        )
        for label, lines in elements_of(prompt)
    ]


def first_words(passages: list[str]) -> str:
    return " ".join(" ".join(passages).split()[:8])


def careful(prompt: str) -> dict[str, Any]:
    """Supported where most words stand in one of the passages, whose words are quoted, and no figure or name is strange."""
    return {"verdicts": [_judged(asked) for asked in statements_of(prompt)]}


def _judged(asked: Asked) -> dict[str, Any]:
    wanted = {word.lower() for word in WORD.findall(asked.text)}
    best = max(asked.passages, key=lambda line: len(wanted & {word.lower() for word in WORD.findall(line)}), default="")
    share = len(wanted & {word.lower() for word in WORD.findall(best)}) / max(1, len(wanted))
    supported = share >= ENOUGH and not asked.remarks and not EMBROIDERY.search(asked.text)
    verdict, reason = ("supported", "") if supported else ("unsupported", "The passages do not say it.")
    return {"claim": asked.label, "verdict": verdict, "quotes": [" ".join(best.split()[:12])], "reason": reason}


def _each(prompt: str, verdict: Any, **more: Any) -> list[dict[str, Any]]:
    return [
        {"claim": asked.label, "verdict": verdict, "quotes": [first_words(asked.passages)], "reason": "", **more}
        for asked in statements_of(prompt)
    ]


def _saying(verdict: Any, **more: Any) -> Callable[[str], str]:
    return lambda prompt: json.dumps({"verdicts": _each(prompt, verdict, **more)})


def _cut(prompt: str) -> str:
    whole = _saying("supported")(prompt)
    return whole[: whole.rfind('"quotes"')]


def _twice(prompt: str) -> str:
    return json.dumps({"verdicts": [*_each(prompt, "supported"), *_each(prompt, "unsupported")]})


def _numbered(prompt: str) -> str:
    items = _each(prompt, "supported")
    return json.dumps({"verdicts": [item | {"claim": place} for place, item in enumerate(items, 1)]})


DOUBTFUL = ("PARTIALLY SUPPORTED", "supported? no", "un-supported", "supported | unsupported", "nicht gestützt", "支持")
STUMBLING: dict[str, Callable[[str], str]] = {
    **{verdict: _saying(verdict) for verdict in DOUBTFUL},
    "a boolean": _saying(True),
    "a score": _saying(0.97),
    "a list": _saying(["supported"]),
    "null": _saying(None),
    "no quote": _saying("supported", quotes=[]),
    "an invented quote": _saying("supported", quotes=["as everybody in this field has known for years"]),
    "unknown ids": _saying("supported", claim="c-0000000000"),
    "numbers for ids": _numbered,
    "duplicate ids": _twice,
    "a verdict for all": lambda _: json.dumps(
        {"verdicts": [{"claim": "all", "verdict": "supported", "quotes": ["all"]}]}
    ),
    "a word instead of a list": lambda _: json.dumps({"verdicts": "supported"}),
    "cut": _cut,
    "prose with braces": lambda _: 'Supported! {"all": "supported"}',
}
"""Answers of which none says for certain that a statement is supported."""
lying = _saying("supported")
"""Everything is supported, with words of the passages for it."""


def believing(prompt: str) -> dict[str, Any]:
    """Everything is supported that shares a little with its passages, which a control does not."""
    return {"verdicts": [item | {"verdict": _believed(asked)} for item, asked in zip(
        _each(prompt, "supported"), statements_of(prompt), strict=True)]}  # fmt: skip


def _believed(asked: Asked) -> str:
    wanted, found = (
        {word.lower() for word in LONG_WORD.findall(text)} for text in (asked.text, " ".join(asked.passages))
    )
    return "supported" if not wanted or len(wanted & found) >= A_LITTLE * len(wanted) else "not_enough_information"


def correcting(prompt: str) -> dict[str, Any]:
    """Each statement becomes a sentence of one of its passages, a cited one where there is any."""
    proposals = []
    for label, lines in elements_of(prompt):
        named = [line for line in lines if re.match(r"(?:cited|other) ev-", line)]
        passages = [
            (line.split()[1].rstrip(":"), line.partition("): ")[2] or line.partition(": ")[2]) for line in named
        ]
        proposals.append(_rewritten(label, passages))
    return {"proposals": proposals}


def _rewritten(label: str, passages: list[tuple[str, str]]) -> dict[str, Any]:
    for passage, text in passages:
        sentences = [found.group() for line in text.splitlines() for found in SENTENCE.finditer(line)]
        if sentences:
            sentence = max(sentences, key=len)
            return {"claim": label, "action": "correct", "text": sentence, "passages": [passage], "reason": "as stored"}
    return {"claim": label, "action": "keep"}


def worsening(prompt: str) -> dict[str, Any]:
    """Each statement becomes one that no passage bears out, with all passages for it."""
    proposals = correcting(prompt)["proposals"]
    made_up = "Zyzzyva doubled its throughput to 99 TB per second in 1987."
    return {"proposals": [one | {"action": "correct", "text": made_up} for one in proposals]}


def reviewing(_: str) -> dict[str, Any]:
    return {
        "coverage": 8, "support": 8, "depth": 7, "readability": 8,
        "reasons": ["it answers what was asked"], "missing": [], "notes": [],
    }  # fmt: skip


def cited(prompt: str) -> list[tuple[str, str]]:
    """Statement and first marker of every finding of the prompt."""
    found = FINDING_LINE.finditer(without_signs(prompt))
    return [(match["statement"].strip().rstrip("."), match["markers"].partition("]")[0] + "]") for match in found]


def report_with(prompt: str, *lines: str) -> str:
    return "\n".join([f"# {question_of(prompt)}", "", "## Summary", "", *lines])


def embroidered_report(prompt: str) -> str:
    """A report of which every second statement says something else than its passage, one cites nothing."""
    found = cited(prompt)
    lines = [f"- {_embroidered(number, statement)} {marker}." for number, (statement, marker) in enumerate(found)]
    return report_with(
        prompt,
        *(f"{statement} {marker}." for statement, marker in found[:1]),
        "",
        "The market for such engines doubled to 40 billion dollars in 2019.",
        "",
        "## Details",
        "",
        *lines,
    )


def _embroidered(number: int, statement: str) -> str:
    figure = re.search(r"\d+", statement)
    if number % 4 == 1 and figure:
        return f"{statement[: figure.start()]}{int(figure[0]) * 7 + 3}{statement[figure.end() :]}"
    if number % 4 == 1:
        return f"It is not true that {statement[0].lower()}{statement[1:]}"
    if number % 4 == 2:
        words = statement.split()
        return " ".join(["In other words, and put in a way that nobody else would choose,", *words[len(words) // 2 :]])
    if number % 4 == 3:
        return f"{statement}, which Zyzzyva Incorporated confirmed"
    return statement


UNQUOTED = "The number of workers is limited by `autovacuum_max_workers`, whose default is 3"
"""A sentence of a page of the small corpus, which no finding quotes."""


def unquoted_report(prompt: str) -> str:
    """A report whose last statement is on a page that was read, and cites a passage of another one."""
    found = cited(prompt)
    lines = [f"- {statement} {marker}." for statement, marker in [*found, (UNQUOTED, found[0][1])]]
    return report_with(prompt, *lines)


def mixed_report(prompt: str) -> str:
    """A report with a page's statement in other words that cites another page, and with one that is made up."""
    marker = cited(prompt)[0][1]
    report = unquoted_report(prompt).replace(UNQUOTED, UNQUOTED.replace("number of workers is", "count of workers is"))
    return f"{report}\n- {UNQUOTED}, which Zyzzyva Incorporated confirmed {marker}."


def reworded_report(prompt: str) -> str:
    """A report that says what its passages say, in so many other words that rules cannot tell."""
    return report_with(prompt, *(f"- {_reworded(statement)} {marker}." for statement, marker in cited(prompt)))


def _reworded(statement: str) -> str:
    words = enumerate(statement.split())
    replaced = (word if place % 2 or word[:1].isupper() else "ebenbilde" for place, word in words)
    return "What is put forward here comes down to this: " + " ".join(replaced)


def embroidered_update(prompt: str) -> str:
    """An update of which each statement says something else than its passage, and names who confirmed it."""
    found = cited(prompt)
    lines = [f"{_embroidered(number + 2, statement)} {marker}." for number, (statement, marker) in enumerate(found)]
    return update_with(lines)


def fabricated_update(prompt: str) -> str:
    """An update of which no statement is that of its passage."""
    return update_with(
        [f"{statement}, which Zyzzyva Incorporated confirmed {marker}." for statement, marker in cited(prompt)]
    )


def update_with(lines: list[str], room: int = 700) -> str:
    """As many of the lines as have room."""
    text = lines[0]
    for line in lines[1:]:
        text += f" {line}" if len(text) + len(line) < room else ""
    return json.dumps({"operations": [{"kind": "append", "anchor": 0, "text": text}]})


def fabricated_report(prompt: str) -> str:
    """A report of which no statement is that of its passage."""
    found = cited(prompt)
    lines = (f"- {statement}, which Zyzzyva Incorporated confirmed {marker}." for statement, marker in found)
    return report_with(prompt, *lines)
