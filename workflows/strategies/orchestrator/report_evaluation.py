"""What is lacking in an agent's report, by rules: shallow, weakly supported, silent on a part of its task. Pure."""

from collections.abc import Sequence
from typing import Final

from contracts.evidence import Finding
from contracts.texts import plural
from workflows.rules.query_matching import DECIDES, SAYS_NOTHING, WORD
from workflows.strategies.orchestrator.agent_reports import UNSURE

FEWEST_FINDINGS: Final = 3
FEWEST_SOURCES: Final = 2
NAMED: Final = 5
SHORT: Final = 4
"""Words of fewer letters say little of what a task is about."""
ASKS: Final = frozenset(
    """about also answer any aspects between can compare comparing consider could current describe details
    determine does each evidence exact explain figures find focus from give identify important include
    including information into known latest list look looking main major may might must name need needed
    number numbers often other over overview possible provide recent report research settings shall should
    since some source sources specific state such summarise summarize than that their there these thing things
    this used uses using various well what when where whether which while will with work working works would""".split()
)
"""Words in which a task is given rather than what it is about."""
STEM: Final = 5


def remarks_on(task: str, findings: Sequence[Finding], left_out: int = 0) -> list[str]:
    """What an orchestrator is to know of a report before it relies on it; empty where nothing stands out."""
    if not findings:
        return ["nothing was found"]
    remarks = []
    if len(findings) < FEWEST_FINDINGS:
        remarks.append(f"shallow: {plural(len(findings), 'finding')}")
    sources = {source for finding in findings for source in finding.source_ids}
    if len(sources) < FEWEST_SOURCES:
        remarks.append("one source alone says all of it")
    unsupported = [finding for finding in findings if not finding.evidence_ids]
    if unsupported:
        remarks.append(f"uncited: {plural(len(unsupported), 'statement')}")
    weak = [finding for finding in findings if finding.confidence in UNSURE]
    if 2 * len(weak) > len(findings):
        remarks.append(f"weakly supported: {len(weak)} of {len(findings)} findings")
    contested = [finding for finding in findings if finding.contradicts]
    if contested:
        remarks.append(f"sources disagree about {plural(len(contested), 'finding')}")
    if missing := missing_words(task, [finding.statement for finding in findings]):
        remarks.append(f"no finding mentions: {', '.join(missing[:NAMED])}")
    if left_out:
        remarks.append(f"{plural(left_out, 'finding')} had no room in this report; the final report has them")
    return remarks


def missing_words(task: str, statements: Sequence[str]) -> list[str]:
    """Words that say what a task is about and that no statement has, by their beginnings, in the task's order."""
    said = {_stem(word) for text in statements for word in WORD.findall(text)}
    wanted = [word for word in WORD.findall(task) if _tells(word)]
    return list(dict.fromkeys(word for word in wanted if _stem(word) not in said))


def _tells(word: str) -> bool:
    plain = word.casefold()
    long_enough = len(word) >= SHORT or word.isupper() or not word.isascii()
    return long_enough and plain not in ASKS and plain not in DECIDES and plain not in SAYS_NOTHING


def _stem(word: str) -> str:
    return word.casefold()[:STEM]
