"""What people and hooks ask for while a run goes on, by rules: what to leave out, to search for, to keep to. Pure.

Both engines obey exclusions, which must not depend on what a model makes of them. What no rule can obey is told to the
model if there is one, and is refused at once if there is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from contracts.exclusions import covers, find_addresses, tokens
from contracts.outcome import Guidance
from contracts.resolved import GuidanceWords, unpack_words
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind

MOST_SUBJECTS: Final = 10
LONGEST_SUBJECT: Final = 8
"""Words."""
MOST_EXCLUSIONS: Final = 50
NOT_OBEYED: Final = "not obeyed"
TOLD: Final = "told to the model"
SENTENCES: Final = re.compile(r"(?<=[.!?])\s+|;\s*|\n+")
QUOTES: Final = "\"'“”„‚‘’«»`"
REMEDY: Final = (
    "without a model a run can leave something out (“leave X out”), search for something (“look at X”) and keep to "
    "sources (“only from example.org”)"
)


@dataclass
class GuidanceReading:
    """What was understood, in the words of who said it."""

    left_out: list[str] = field(default_factory=list)
    only_from: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """What no rule can obey."""


def read_guidance(origin: str, text: str, state: ResearchState, *, for_planner: bool = False) -> Guidance:
    """The guidance with what is understood of it, and what is done with it; `for_planner`: the plan is made anew."""
    said = Guidance(origin=origin, phase=state.phase, text=text.strip()[:2_000])
    resolved = state.resolved
    if resolved is None or resolved.guidance_words is None:
        return said
    reading = read(said.text, unpack_words(resolved.guidance_words))
    asked = [subject for subject in reading.left_out if covers(" ".join(resolved.question_words), subject)]
    left_out = [subject for subject in reading.left_out if subject not in asked]
    room = max(0, MOST_EXCLUSIONS - len(state.exclusions))
    done = {
        "left out from here on": left_out[:room],
        "only sources from here are used from now on": reading.only_from,
        _how_searched(state, for_planner=for_planner): reading.look_at,
        "not left out, since the question itself asks for it": asked,
        f"not left out, since {MOST_EXCLUSIONS} exclusions are the most": left_out[room:],
    }
    by_model = resolved.engine is EngineKind.MODEL
    if by_model:
        done[TOLD] = [*done.get(TOLD, []), *reading.others]
    parts = [f"{what}: {_list(subjects)}" for what, subjects in done.items() if subjects]
    if not by_model and (reading.others or not parts):
        parts.append(f"{NOT_OBEYED}: {_list(reading.others) or 'nothing is understood of it'}: {REMEDY}")
    return said.model_copy(
        update={
            "left_out": left_out[:room],
            "only_from": reading.only_from,
            "look_at": reading.look_at,
            "answer": "; ".join(parts) or "told to the model as it is",
        }
    )


def _how_searched(state: ResearchState, *, for_planner: bool) -> str:
    if not state.plan.nodes or for_planner:
        # What a model plans nobody can promise.
        by_model = state.resolved is not None and state.resolved.engine is EngineKind.MODEL
        return TOLD if by_model else "searched for in the next phase"
    if state.resolved is not None and state.resolved.limits.max_steps:
        return "a step of its own, as far as one is left"
    last = state.resolved.limits.max_iterations if state.resolved else 1
    if state.iteration < last:
        return "searched for in the next iteration"
    return "stated as open, since no iteration is left to search for it"


def _list(subjects: list[str]) -> str:
    return ", ".join(f"“{subject}”" for subject in subjects)


def read(text: str, words: GuidanceWords) -> GuidanceReading:
    """What a text asks for, clause by clause; one in words that no rule knows is searched for as it is."""
    rules, reading = _rules(words.model_dump_json()), GuidanceReading()
    for sentence in SENTENCES.split(text):
        for clause in rules.clauses(sentence):
            rules.take(clause, reading)
    for subjects in (reading.left_out, reading.only_from, reading.look_at, reading.others):
        subjects[:] = list(dict.fromkeys(subjects))[:MOST_SUBJECTS]
    return reading


@lru_cache(maxsize=8)
def _rules(words_json: str) -> "_Rules":
    return _Rules(GuidanceWords.model_validate_json(words_json))


class _Rules:
    def __init__(self, words: GuidanceWords) -> None:
        self._ways = {
            name: [_pattern(way) for way in ways]
            for name, ways in words.model_dump(
                include={"leave_out", "not_from", "only_from", "look_at", "form"}
            ).items()
        }
        # A join begins a new clause only where a wish does.
        heads = [way.partition("~")[0].strip() for ways in words.model_dump().values() if isinstance(ways, list)
                 for way in ways]  # fmt: skip
        self._head = re.compile("|".join(rf"(?:{_spaced(head)})\b" for head in heads if _is_whole(head)), re.IGNORECASE)
        joins = rf"(?:{_spaced(words.joins)})\s+"
        self._joins = re.compile(rf"(,\s*(?:{joins})?|\s+{joins})", re.IGNORECASE)
        self._parts = re.compile(rf",\s*(?:(?:{words.parts})\s+)?|\s+(?:{words.parts})\s+|\s*&\s*", re.IGNORECASE)
        self._polite = re.compile(rf"(?:(?:{_spaced(words.polite)})\b[\s,]*)+", re.IGNORECASE)
        self._around = re.compile(rf"(?:(?:{_spaced(words.around)})\s+)+", re.IGNORECASE)
        self._behind = re.compile(rf"(?:[\s,]+(?:{_spaced(words.behind)}))+$", re.IGNORECASE)
        self._of_report = re.compile(rf"(?:{_spaced(words.of_report)})(?:\b.*)?", re.IGNORECASE)

    def clauses(self, sentence: str) -> Iterator[str]:
        """A sentence cut where another wish begins."""
        pieces = self._joins.split(" ".join(sentence.split()))
        clause = pieces[0]
        for join, piece in zip(pieces[1::2], pieces[2::2], strict=True):
            if self._head.match(self._plain(piece)):
                yield clause
                clause = piece
            else:
                clause += join + piece
        yield clause

    def _plain(self, clause: str) -> str:
        """A clause without what is polite about it."""
        return self._polite.sub("", clause.strip(" .,;:!?"), count=1) if self._polite.match(clause.strip()) else (
            clause.strip(" .,;:!?")
        )  # fmt: skip

    def take(self, clause: str, reading: GuidanceReading) -> None:
        """Add what a clause asks for to what is read already."""
        plain = self._plain(clause)
        if not tokens(plain):
            return
        for way in self._ways["only_from"] + self._ways["not_from"]:
            if (what := _what(way, plain)) is not None and (places := find_addresses(what)):
                (reading.only_from if way in self._ways["only_from"] else reading.left_out).extend(places)
                return
        for way in self._ways["leave_out"]:
            if (what := _what(way, plain)) is not None:
                self._leave_out(what, clause, reading)
                return
        if any(way.fullmatch(plain) for way in self._ways["form"]) and not any(
            (what := _what(way, plain)) and not self._is_of_report(what) for way in self._ways["look_at"]
        ):
            reading.others.append(plain)
            return
        for way in self._ways["look_at"]:
            if (what := _what(way, plain)) is not None:
                if self._is_of_report(what):
                    reading.others.append(plain)
                else:
                    reading.look_at.append(self._subject(what) or plain)
                return
        if self._is_of_report(plain):
            reading.others.append(plain)
        else:
            reading.look_at.append(f"{plain}?" if clause.rstrip(" !").endswith("?") else plain)

    def _leave_out(self, what: str, clause: str, reading: GuidanceReading) -> None:
        subjects = [self._subject(part) for part in self._parts.split(what)]
        known = [subject for subject in subjects if 0 < len(tokens(subject)) <= LONGEST_SUBJECT]
        if not known or self._is_of_report(self._subject(what)):
            reading.others.append(self._plain(clause))
        else:
            reading.left_out += known

    def _subject(self, what: str) -> str:
        """What a wish is about, without articles and the like."""
        bare = self._behind.sub("", what.strip(" .,;:!?" + QUOTES))
        found = self._around.match(bare)
        return (bare[found.end() :] if found else bare).strip(" .,;:!?" + QUOTES)

    def _is_of_report(self, what: str) -> bool:
        return self._of_report.fullmatch(what.strip(" .,;:!?" + QUOTES)) is not None


def _spaced(pattern: str) -> str:
    return pattern.replace(" ", r"\s+")


def _pattern(way: str) -> re.Pattern[str]:
    return re.compile(_spaced(way.replace("~", "(?P<what>.+?)")), re.IGNORECASE)


def _is_whole(head: str) -> bool:
    """Whether what stands before the subject is a pattern by itself."""
    return bool(head) and head.count("(") == head.count(")")


def _what(way: re.Pattern[str], clause: str) -> str | None:
    found = way.fullmatch(clause)
    return found["what"] if found else None
