"""The clarifier: what in a question can be taken in several ways, by rules; it asks only what it can name."""

import re
from typing import Final

from contracts.plan import MOST_QUESTIONS
from contracts.roles import ClarifierAnswer, ClarifyInput
from providers.extractive.question import read_question
from providers.extractive.question_terms import key_words

MEANINGS: Final[dict[str, dict[str, str]]] = {
    "python": {
        "the programming language": "code program programming language library package module function",
        "the snake": "snake snakes species animal habitat prey venom eggs",
    },
    "java": {
        "the programming language": "code program programming language jvm class library garbage",
        "the island": "island indonesia jakarta volcano population",
    },
    "mercury": {
        "the planet": "planet orbit sun nasa astronomy crater solar",
        "the metal": "metal element toxic poisoning thermometer fish chemistry",
    },
    "jaguar": {
        "the animal": "animal cat species habitat prey rainforest",
        "the make of cars": "car cars model engine electric brand",
    },
    "apple": {
        "the company": "company iphone mac ios revenue shares ceo software",
        "the fruit": "fruit tree orchard cider variety varieties harvest",
    },
    "amazon": {
        "the company": "company aws cloud delivery warehouse revenue prime",
        "the river or its forest": "river forest rainforest basin brazil deforestation",
    },
    "bank": {
        "an institution that keeps money": "money account loan credit interest central deposit",
        "the side of a river": "river water erosion stream flood",
    },
    "crane": {
        "the machine": "machine building construction lift load tower",
        "the bird": "bird birds species nest migration",
    },
    "rust": {
        "the programming language": "code program programming language memory borrow cargo compiler",
        "the corrosion of iron": "iron steel corrosion metal paint oxide",
    },
}
"""A word → its meanings, each with words that decide for it."""

_UNNAMED: Final = re.compile(
    r"\b(?:does|do|did|is|are|was|were|can|could|should|will|would|about|of|with|for|use|using)\s++(?P<word>it|this|that|they|them|these|those)\b"
    r"(?!\s++(?:possible|true|true\s++that|better|necessary|safe|worth|mean|means))",
    re.IGNORECASE,
)
_WITHOUT_MEASURE: Final = re.compile(r"\b(?:best|better|worst|top|ideal|recommended)\b", re.IGNORECASE)
_MEASURE: Final = re.compile(
    r"\b(?:for|to|in\s++terms\s++of|by|at|when|because|than|performance|price|cost|speed|accuracy|quality|reliability)\b",
    re.IGNORECASE,
)
FEWEST_WORDS: Final = 2


def clarify(task: ClarifyInput) -> ClarifierAnswer:
    """Questions for what the rules find; nothing once a person was asked."""
    if task.rounds:
        return ClarifierAnswer(clear=True, reason="the person was asked, and the run goes by the answers")
    words = key_words(task.query, task.language)
    found = [*_unnamed(task), *_meanings(task, words), *_measure(task)] or _too_short(task, words)
    if found:
        return ClarifierAnswer(
            clear=False, questions=found[:MOST_QUESTIONS], reason="the question can be taken in more ways than one"
        )
    if task.required:
        subject = " ".join(words[:8]) or task.query[:100]
        asked = f"The research is about “{subject}”: is there anything that must be in it, or be left out?"
        return ClarifierAnswer(clear=False, questions=[asked], reason="the request wants a person to be asked")
    return ClarifierAnswer(clear=True, reason="it names what it is about and what it asks")


def _unnamed(task: ClarifyInput) -> list[str]:
    """A pronoun that stands for the subject, where nothing before it names one."""
    match = _UNNAMED.search(task.query)
    if match is None or task.context or key_words(task.query[: match.start()], task.language):
        return []
    return [f"What does “{match['word']}” stand for in the question?"]


def _meanings(task: ClarifyInput, words: list[str]) -> list[str]:
    """A word with several meanings that no other word of the question decides."""
    present = {word.casefold().removesuffix("s") for word in words} | {word.casefold() for word in words}
    context = {word.casefold() for turn in task.context for word in key_words(turn.question, task.language)}
    asked = []
    for word, meanings in MEANINGS.items():
        if word in present and not any((present | context) & set(deciding.split()) for deciding in meanings.values()):
            told = " or ".join(meanings)
            asked.append(f"“{word.capitalize()}” means several things: {told}?")
    return asked


def _too_short(task: ClarifyInput, words: list[str]) -> list[str]:
    """A subject without anything that is asked of it."""
    plain = read_question(task.query, task.language)
    asks = "?" in task.query or plain.main_facet != "fact"
    if len(words) >= FEWEST_WORDS or (asks and words) or task.context:
        return []
    subject = words[0] if words else task.query.strip()[:60]
    return [f"What do you want to know about “{subject}”?"]


def _measure(task: ClarifyInput) -> list[str]:
    """A comparison that does not say by what."""
    match = _WITHOUT_MEASURE.search(task.query)
    if match is None or _MEASURE.search(task.query) or task.context:
        return []
    return [f"By what is “{match[0].casefold()}” to be judged: price, speed, reliability, or something else?"]
