"""Word lists: which words only frame a question, which stand for each other, which open a sentence that leans."""

import re
from collections.abc import Iterable

from providers.text import stem

QUESTION_OPENERS = frozenset(
    """what which who whom whose when where why how is are was were do does did can could should would will may might
    has have had if in on at for from with without under between compare explain describe list name give tell show
    summarise summarize please i the a an to does""".split()
)

_GROUPS = """
prevent avoid protect guard
require need necessary mandatory
delete remove drop erase purge discard
maximum limit largest most upper
minimum least smallest lower
start begin launch startup initiate
stop shutdown halt terminate end
create make build construct generate
change modify alter update edit
enable activate activated on
disable disabled deactivate off
fail failure error crash broken
corrupt corruption damage damaged
fast faster speed performance quick
slow slower delay latency
store save keep stored
recover restore recovery repair
reclaim free recover release
copy duplicate clone
simultaneous concurrent parallel simultaneously
allow permit
forbid prohibit disallow refuse reject
default defaults
size bytes length
compare difference unlike
several multiple many
show display print list view see
run execute invoke
get obtain fetch retrieve
send deliver transmit
mail message email e-mail
directory folder
test testing
user role account
big large
encrypt encryption encrypted
compress compression compressed
replicate replication replica standby
connect connection
lock locking locked
backup dump
verify check validate
count number
memory ram
disk file storage
setting parameter option configuration configure
""".strip()


def _relate(groups: Iterable[str]) -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for group in groups:
        keys = {stem(word) for word in group.split()}
        for key in keys:
            table.setdefault(key, set()).update(keys - {key})
    return {key: frozenset(others) for key, others in table.items()}


RELATED = _relate(_GROUPS.splitlines())
"""English stem → stems that may stand for it, at reduced credit."""

_LEANING = r"""
    it(?!(?:['’]s|\s+(?:is|was|may\s+be|might\s+be|can\s+be))\s+(?:\w+\s+)?\w+\s+(?:to|that|for)\b)
  | its | this(?!\s+(?:section|chapter|page|document|appendix|article)\b) | these | those | they | their | them | such
  | that(?!\s+is\s+why) | he | she | his | her
  | however | but | and | or | so | yet | nor
  | therefore | thus | hence | consequently | accordingly | moreover | furthermore | additionally | besides
  | in\s+addition | nevertheless | nonetheless | otherwise | instead | conversely | similarly | likewise | also
  | each\s+(?:is|are|has|can|may|must|will|also|takes?|gets?|of)
  | (?:about|at|beneath|beside|besides|between|despite|during|from|into|like|of|on|over|through|to|under|until|upon
  |where|within|without|on\s+top\s+of|apart\s+from|instead\s+of)\s+(?:this|that|these|those|it|them)\b
  (?!\s+(?:page|section|chapter|document|article|appendix)\b)
  | \w{2,14}ing\s+(?:this|that|these|those|it|them|so)\b
  | (?:(?:do\s+not|don['’]t|never|always)\s+)?(?:use|see|set|call|run|read|try|rely\s+on|confuse|change|avoid|delete)
  \s+(?:it|them|this|these|those)\b
  | as\s+a\s+(?:result|consequence) | for\s+(?:this|that|these|those|example|instance|more\s+information)
  | in\s+(?:this|that|these|those|such|contrast|both|either|other|each|all\s+(?:of\s+)?(?:these|those)
  |the\s+(?:above|former|latter|first|second|same|latter))
  | on\s+the\s+other\s+hand | on\s+the\s+contrary | to\s+(?:do|avoid|prevent|fix|solve|handle)\s+(?:this|that|so|it
  |these)
  | because\s+of\s+(?:this|that|these) | due\s+to\s+(?:this|that|these) | by\s+(?:this|that|doing) | with\s+(?:this
  |that|these|such)
  | after\s+(?:this|that|these|which) | before\s+(?:this|that|these|then) | at\s+(?:this|that)\s+point
  | once\s+(?:this|that|it|they)\b
  | if\s+(?:so|not|it|they|this|that|these|those|one\s+of\s+(?:these|those|them))\b | when\s+(?:this|that|it|they
  |these|those)\b
  | while\s+(?:this|that|it|they)\b | since\s+(?:this|that|it|they)\b | as\s+(?:this|that|it|they|such)\b
  | unlike\s+(?:this|that|these)\b
  | then | there(?:by|fore|fter|after) | here | again | still | likewise | conversely | meanwhile | afterwards?
  | the\s+(?:former|latter|above|following|same|other|others|second|third|next|previous|rest|result|latter's
  |first\s+of)\b
  | both(?!\s+\w+\s+and\b) | neither | either | another | one\s+(?:such|of\s+(?:these|those|them)|is|way|reason
  |exception)\b
  | some\s+of\s+(?:these|those|them) | (?:all|each|most|many|any|none|several)\s+of\s+(?:these|those|them|which)\b
  | others?\b
  | second(?:ly)? | third(?:ly)? | finally | next | lastly | first(?:ly)?,
  | (?:see|refer\s+to)\b | yes | no, | note\s+that\s+(?:it|this|these|they|that)\b | (?:as\s+)?(?:shown|described
  |mentioned|noted|explained|discussed)\s+(?:above|below|earlier|previously)
  | which | who | whose | because\b | (?:above|below)\b | even\s+(?:so|then|though\s+(?:this|it|they))
  | even\s+if\s+(?:this|it|they|that)
"""
_PRONOUN_LATER = r"[\w\s-]{3,45},\s+(?:this|these|those|they|it(?!\s+is\s+\w+\s+(?:to|that)\b))"
LEANING = re.compile(rf"^[\s(“\"'*_]*(?:{_LEANING}|{_PRONOUN_LATER})\b", re.IGNORECASE | re.VERBOSE)
"""A sentence with such an opening means nothing without the one before it."""

JOINING = re.compile(
    r"^[\s(“\"'*_]*(?:finally|lastly|also|additionally|in\s+addition|moreover|furthermore|another\s+(?!such|one)\w+"
    r"|next|first(?:ly)?|second(?:ly)?|third(?:ly)?)\b,?(?!\s+(?:it|they|this|these|that|those|he|she|the\s+(?:same|other))\b)",
    re.IGNORECASE,
)
"""An opening that only adds to what was said: at the head of a paragraph such a sentence stands by itself."""

OF_THE_TEXT = re.compile(
    r"\b(?:described|discussed|shown|listed|explained|covered|summari[sz]ed|detailed)\s+(?:further\s+)?(?:above|below|later|elsewhere"
    r"|in\s+(?:the\s+)?(?:next|following|later|previous|section|chapter|table|figure|appendix|more\s+detail))"
    r"|\b(?:this|the\s+(?:next|following|previous))\s+(?:section|chapter|chart|figure|table|page|document|appendix|diagram|example)s?\b"
    r"|^(?:do\s+not|don['’]t)\s+confuse\b|\bsee\s+(?:also|section|chapter)\b",
    re.IGNORECASE,
)
"""A sentence about the text itself: it says where an answer stands, not what it is."""

HYPOTHETICAL = re.compile(
    r"\b(?:possible\s+(?:improvement|extension|enhancement)s?|future\s+(?:work|improvements?|versions?|releases?|extensions?)"
    r"|not\s+yet\s+implemented|could\s+be\s+improved|to-?do\b|we\s+(?:saw|have\s+seen)\s+earlier)",
    re.IGNORECASE,
)
"""A sentence about what is not so, or not yet."""

BESIDE_OPENING = re.compile(
    r"^[\s(“\"'*_]*(?:unlike|as\s+with|just\s+like|similar\s+to|in\s+contrast\s+to|apart\s+from|aside\s+from|besides)\b",
    re.IGNORECASE,
)
"""A sentence that names something only to speak of something else."""

SELF_NAMED = re.compile(
    r"^[\s(“\"'*_]*this\s+(?:command|option|function|method|class|module|parameter|setting|variable|macro|statement|interface"
    r"|routine|utility|program|extension|package|field|attribute|property|operator|type|view|table|catalog|tool|library|file)\b",
    re.IGNORECASE,
)
"""At the head of a section such words mean what its heading names."""

AT_HEADING = re.compile(
    r"^[\s(“\"'*_«„¿]*(?:it|its|this|these|they|their|er|sie|es|dies\w{0,2}|il|elle|ils|elles|cela|ceci|ce|cette|ces|él|ella|ellos|ellas"
    r"|est[aeo]s?|es[ao]s?|ess[aeio]|quest[aeio]|ele|ela|eles|elas|isto|isso|hij|zij|ze|dit|deze|dat)\b(?!\s+(?:also|too|auch|aussi|también|anche|também|ook)\b)",
    re.IGNORECASE,
)
"""At the head of a section such a word means what its heading names, and the heading is shown."""

PERSONAL = re.compile(
    r"^[\s(“\"'*_«„¿]*(?:it|its|they|their|he|she|his|her|er|sie|es|il|elle|ils|elles|él|ella|ellos|ellas|ele|ela|eles|elas"
    r"|hij|zij|ze|het|egli|essa|esso|lui|lei)\b",
    re.IGNORECASE,
)
"""At the head of a sentence such a word means what the one before speaks of; `this` may mean all that it says."""

CORRECTING = re.compile(
    r"""^[\s(“"'*_]*(?:however|but|contrary\s+to|nevertheless|nonetheless|unfortunately|conversely|on\s+the\s+(?:other\s+hand|contrary)
    |except|the\s+(?:only\s+)?exceptions?|one\s+exception|this\s+is\s+not|this\s+does\s+not|that\s+is\s+not
    |these\s+are\s+not|it\s+is\s+not
    |(?:this|these|that)\s+(?:is|are|does|do|has|have)\s+no|prior\s+to|before\s+version|in\s+(?:older|earlier
    |previous)\s+(?:versions?|releases?)|yet\s
    |(?:beginning|starting)\s+with\s+version|actually|in\s+fact|unless|only\s+if|still,|note\s+(?:that|however)|
    (?:this|these)\s+(?:restriction|limitation|rule|guarantee)s?\s+(?:does|do|is|are)\s+not)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""A sentence that corrects the one before it: neither may be quoted alone."""

DENYING = re.compile(
    r"""\b(?:not|never|cannot|can't|doesn't|don't|isn't|aren't|won't|no\s+longer|only|unless|disabled\s+by\s+default|off\s+by\s+default
    |(?:is|are)\s+treated\s+as|contrary\s+to|rather\s+than|instead\s+of|should\s+be\s+avoided|deprecated|obsolete
    |unsupported|misnomer
    |(?:has|have|is|are)\s+no|there\s+(?:is|are)\s+no|except|despite|nor)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words with which a sentence denies or narrows something."""

ASIDE_OPENING = re.compile(r"^(?:\(|(?:note|tip|hint)\b)", re.IGNORECASE)
"""A sentence in brackets or a remark: seldom the answer itself."""

PAST = re.compile(
    r"\b(?:in|for|with|before|prior\s+to)\s+(?:(?:\w+\s+)?(?:older|earlier|previous)\s+(?:versions?|releases?)"
    r"|(?:\w+\s+)?version\s+\d)|^before\s+\d",
    re.IGNORECASE,
)
"""A sentence about what was once so."""

POINTING = re.compile(
    r"\b(?:at|by)\s+this\s+(?:point|stage|time|step)\b|\b(?:in|for|of|under|with)\s+(?:this|that|such|these|those)\s+(?:\w+\s+)?(?:scenarios?|cases?|situations?|circumstances)\b",
    re.IGNORECASE,
)
"""A sentence that points at circumstances told before it."""
