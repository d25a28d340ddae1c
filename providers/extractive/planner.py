"""The planner: from the type of a question to two to five searches, each for another part of the answer."""

import re
from collections.abc import Mapping

from contracts.addresses import normalized_text
from contracts.roles import PlanInput, PlannerAnswer, SubQuery
from providers.extractive.asked_form import MEASURES, AnswerForm, read_asked
from providers.extractive.facets import ENTITY_PREFIX, FACETS
from providers.extractive.question import PARTS, QUESTION_PREFIX, Question, QuestionType, read_question, split_questions
from providers.extractive.question_terms import key_words, named_terms
from providers.language_words import language_words

AIM = 4
"""Sub-queries that a plan aims at: two to five are allowed."""
SHORTEST_QUERY = 10
LONGEST_QUERY = 400
SHORT = 8
"""Words of meaning up to which a question that asks for one thing gets no searches of aspects."""
MANY_SIDED = frozenset({QuestionType.LIST, QuestionType.DEFINE})
"""Questions whose answer has parts even where one sentence meets their form."""
ONE_SIDED = MEASURES | {
    AnswerForm.PERSON,
    AnswerForm.TIME,
    AnswerForm.PLACE,
    AnswerForm.VALUE,
    AnswerForm.CHOICE,
    AnswerForm.REPLACEMENT,
    AnswerForm.YES_NO,
    AnswerForm.DEFINITION,
    AnswerForm.ITEMS,
}
OTHER_WORDS = "Documents may say it in other words than the question."

_APPROACH = {
    QuestionType.HOW: "asks how something works",
    QuestionType.HOW_TO: "asks how to do something",
    QuestionType.WHY: "asks for reasons",
    QuestionType.COMPARE: "asks for a comparison",
    QuestionType.LIST: "asks for a list",
    QuestionType.DEFINE: "asks what something is",
    QuestionType.CONSEQUENCE: "asks what follows from something",
    QuestionType.YES_NO: "can be answered with yes or no",
    QuestionType.QUANTITY: "asks for a number",
    QuestionType.FACT: "asks for a fact",
}


def plan(task: PlanInput) -> PlannerAnswer:
    """Make the plan; done again, it asks other words first."""
    question = read_question(task.query, task.language)
    several = split_questions(task.query, task.language)
    wanted = _guidance(task)
    again = bool(task.issues or task.previous)
    asked = {normalized_text(text) for text in task.previous}
    aspects = language_words(task.language).aspects
    own = [_one_of_several(text, number, aspects) for number, text in enumerate(several, start=1)]
    proposals = _distinct([*own, *([] if own and not again else _proposals(question, task.language, wider=again))])
    fresh = [proposal for proposal in proposals if normalized_text(proposal.query) not in asked]
    extra = [proposal for proposal in wanted if normalized_text(proposal.query) not in asked]
    limit = max(1, task.max_sub_queries)
    aim = min(limit, max(task.min_sub_queries, len(own), AIM + (1 if extra or again else 0)))
    # Nothing was gathered for the plan that is done again, so the question itself stays; all else is new if possible.
    first = max(1, len(own))
    ordered = [*proposals[:first], *extra, *(fresh if again else proposals[first:]), *proposals]
    most = min(aim, max(task.min_sub_queries, 1 + len(extra) + len(fresh))) if again else aim
    chosen = _distinct(ordered)[:most]
    numbered = [proposal.model_copy(update={"priority": position}) for position, proposal in enumerate(chosen, start=1)]
    return PlannerAnswer(research_brief=_brief(question, numbered), sub_queries=numbered)


def _one_of_several(text: str, number: int, aspects: Mapping[str, str]) -> SubQuery:
    return SubQuery(
        query=_long_enough(text[:LONGEST_QUERY], aspects),
        rationale="The text asks several questions; each is answered by itself.",
        facet=f"{QUESTION_PREFIX}{number}",
    )


def _brief(question: Question, chosen: list[SubQuery]) -> str:
    parts = ", ".join(dict.fromkeys(proposal.facet.replace(ENTITY_PREFIX, "") for proposal in chosen))
    return (
        f"The question {_APPROACH[question.kind]}. The documents are searched for each part of an answer: {parts}. "
        "Whatever no passage supports is stated as a gap."
    )


def _proposals(question: Question, language: str, *, wider: bool) -> list[SubQuery]:
    parts = PARTS[question.kind]
    aspects = language_words(language).aspects
    main = FACETS[parts[0]]
    own_words = " ".join(question.text.split())[:LONGEST_QUERY]
    first = SubQuery(query=_long_enough(own_words, aspects), rationale=main.rationale, facet=main.name)
    key_phrase = question.key_phrase or own_words
    found = [first]
    asked = read_asked(own_words, language)
    other = language_words(language).other_words.get(asked.form.value, "")
    if other and asked.content:
        text = f"{' '.join(asked.content[:6])} {other}"
        found.append(SubQuery(query=text[:LONGEST_QUERY], rationale=OTHER_WORDS, facet=main.name))
    if asked.form in ONE_SIDED and question.kind not in MANY_SIDED and len(asked.content) <= SHORT:
        parts = parts[:1]
    found += [
        SubQuery(
            query=_long_enough(aspects["setting"].format(name=name)[:LONGEST_QUERY], aspects),
            rationale="A name in the question is looked up by itself.",
            facet="definition" if main.name != "definition" else "settings",
        )
        for name in named_terms(question.text, language)
        if "_" in name or "." in name
    ][:2]
    if question.entities:
        found += [_about(entity, question, language) for entity in question.entities]
    for name in parts[1:]:
        facet = FACETS[name]
        ask = aspects["number" if name == "limits" and question.kind is QuestionType.QUANTITY else name]
        found.append(SubQuery(query=f"{key_phrase}: {ask}"[:LONGEST_QUERY], rationale=facet.rationale, facet=name))
    if wider:
        found.insert(
            1,
            SubQuery(
                query=_long_enough(f"{key_phrase} {aspects.get(main.name, '')}".strip(), aspects),
                rationale=main.rationale,
                facet=main.name,
            ),
        )
        found += [
            SubQuery(
                query=aspects["overview"].format(name=name),
                rationale="A name in the question, looked up by itself.",
                facet="definition",
            )
            for name in named_terms(question.text, language)[:3]
        ]
    return found


def _about(entity: str, question: Question, language: str) -> SubQuery:
    others = {word.casefold() for other in question.entities for word in key_words(other, language)}
    rest = [word for word in key_words(question.text, language) if word.casefold() not in others]
    aspects = language_words(language).aspects
    query = " ".join([entity, *rest[:6]]) if rest else aspects["what_is"].format(name=entity)
    return SubQuery(
        query=_long_enough(query, aspects),
        rationale="Each side of the comparison is looked up by itself.",
        facet=f"{ENTITY_PREFIX}{entity}"[:60],
    )


def _guidance(task: PlanInput) -> list[SubQuery]:
    """Extra searches from what a person, a hook or a model asked for, and from the operator's own prompt."""
    texts: list[str] = []
    asked_for: set[str] = set()
    for said in task.guidance:
        texts += [said.text] * (said.origin != "rules")
    if task.system_prompt and not any(said.origin == "request" for said in task.guidance):
        texts.append(task.system_prompt)
    subject = " ".join(named_terms(task.query, task.language)[:3])
    aspects = language_words(task.language).aspects
    found = []
    for text in texts:
        first = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
        terms = key_words(first)[:10]
        if terms:
            query = " ".join(dict.fromkeys([*subject.split(), *terms]))[:LONGEST_QUERY]
            if text in asked_for:
                query = _long_enough(query, aspects)  # however short: somebody asked for it
            elif len(query) < SHORTEST_QUERY:
                continue
            found.append(SubQuery(query=query, rationale=FACETS["guidance"].rationale, facet="guidance"))
    return found


def _long_enough(query: str, aspects: Mapping[str, str]) -> str:
    return query if len(query) >= SHORTEST_QUERY else aspects["overview"].format(name=query)


def _distinct(proposals: list[SubQuery]) -> list[SubQuery]:
    seen: dict[str, SubQuery] = {}
    for proposal in proposals:
        seen.setdefault(normalized_text(proposal.query), proposal)
    return list(seen.values())
