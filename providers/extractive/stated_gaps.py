"""Gaps in words that a reader can check, with searches that were not asked yet."""

from contracts.addresses import normalized_text
from contracts.roles import AnalyzeInput, ProposedGap
from contracts.vocabulary import GapKind
from providers.extractive.brief_text import BriefWords
from providers.extractive.passages import FoundPassage, shorten
from providers.extractive.question_terms import Frequencies, QuestionTerms, key_words
from providers.text import STOP_WORDS, stem, words

GAP_LENGTH = 390


def names_missing(names: list[str], known: Frequencies, task: AnalyzeInput) -> ProposedGap:
    """A name of the question occurs nowhere."""
    return ProposedGap(
        description=shorten(_nowhere(names, known, task), GAP_LENGTH),
        suggested_queries=_new_searches([" ".join(_without(task, names))], task),
        priority=1,
        kind=GapKind.LIMITATION.value,
    )


def below_floor(terms: QuestionTerms, best: float, known: Frequencies, task: AnalyzeInput) -> ProposedGap:
    """No passage covers enough of the question."""
    absent = [term.word for term in terms.terms if known.absent(term.key)]
    say = BriefWords(task.language)
    description = say.say("floor", where=_describe_search(known, task), share=f"{best:.0%}")
    if absent and known.whole_corpus:
        description = f"{_nowhere(absent, known, task)} {description}"
    heavy = sorted(terms.terms, key=lambda term: (-term.weight, term.key))
    present = [term.word for term in heavy if not known.absent(term.key)]
    return ProposedGap(
        description=shorten(description, GAP_LENGTH),
        suggested_queries=_new_searches([" ".join(present[:3]), f"{' '.join(present[:2])} overview"], task),
        priority=1 if task.sub_query.priority == 1 else 2,
        kind=GapKind.MISSING.value,
    )


def words_unsupported(
    found: list[str], kept: list[FoundPassage], known: Frequencies, task: AnalyzeInput, kind: GapKind
) -> ProposedGap:
    """Passages were found, but none of them holds these words of the question."""
    expansion = _telling_words(kept[0].text, task)
    queries = [f"{' '.join(found[:3])} {' '.join(expansion[:2])}", f"{' '.join(found[:2])} {kept[0].heading}"]
    return ProposedGap(
        description=shorten(
            BriefWords(task.language).say("unsupported", names=_list_names(found), where=_describe_search(known, task)),
            GAP_LENGTH,
        ),
        suggested_queries=_new_searches(queries, task),
        priority=2,
        kind=kind.value,
    )


def _nowhere(names: list[str], known: Frequencies, task: AnalyzeInput) -> str:
    form = "nowhere_one" if len(names) == 1 else "nowhere_many"
    return BriefWords(task.language).say(form, names=_list_names(names), where=_describe_search(known, task))


def _list_names(found: list[str]) -> str:
    return ", ".join(f"'{word}'" for word in found[:4])


def _describe_search(known: Frequencies, task: AnalyzeInput) -> str:
    say = BriefWords(task.language)
    if known.whole_corpus:
        return say.say("where_all", count=f"{known.documents:,}")
    count = sum(source.text is not None for source in task.sources)
    return say["where_read_one"] if count == 1 else say.say("where_read_many", count=f"{count:,}")


def _without(task: AnalyzeInput, names: list[str]) -> list[str]:
    gone = {word.casefold() for name in names for word in words(name)}
    return [word for word in key_words(task.query, task.language) if word.casefold() not in gone]


def _new_searches(queries: list[str], task: AnalyzeInput) -> list[str]:
    """Searches that differ from the question and from the sub-query, each at least ten characters long."""
    asked = {normalized_text(task.query), normalized_text(task.sub_query.text)}
    padded = [" ".join(query.split())[:300] for query in queries]
    return list(dict.fromkeys(q for q in padded if len(q) >= 10 and normalized_text(q) not in asked))[:3]


def _telling_words(text: str, task: AnalyzeInput) -> list[str]:
    """Longer words of a passage that the question does not hold, in order of their length."""
    asked = {stem(word, task.language) for word in words(task.query)}
    fresh = {
        word.casefold()
        for word in words(text)
        if len(word) > 4 and word.casefold() not in STOP_WORDS and stem(word, task.language) not in asked
    }
    return sorted(fresh, key=lambda word: (-len(word), word))
