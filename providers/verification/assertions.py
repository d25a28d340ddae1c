"""Which sentences without a citation assert something, judged by their form.

An assertion says of the world that something is so. Not meant are questions, sentences that lead into a list, sentences
that lead the reader from one part to the next, and what a report says of itself: what it covers, how it came about,
what its sources do not tell. Where the form leaves it open, a sentence counts as an assertion: one that needs no source
costs the reader a glance, one that is not reported costs trust.
"""

import re
from typing import Final

from providers.verification.quantities import find_quantities

FEWEST_WORDS: Final = 3
FEWEST_WITHOUT_FULL_STOP: Final = 4
"""A shorter item of a list is a name or a label."""
TRANSITION_WORDS: Final = 14
"""A longer sentence says more than where to read on."""
WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
CLOSERS: Final = "\"'”’»“)]*_`"
FULL_STOPS: Final = (".", "!", "…", "。", "！")
QUESTION_MARKS: Final = ("?", "？", "؟")

OWN_PARTS: Final = (
    r"report|brief|briefing|summary|section|chapter|overview|review|answer|text|document|analysis|comparison|research"
)
DESCRIBES: Final = (
    r"covers?|describes?|examines?|compares?|summari[sz]es|discusses|presents?|reviews?|explores?|looks? (?:at|into)"
    r"|is (?:based|limited|structured|organi[sz]ed|divided|confined|restricted|written)|(?:was|were) (?:written|based)"
    r"|relies|draws|rests|quotes?|cites?|uses?|addresses|outlines?|focus(?:es)?|begins|starts|ends|deals|gives|provides?"
    r"|lists?|contains?|does not|do not|cannot|could not|did not|makes? no|has not|leaves?|sets? out|turns?"
)
"""Verbs that say what a text does. Not `shows`, `finds`, `concludes`: those bring assertions."""
ABOUT_ITSELF: Final = re.compile(
    rf"in (?:this|the following|the next) (?:{OWN_PARTS})s?,? we\b"
    rf"|(?:in )?(?:this|the (?:present|following|next|previous|preceding)|our) (?:{OWN_PARTS})s?,? (?:(?:also|then|only"
    rf"|mainly|therefore) )?(?:{DESCRIBES})\b(?! that\b)"
    r"|(?:dieser (?:bericht|abschnitt)|diese (?:zusammenfassung|übersicht|antwort)) (?:beschreibt|behandelt|stützt"
    r"|enthält|beruht|fasst|vergleicht|beantwortet|geht)\b"
    r"|(?:ce rapport|cette section|cette synthèse|ce résumé) (?:décrit|présente|compare|résume|repose|porte|traite"
    r"|examine|ne)\b"
    r"|(?:este informe|esta sección|este resumen) (?:describe|presenta|compara|resume|se basa|trata|examina|no)\b"
    r"|(?:questo rapporto|questa sezione|questo riassunto) (?:descrive|presenta|confronta|riassume|si basa|tratta)\b"
    r"|(?:este relatório|esta seção|este resumo) (?:descreve|apresenta|compara|resume|baseia-se|trata|não)\b"
    r"|(?:dit rapport|deze sectie|dit overzicht) (?:beschrijft|vergelijkt|behandelt|vat|berust|bevat|geeft)\b",
    re.IGNORECASE,
)
OUR_SOURCES: Final = (
    r"(?:sources?|passages?|documents?|findings|pages)"
    r"(?: (?:(?:that )?(?:was|were) )?(?:read|found|cited|gathered|collected|consulted|reviewed|examined|available"
    r"|given|provided|here|at hand|of this run))?"
)
TELLS: Final = (
    r"(?:say|name|give|mention|state|tell|answer|cover|address|report|specify|provide|contain|include|explain|describe"
    r"|discuss|agree on (?:when|how|what|who|which))"
)
MISSING: Final = (
    rf"(?:(?:do(?:es)?|did) not {TELLS}|(?:don't|doesn't|didn't) {TELLS}|(?:says?|said) nothing"
    r"|(?:is|are|was|were) silent|leaves? open)"
)
"""That sources do not tell something. Not that they do not `show` or `support` it: that is said of the world."""
WITHOUT_ANSWER: Final = re.compile(
    rf"(?:the|these|our|none of the|neither of the) (?:(?:available|cited|collected|gathered|consulted|reviewed"
    rf"|examined|retrieved|provided|given|two|three) )*{OUR_SOURCES} {MISSING}\b"
    r"|none of the (?:(?:available|cited|consulted|reviewed|examined|given) )*(?:sources|passages|documents|findings)\b"
    r"|no (?:source|passage|document|finding|page)s? (?:(?:that )?(?:was|were) )?(?:read|found|cited|gathered|consulted"
    r"|examined|available|at hand|of this run|here|names?|gives?|says?|states?|answers?|tells?|addresses|covers?"
    r"|mentions?|reports?)\b"
    r"|(?:i|we) (?:found no|did not find|could not (?:find|determine|verify|confirm|read)|cannot (?:say|tell|confirm)"
    r"|searched|looked|read|were unable|was unable|have not)\b"
    r"|(?:die|keine) (?:gelesenen |gefundenen )?quellen? (?:\w+ )?(?:nicht|keine?n?|nichts|nennt|nennen|gibt|sagt)\b"
    r"|aucune (?:source|des sources)\b|les sources (?:lues |citées |consultées )?ne \w+ (?:pas|rien)\b"
    r"|ninguna fuente\b|las fuentes no \w+|nessuna fonte\b|le fonti non \w+|nenhuma fonte\b|as fontes não \w+"
    r"|geen (?:enkele )?bron\b|de bronnen \w+ (?:niets?|geen)\b",
    re.IGNORECASE,
)
LEADS_ON: Final = re.compile(
    r"(?:let us|let's|see (?:also |below|above|section)|read on|more on (?:this|that)|(?:next|first|finally|now),? we\b"
    r"|we (?:now|first|next) (?:turn|look|go)|we (?:turn|look at)|turning (?:now )?to|the following (?:sections?"
    r"|points?|list|table|paragraphs?)|(?:below|above) (?:is|are|follow)|what follows|(?:here|these) (?:is|are) the\b"
    r"|siehe |im folgenden|nachfolgend|voir (?:aussi|ci-)|ci-dessous|véase|a continuación|vedi |di seguito|veja|zie )",
    re.IGNORECASE,
)
LIMITS: Final = re.compile(
    r"limitation|limits?\b|gaps?\b|open (?:questions|points|issues)|what (?:is|remains) (?:missing|open|unknown)|caveat"
    r"|method|grenzen|einschränkung|lücken|offene fragen|limites|lacunes|limitaciones|lagunas|limiti|lacune|limitações"
    r"|beperkingen|hiaten",
    re.IGNORECASE,
)
"""Headings of what a report says of its own limits."""
OPEN_POINT: Final = re.compile(
    r"\b(?:not|no|none|missing|lacks?|lacking|unclear|unknown|unresolved|unanswered|incomplete|limited|gaps?|remains?|needed"
    r"|cut short|ended early"
    r"|open|without|only|could|cannot|nicht|kein\w*|fehl\w+|unklar|offen|pas|aucun\w*|manqu\w+|falta\w*|ning\w+|manca\w*"
    r"|nessun\w*|não|nenhum\w*|niet|geen|ontbre\w+|disagree\w*|contradict\w*|widersprech\w*)\b",
    re.IGNORECASE,
)


def asserts(words: str, section: str = "", language: str = "en", *, leads: bool = False) -> bool:
    """Whether a sentence that cites nothing asserts something.

    `words` is its plain text, `section` the heading above it; `leads` says that a list or a quotation follows it.
    """
    bare = words.strip().rstrip(CLOSERS).rstrip()
    count = len(WORD.findall(bare))
    if count < FEWEST_WORDS or bare.endswith(QUESTION_MARKS):
        return False
    plain = bare.lstrip("\"'“„«(*_ ")
    figures = find_quantities(bare, language)
    if not bare.endswith(FULL_STOPS):
        if bare.endswith((":", "：")) and (leads or not figures):
            return False
        if count < FEWEST_WITHOUT_FULL_STOP and not figures:
            return False
    if ABOUT_ITSELF.match(plain) or WITHOUT_ANSWER.match(plain):
        return False
    if LEADS_ON.match(plain) and count <= TRANSITION_WORDS and not figures:
        return False
    return not (LIMITS.search(section) and OPEN_POINT.search(plain) and not figures)
