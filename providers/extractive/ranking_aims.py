"""What passages are ranked by: the question's terms weighed, and the part of the answer that is sought."""

from contracts.roles import AnalyzeInput, WriteInput
from providers.extractive.acronyms import with_acronyms
from providers.extractive.facets import STRONG, facet_named
from providers.extractive.lexicon import RELATED
from providers.extractive.question import Question, QuestionType
from providers.extractive.question_terms import Frequencies, frequencies, key_words, question_terms, word_keys
from providers.extractive.sentence_ranking import Aim, Reading
from providers.text import FRAME_WORDS, stem, words

MAIN_WEIGHT = 0.1
PREMISE_BONUS = 0.14
ROWS_WELCOME = frozenset((QuestionType.LIST, QuestionType.QUANTITY))


def known_frequencies(task: AnalyzeInput | WriteInput, every: list[Reading], *texts: str) -> Frequencies:
    """Document frequencies of the words of these texts."""
    wanted = [word_keys(word, task.language)[0] for text in texts for word in key_words(text)]
    return frequencies(
        task.documents_searched, task.term_documents, (reading.document.all_keys for reading in every), wanted
    )


def aim_of(
    question: Question,
    facet_name: str,
    task: AnalyzeInput | WriteInput,
    every: list[Reading],
    *,
    asked: str | None = None,
    searched: str | None = None,
    main: bool = True,
) -> Aim:
    """What to rank by: `asked` must be answered, `searched` are the words of the sub-query."""
    asked, searched = asked or question.text, searched or question.text
    known = known_frequencies(task, every, asked, searched)
    terms = with_acronyms(
        question_terms(asked, task.language, known), [reading.document.text for reading in every], task.language
    )
    facet = facet_named(facet_name)
    number_wanted = question.kind is QuestionType.QUANTITY
    return Aim(
        terms=terms,
        searched=question_terms(searched, task.language, known),
        facet=facet,
        facet_weight=MAIN_WEIGHT if main else 2 * MAIN_WEIGHT,
        strong=STRONG["quantity"] if number_wanted else STRONG.get(facet.name),
        denial_bonus=PREMISE_BONUS if question.may_hold_a_premise else 0.03,
        number_wanted=number_wanted,
        predicate=_predicate(question) if question.may_hold_a_premise else frozenset(),
        rows_welcome=question.kind in ROWS_WELCOME or facet.name == "settings",
    )


def _predicate(question: Question) -> frozenset[str]:
    """Stems of the framing verbs of a premise (`require`, `support`), and what may stand for them."""
    found = {stem(word) for word in words(question.text) if word.casefold() in FRAME_WORDS}
    return frozenset(found.union(*(RELATED.get(key, frozenset()) for key in found)))
