"""Which quotation stands where: the answer first, then one section a facet, the rest under "More passages"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from providers.extractive.brief_quotations import Quotation
from providers.extractive.facets import ENTITY_PREFIX, QUALIFICATION, STRONG, serves
from providers.extractive.lexicon import ASIDE_OPENING, PAST
from providers.extractive.passages import containment
from providers.extractive.question import Question
from providers.extractive.settings_table import SettingRow

SHORT_ANSWER_PASSAGES = 3
SHORT_ANSWER_WORDS = 260
SHORT_ANSWER_COVERAGE = 0.25
"""Share of the question's weight that a passage itself must hold: a fitting heading alone is not enough."""
MORE = "more"
SECTION_PASSAGES = 4
MAIN_PASSAGES = 6
LOOSE = frozenset(("mechanism", "comparison"))
"""Parts whose form many sentences have: the passage that speaks most of the question comes first."""
ORDER = (
    "definition", "problem", "mechanism", "steps", "reason", "comparison", "items", "fact", "settings", "failure",
    "limits", "check", "version", "guidance",
)  # fmt: skip


@dataclass(frozen=True)
class BriefSection:
    """A part of the brief."""

    name: str
    """A facet, a side of a comparison, or one of `QUALIFICATION` and `MORE`."""
    quoted: list[Quotation]
    rows: list[SettingRow] = field(default_factory=list)


@dataclass(frozen=True)
class Arrangement:
    """The whole brief."""

    short_answer: list[Quotation]
    qualified_first: bool
    answered: bool
    """Whether a quotation answers in the form that the question asks for; a denial of its premise alone does not."""
    sections: list[BriefSection]
    more: list[Quotation]


def arrange(
    quoted: list[Quotation],
    question: Question,
    target_words: int,
    sides: Sequence[Quotation] = (),
    answers: Sequence[Quotation] = (),
    *,
    settings: Sequence[SettingRow] = (),
    one_fact: bool = False,
) -> Arrangement:
    """Spread the quotations (best first) over the brief; none stands twice.

    `sides` are those that speak best of each side of a comparison, `settings` the rows of their table. Of a question
    for `one_fact` only what answers it stands under the short answer, and no other passage has a section.
    """
    qualified = _premise_denied(quoted, question)
    if question.main_facet in LOOSE:
        answers = [one for one in quoted if one in answers]
    short = _short_answer([*answers] if one_fact and answers else quoted, qualified, sides, answers)
    rest = [one for one in quoted if one not in short]
    if one_fact and answers:
        table = [BriefSection("settings", [], [*settings])] if settings else []
        return Arrangement(short, short[:1] == [qualified], True, table, rest)
    budget = max(100, target_words - sum(one.words for one in short) - 120)
    groups = _groups(rest, question)
    placed: list[Quotation] = []
    sections: list[BriefSection] = []
    allowed = _within(groups, question, budget)
    for name, members in groups.items():
        shown = [one for one in members if one in allowed]
        found = [*settings] if name == "settings" else []
        if shown or found:
            placed += shown
            sections.append(BriefSection(name, _reading_order(shown), found))
    more = [one for one in rest if one not in placed]
    return Arrangement(short, short[:1] == [qualified], bool(answers), sections, _reading_order(more))


def _premise_denied(quoted: list[Quotation], question: Question) -> Quotation | None:
    """The passage that denies what the question takes for granted, if one stands near enough to its words."""
    if not question.may_hold_a_premise:
        return None
    denying = [
        one
        for one in quoted
        if one.facet == QUALIFICATION and one.passage.own_coverage >= 0.5 and not PAST.search(one.text)
    ]
    return denying[0] if denying and denying[0].passage.score >= 0.8 * quoted[0].passage.score else None


def _short_answer(
    quoted: list[Quotation], qualified: Quotation | None, sides: Sequence[Quotation], answers: Sequence[Quotation]
) -> list[Quotation]:
    """The passages that answer by themselves: one that denies a premise first, each side of a comparison, the best."""
    ahead = [qualified] if qualified else [*_find_contrasting(quoted, sides), *sides]
    ahead = [*answers[:SHORT_ANSWER_PASSAGES], *ahead]
    chosen: list[Quotation] = []
    count, held = 0, frozenset[str]()
    for one in [*ahead, *quoted]:
        if len(chosen) >= SHORT_ANSWER_PASSAGES:
            break
        beside = one is not quoted[0] and one.passage.own_coverage < SHORT_ANSWER_COVERAGE
        weak = one not in ahead and (one.passage.score < 0.7 * quoted[0].passage.score or beside)
        too_long = bool(chosen) and count + one.words > SHORT_ANSWER_WORDS
        if one in chosen or too_long or weak or not (_speaks(one, held) or one is qualified or not chosen):
            continue
        chosen.append(one)
        held |= one.passage.keys
        count += one.words
    return chosen


def _speaks(one: Quotation, held: frozenset[str]) -> bool:
    """Whether a passage adds something, and is no remark and no memory of an old release."""
    return (
        containment(one.passage.keys, held) < 0.75 and not ASIDE_OPENING.match(one.text) and not PAST.search(one.text)
    )


def _find_contrasting(quoted: list[Quotation], sides: Sequence[Quotation]) -> list[Quotation]:
    """The best passage that holds both sides of a comparison against each other."""
    if not sides:
        return []
    return [one for one in quoted if one.passage.own_coverage >= 0.8 and STRONG["contrast"].search(one.text)][:1]


def _groups(rest: Iterable[Quotation], question: Question) -> dict[str, list[Quotation]]:
    found: dict[str, list[Quotation]] = {}
    for one in rest:
        found.setdefault(_section_of(one, question.main_facet), []).append(one)
    found.setdefault("settings", [])
    entities = [name for name in found if name.startswith(ENTITY_PREFIX)]
    order = [*ORDER[: ORDER.index("settings")], *sorted(entities), *ORDER[ORDER.index("settings") :]]
    order.insert(order.index("check"), QUALIFICATION)
    main = question.main_facet
    if main not in ("mechanism", "definition"):
        order.remove(main)
        order.insert(0, main)
    return {name: found[name] for name in order if name in found}


def _section_of(one: Quotation, main: str) -> str:
    """The facet whose heading a passage stands under: the one it was found for, if it has the wording of it."""
    if one.facet in (QUALIFICATION, "limits"):
        return QUALIFICATION if serves("limits", one.text) else main
    return one.facet if serves(one.facet, one.text) else main


def _within(groups: dict[str, list[Quotation]], question: Question, budget: int) -> list[Quotation]:
    """Take turns among the sections, best first, until the words are used up."""
    allowed: list[Quotation] = []
    limits = {name: MAIN_PASSAGES if name == question.main_facet else SECTION_PASSAGES for name in groups}
    for turn in range(MAIN_PASSAGES):
        for name, members in groups.items():
            if turn < min(len(members), limits[name]) and members[turn].words <= budget:
                allowed.append(members[turn])
                budget -= members[turn].words
    return allowed


def _reading_order(members: list[Quotation]) -> list[Quotation]:
    """Passages of one page together, in the order of the page; pages by their best passage."""
    first: dict[str, int] = {}
    for position, one in enumerate(members):
        first.setdefault(one.source.id, position)
    return sorted(members, key=lambda one: (first[one.source.id], one.passage.start))
