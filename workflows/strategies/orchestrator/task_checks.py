"""Whether a task can be understood by somebody who knows nothing but the task. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from contracts.addresses import normalized_text
from workflows.rules.query_matching import WORD, same_query

FEWEST_CHARACTERS: Final = 12
FEWEST_WORDS: Final = 3
MOST_CHARACTERS: Final = 4_000
REFERENCES: Final = re.compile(
    r"\b(?:the\s++(?:user|asker|person\s++asking)(?:'s|’s)?\b"
    r"|(?:the|this|my|our)\s++(?:original\s++|overall\s++|main\s++|research\s++)?(?:question|query|plan|request)\b"
    r"(?!\s++(?:of|for|by|from|in|to|that|which|whether|how|why|mark|planner)\b)"
    r"|(?:step|part|item|point)\s++(?:\d++|one|two|three|four|five|six)\b(?:\s++of\s++the\s++plan)?+"
    r"|(?:the\s++)?(?:previous|earlier|other|last|first|second|third)\s++(?:agents?|tasks?|reports?|findings?)\b"
    r"|agent-\d++|as\s++(?:discussed|mentioned|described|found|said)\s++(?:above|before|earlier)"
    r"|(?:mentioned|listed|described)\s++above|the\s++above)",
    re.IGNORECASE,
)
"""Words that point to what an agent does not know."""
OTHER_REFERENCES: Final = re.compile(
    r"\b(?:(?:schritt|étape|paso|passo|stap)\s++\d++"
    r"|(?:die|der|diese|dieser|unsere|meine)\s++(?:ursprüngliche|eigentliche)n?\s++frage\b"
    r"|(?:la|cette|notre)\s++question\s++(?:initiale|posée|d['’]origine)\b|la\s++pregunta\s++(?:original|inicial)\b"
    r"|a\s++pergunta\s++(?:original|inicial)\b|la\s++domanda\s++(?:originale|iniziale)\b"
    r"|de\s++oorspronkelijke\s++vraag\b"
    r"|(?:der|dem|den|die|des)\s++(?:andere|vorige|erste|letzte)[nrs]?\s++agent(?:en|s)?\b"
    r"|(?:l['’]autre|l['’]altro|el\s++otro|o\s++outro|de\s++andere)\s++agente?\b"
    r"|(?:oben|zuvor)\s++(?:genannt|erwähnt|beschrieben)\w*+|mentionnée?s?\s++(?:ci-dessus|plus\s++haut)"
    r"|(?:mencionad|citad)[oa]s?\s++(?:arriba|anteriormente|acima)|(?:menzionat|citat)[aeio]\s++sopra"
    r"|bovengenoemde?\b)",
    re.IGNORECASE,
)
"""The same in German, French, Spanish, Portuguese, Italian and Dutch, as far as it can mean nothing else."""
DANGLING: Final = re.compile(
    r"^\W*+(?:what|how|why|when|where|who|which|find\s++out|research|look\s++up|explain|describe|compare)?"
    r"(?:\s++(?:about|is|are|was|were|does|do|did|if|whether|that))*+\s*+"
    r"\b(?:it|its|they|them|their|this|these|those|he|she|his|her)\b(?!\s++(?:is\s++)?(?:possible|true|necessary)"
    r"|\s++(?:mean|take|cost|matter|help|happen|make\s++sense)s?\s++(?:\w++\s++){0,3}?(?:to|that|if|when|whether|for)\b)",
    re.IGNORECASE,
)
"""A task that begins with a pronoun, which then stands for something outside it: “what does it cost?”, but not “what
does it mean that a row is frozen?”, whose sentence says what it stands for."""


def problem_of(task: str) -> str:
    """Why a task does not stand by itself, and what to write instead; empty for one that does."""
    text = " ".join(task.split())
    words = WORD.findall(text)
    # A script without spaces says much in few words.
    if (len(text) < FEWEST_CHARACTERS and text.isascii()) or not words:
        return "task: too short to be understood; name the subject and what is to be found out about it"
    if text.isascii() and len(words) < FEWEST_WORDS:
        return f"task: fewer than {FEWEST_WORDS} words; name the subject and what is to be found out about it"
    if len(text) > MOST_CHARACTERS:
        return f"task: longer than {MOST_CHARACTERS} characters; send several agents with a part each"
    if pointing := REFERENCES.search(text) or OTHER_REFERENCES.search(text):
        return (
            f"task: “{pointing[0]}” means nothing to an agent, which knows only its task; "
            "write what it stands for in its place"
        )
    if dangling := DANGLING.match(text):
        word = dangling[0].split()[-1]
        return f"task: “{word}” has nothing in the task to stand for; name the thing itself"
    return ""


def repeated_by(task: str, earlier: Sequence[tuple[str, str]]) -> str:
    """The id of the first of earlier agents (id, task) that had the same task; empty where none had."""
    for name, text in earlier:
        if normalized_text(text) == normalized_text(task) or same_query(text, task):
            return name
    return ""
