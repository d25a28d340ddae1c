"""The parts of an answer: what each looks for, and under which heading the brief shows it."""

import re
from dataclasses import dataclass
from typing import Final

from providers.extractive.lexicon import DENYING


@dataclass(frozen=True, slots=True)
class Facet:
    """One part of an answer."""

    name: str
    rationale: str
    pattern: re.Pattern[str]
    """What a sentence that serves this part tends to hold."""
    heading: str


def _facet(name: str, rationale: str, heading: str, pattern: str) -> Facet:
    return Facet(name, rationale, re.compile(pattern, re.IGNORECASE), heading)


_ALL = (
    _facet(
        "definition",
        "The words of the question have to be clear before anything else.",
        "What it is",
        r"\b(?:is|are)\s+(?:an?|the|called|known|defined)\b|\bmeans\b|\brefers?\s+to\b|\bprovides?\b"
        r"|\bconsists?\s+of\b"
        r"|\bstands\s+for\b|\bis\s+used\s+(?:to|for)\b|\ballows?\b|\bterm\b",
    ),
    _facet(
        "mechanism",
        "The answer rests on what is done, step by step.",
        "How it works",
        r"\bto\s+(?:prevent|avoid|ensure|guarantee|protect|make\s+sure|reclaim|allow|enable|solve)\b|\bensur\w+"
        r"|\bprevent\w*"
        r"|\bguarantee\w*|\bso\s+that\b|\bby\s+\w+ing\b|\bworks?\b|\bwhen(?:ever)?\b|\bautomatically\b|\bmust\b"
        r"|\bfirst\b"
        r"|\buses?\b|\bis\s+(?:written|stored|created|done|performed|marked|used)\b",
    ),
    _facet(
        "reason",
        "The question asks for reasons, so passages that state one come first.",
        "Reasons",
        r"\bbecause\b|\bsince\b|\breasons?\b|\bdue\s+to\b|\bin\s+order\s+to\b|\bso\s+that\b|\btherefore\b|\bcaused?\b"
        r"|\bresults?\s+(?:in|from)\b|\botherwise\b|\bfor\s+\w+\s+compatibility\b|\bhistorical\w*|\bdesign\w*",
    ),
    _facet(
        "problem",
        "What goes wrong without it shows why the answer matters.",
        "What the problem is",
        r"\bproblems?\b|\brisks?\b|\bdanger\w*|\bloss\b|\blost\b|\bcorrupt\w*|\bfail\w*|\bwould\s+\w+|\bcannot\b"
        r"|\bsuffer\b|\bconflict\w*",
    ),
    _facet(
        "settings",
        "Settings and their values decide how it behaves in practice.",
        "Settings and thresholds",
        r"\bdefaults?\b|\bparameters?\b|\bsettings?\b|\boptions?\b|\bset\s+to\b|\bpragma\b|\bconfigur\w+"
        r"|\bthresholds?\b"
        r"|\bmaximum\b|\bminimum\b|\blimits?\b|\b\w+_\w+_?\w*\b|\b\d[\d,.]*\b|--\w+",
    ),
    _facet(
        "failure",
        "A reader needs to know what happens when it does not work.",
        "If it fails",
        r"\berrors?\b|\bfail\w*|\bwarnings?\b|\brefuse\w*|\babort\w*|\bshut\s*down\b|\brecover\w*|\brestor\w+"
        r"|\bcrash\w*|\bcorrupt\w*"
        r"|\brolled?\s*back\b|\bHINT\b|\bretry\b|\bSQLITE_\w+\b",
    ),
    _facet(
        "check",
        "A reader wants to see for themselves how things stand.",
        "What to check",
        r"\bchecks?\b|\bmonitor\w*|\bverif\w+|\bexamin\w+|\binspect\w*|\bviews?\b|\bquer(?:y|ies)\b.{0,40}\b(?:show"
        r"|see|find)|\breports?\b"
        r"|\bshows?\b|\bdisplay\w*|\blog(?:s|ged)?\b|\bstatistics\b|\bdetermine\b|\bdiagnos\w+",
    ),
    _facet(
        "limits",
        "Exceptions can turn an answer round, so they are looked for on purpose.",
        "Limits and exceptions",
        r"\bnot\b|\bonly\b|\bcannot\b|\bexcept\w*|\blimit\w*|\brestrict\w*|\bunless\b|\bdoes\s+not\b|\bmust\b"
        r"|\bnever\b|\bhowever\b",
    ),
    _facet(
        "version",
        "What holds may have changed between versions.",
        "Version notes",
        r"\b(?:version|release)s?\s+v?\d|\bsince\s+(?:version|release|v?\d)|\bas\s+of\s+(?:version|\w+\s+\d)"
        r"|\b(?:prior\s+to|before)\s+(?:version|v?\d)"
        r"|\bdeprecated\b|\bobsolete\b|\bno\s+longer\b|\b(?:beginning|starting)\s+with\b|\bintroduced\b"
        r"|\badded\s+in\b|\bremoved\s+in\b"
        r"|\b(?:older|earlier|previous|newer)\s+(?:versions?|releases?)\b",
    ),
    _facet(
        "items",
        "The question asks for a list, so passages that enumerate come first.",
        "The items",
        r"\b(?:following|several|various|two|three|four|five|six|seven|eight|nine|ten)\b|:\s|,\s\w+,?\s(?:and|or)\s"
        r"|\bone\s+of\b|\btypes?\b|\bkinds?\b"
        r"|\bincludes?\b|\bsuch\s+as\b|^\|",
    ),
    _facet(
        "comparison",
        "Passages that speak of both sides at once answer most directly.",
        "Side by side",
        r"\bdifferences?\b|\bdiffers?\b|\bunlike\b|\bwhereas\b|\bwhile\b|\bthan\b|\bcompared\b|\binstead\b|\bboth\b"
        r"|\bcontrast\b|\bhowever\b|\bwithout\b"
        r"|\bonly\b|\bbut\b|\badvantages?\b|\bdisadvantages?\b|\bsimilar\b",
    ),
    _facet(
        "steps",
        "The question asks how to do it, so instructions come first.",
        "How to do it",
        r"\bto\s+\w+\b.{0,60}\b(?:use|run|set|call|issue|execute|invoke|specify|create|add)\b|\buse(?:d|s)?\b"
        r"|\brun(?:ning)?\b|\bcommands?\b|\bstatements?\b"
        r"|\bcan\s+be\b|\bspecif(?:y|ied)\b|\bexecut\w+|\binvok\w+|\bcall(?:ed|ing)?\b|\bmust\b|\bshould\b"
        r"|\bset(?:ting)?\b|\benable\w*",
    ),
    _facet(
        "fact",
        "The question as it stands finds the passages that answer it directly.",
        "What the documents say",
        r"\bis\b|\bare\b|\bdefault\w*|\bmaximum\b|\bcan\b|\bmust\b|\b\d[\d,.]*\b",
    ),
    _facet(
        "guidance",
        "Asked for by guidance given to this run.",
        "Asked for by guidance",
        r"\b\w",
    ),
)

STRONG: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "mechanism": r"\b(?:to|in\s+order\s+to)\s+(?:prevent|avoid|ensure|guarantee|protect|make\s+sure|guard|solve"
        r"|overcome)\b|\bensures?\b|\bprevents?\b"
        r"|\bguarantees?\b|\bprotects?\b|\bworks?\s+by\b|\bso\s+that\b|\bis\s+necessary\s+to\b|\bautomatically\b",
        "reason": r"\bbecause\b|\breasons?\b|\bin\s+order\s+to\b|\bdue\s+to\b|\bthe\s+purpose\b|\botherwise\b"
        r"|\bfor\s+\w+\s+compatibility\b|\bso\s+that\b",
        "quantity": r"\b(?:is|are|of|to|than|most|least|about|only|default\w*|maximum|limit|every|after|by|exactly"
        r"|approximately|around|=)\s+[(“\"]?\d|\|\s*\d|\b\d(?:[\d,.]*\d)?\s+[a-z]|\d\s?[kMGT]?B\b|\bunlimited\b|\bno\s+(?:fixed\s+|upper\s+)?limit\b",
        "definition": r"\b[A-Z]{3,}\s*\(\w+\s|\([A-Z]{3,}\)|^[^,.;:]{0,70}\b(?:is|are)\s+(?:an?|the|called"
        r"|used\s+to)\b|\bstands\s+for\b|\brefers\s+to\b|\bis\s+known\s+as\b|\bmeans\s+that\b",
        "items": r"\bfollowing\b|:(?:\s*+\w[\w\s-]*+,){2}|(?:\b[\w\s-]{1,25},\s*+){2}(?:and|or)\s|\b(?:two|three"
        r"|four|five|six|seven|eight|nine|ten|several)\s+(?:\w+\s+){0,3}"
        r"(?:types|kinds|modes|levels|methods|options|ways|classes|forms|states|values)\b",
        "comparison": r"\bunlike\b|\bwhereas\b|\bthan\b|\bdiffer\w*\b|\bin\s+contrast\b|\b(?:dis)?advantages?\b"
        r"|\binstead\s+of\b|\bwhile\b|\bboth\b",
        "contrast": r"\bunlike\b|\bwhereas\b|\bthan\b|\bdiffers?\b|\bdifferen(?:t|ce)\b|\bin\s+contrast\b"
        r"|\binstead\s+of\b",
        "steps": r"\bto\s+\w+\b[^.]{0,80},\s*(?:use|run|set|call|issue|execute|invoke|specify|create|add|you"
        r"|the\s+application)\b|\b(?:must|should|can)\s+be\s+(?:set|enabled|created|run|used|called|done)\b"
        r"|^(?:use|run|set|call|create|add|execute|issue|start|edit|copy|restore)\b|\bby\s+(?:using|running|setting"
        r"|calling|executing|issuing)\b|\benabled?\b",
        "fact": r"\b\d[\d,.]*\b|\bdefaults?\b|\bmaximum\b|\bminimum\b|\bat\s+(?:most|least)\b",
    }.items()
}
"""Wording that answers the main facet of a question outright."""

FACETS: Final[dict[str, Facet]] = {facet.name: facet for facet in _ALL}

_NEEDED: Final[dict[str, re.Pattern[str]]] = {
    "settings": re.compile(
        r"\bdefault|\bparameter|\bsetting|\boption|\bconfigur|\bpragma\b|\bset\s+to\b|\bthreshold|\w_\w|^\W*--\w",
        re.IGNORECASE,
    ),
    "limits": DENYING,
}
"""Where the wording that finds passages is too wide to tell where they belong."""


def serves(name: str, text: str) -> bool:
    """Whether a passage has any wording of a facet, so that it may stand under its heading."""
    facet = FACETS.get(name)
    return facet is None or bool(_NEEDED.get(name, facet.pattern).search(text))


ENTITY_PREFIX: Final = "entity:"

QUALIFICATION: Final = "qualification"


def facet_named(name: str) -> Facet:
    """The facet of a sub-query; a model's free text or an entity falls back to the plain one."""
    if name.startswith(ENTITY_PREFIX):
        return FACETS["definition"]
    return FACETS.get(name, FACETS["fact"])
