"""Passages that a statement does not cite and that may support it: of the report, of the run, and of the pages read.

They are found by what can be compared without understanding: stems of words, names in code, options and numbers. What a
passage says of the statement is for a checker.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, zip_longest
from typing import Final

from activities.reporting.claims import CELL_BREAK
from activities.reporting.passages import term_above
from activities.roles.grounding import MAX_QUOTE_CHARACTERS, evidence_at
from activities.verifying.material import Material, show_passages
from contracts import checking
from contracts.evidence import Evidence
from providers.text import is_covered, meaning_words, sentence_spans, word_keys, words
from providers.tokens.lookup import FoundPassage, find_passages, with_announced
from providers.verification.rules import Statement, code_names, exact_tokens

MAX_ELSEWHERE: Final = 3
"""Passages of other statements of the report that are shown with a claim."""
MAX_NAMED: Final = 6
"""Passages of rows and list items whose names a claim has, before those."""
MAX_LABEL: Final = 60
"""Characters before the colon of a list item that name what it is about."""
LEAST_REPEATED: Final = 0.35
"""From which such a passage is shown: the sum of three shares, rare words weighing more. The share of the other
statement's words that the claim has; of the claim's words that its own passages lack and the other statement has; and
of those that the other passage has.

Of the citations that four drafts have at several places 138, each left out in turn at one of them, had a word that the
remaining ones of the sentence lack; 117 came back. A third of the sentences get a passage or two: about 2,000 tokens of
a draft.
"""
MAX_OTHERS: Final = 3
"""Further passages of the run that are tried for a doubtful claim."""
MAX_BESIDE: Final = 3
"""Passages of the sentences before and after a doubtful one that are tried for it."""
MAX_FOUND: Final = 5
"""Passages of the pages read that are tried for it as well."""
MAX_FOUND_CITED: Final = 3
"""Of them, those of the pages that it cites, which come first."""
FOUND_CHARACTERS: Final = 900
"""Of a passage of a page; of a longer paragraph, its best sentences."""
MIN_FOUND_CHARACTERS: Final = 30
"""A definition may be shorter than what a gap is looked for in."""
SEARCHED_CHARACTERS: Final = 4_000_000
"""Of pages that are searched for the doubtful claims of a text, those that they cite first: about a second."""
MIN_LITERAL: Final = 6
"""Characters of what is looked for letter by letter; shorter names stand anywhere."""
MAX_PARTS: Final = 3
"""Parts that a checker named and that are looked for by themselves."""
RANKED_PASSAGES: Final = 200
"""Passages of pages about a claim, in which those with the words that it lacks are looked for."""
RANKED_EACH: Final = 20
"""Best of them, about the claim and about what it lacks, of which near-duplicates go."""
FEW_LACKING: Final = 4
"""Words without which a claim is shorter than what they alone could find."""
LACKING_WEIGHT: Final = 3.0
"""Weight of a word that the cited passages of a claim lack, in the search for further ones."""
MAX_NAMING: Final = 2
"""Passages of the run that have the names and figures of a part that a claim lacks, for each such part."""
LEAST_SHARED: Final = 0.15
"""Share of a claim's words, rare ones weighing more, that a further passage has with its heading.

Of 196 passages shown with 16 doubtful statements of two runs, 85 had less, among them release notes, footers and limits
of another product. Checkers quoted 13 of these; most of those that were looked at are citations of the statement
itself, which are always shown.
"""


def cited_elsewhere(claim: checking.ExtractedClaim, material: Material) -> list[str]:
    """Return the passages that the draft cites where it says the same as a claim, and that add words to the claim's.

    A summary or a conclusion says again in one sentence what sections say in many, each with its citation. First come
    the passages of table rows and list items that it names and its own passages do not.
    """
    wanted = material.words_of(claim.words)
    own = frozenset[str]().union(*(material.shown_words.get(key, ()) for key in claim.evidence_ids))
    missing = set(wanted - own)
    whole = material.weight_of(wanted) or 1.0
    repeated: dict[str, float] = {}
    named: list[str] = []
    for stated, other in material.citing:
        share = material.weight_of(stated & wanted) / (material.weight_of(stated) or 1.0)
        share += material.weight_of(stated & missing) / whole
        name = material.words_of(_name_of(other))
        further = [key for key in other.evidence_ids if key in material.evidence and key not in claim.evidence_ids]
        if name <= wanted and name & missing:
            named += further
        for key in further:
            repeated[key] = max(repeated.get(key, 0.0), share)
    chosen = list(dict.fromkeys(named))[:MAX_NAMED]
    missing -= frozenset[str]().union(*(material.shown_words[key] for key in chosen))
    most = len(chosen) + MAX_ELSEWHERE
    while len(chosen) < most:
        gains = {key: material.weight_of(missing & material.shown_words[key]) / whole for key in repeated}
        fitting = (key for key, gain in gains.items() if gain and gain + repeated[key] >= LEAST_REPEATED)
        best = max(fitting, key=lambda key: (gains[key] + repeated[key], key), default=None)
        if best is None:
            break
        chosen.append(best)
        missing -= material.shown_words[best]
    return chosen


def _name_of(claim: checking.ExtractedClaim) -> str:
    """Return what names the subject of a claim: the first cell of its row, or the label of its list item."""
    if claim.cell:
        return claim.words.partition(CELL_BREAK)[0]
    label, colon, _ = claim.text.partition(": ")
    return label if colon and len(label) <= MAX_LABEL else ""


def with_elsewhere(claims: Sequence[checking.ExtractedClaim], material: Material) -> list[checking.ExtractedClaim]:
    """Return claims, each that a checker is asked about with what the draft of the material cites elsewhere for it.

    A cell says one thing, which its row cites; a listing is the page's own.
    """
    return [
        claim.with_fields(others=cited_elsewhere(claim, material))
        if claim.asked and not (claim.row or claim.cell)
        else claim
        for claim in claims
    ]


def related_to(
    claim: checking.ExtractedClaim, material: Material, beside: Sequence[str] = (), lacking: Sequence[str] = ()
) -> list[str]:
    """Return the passages `beside` a claim, then those that share most with it among the rest, best first.

    A passage shares its own words, or those of another claim that cites it: the summary says again what a section
    says with a citation. Rare words weigh more, and so do words that the claim's own passages lack; a short text
    that has them comes before a long one. Before these come the best that have all options, numbers and names in
    code of a part that the claim is `lacking`: `-m 1` has few words, and in its words other commands are nearer.
    """
    covered = frozenset[str]().union(*(material.stems.get(key, ()) for key in claim.evidence_ids))
    weights = {
        stem: weight * (1 if stem in covered else LACKING_WEIGHT)
        for stem, weight in material.weights(claim.words).items()
    }

    def share(stems: frozenset[str]) -> float:
        return sum(weights.get(stem, 0.0) for stem in stems) / math.sqrt(max(1, len(stems)))

    scores = {
        key: max(map(share, (stems, *material.uses.get(key, ()))))
        for key, stems in material.stems.items()
        if key not in claim.evidence_ids
    }
    shared = {
        key: max(
            material.shared_part(claim.words, stems)
            for stems in (material.shown_stems[key], *material.uses.get(key, ()))
        )
        for key in scores
    }
    fitting = (key for key in scores if scores[key] and shared[key] >= LEAST_SHARED)
    best = sorted(fitting, key=lambda key: (-scores[key], key))
    near = [key for key in beside if key in material.stems][:MAX_BESIDE]
    by_share = sorted(scores, key=lambda key: (-scores[key], key))
    for part in lacking[:MAX_PARTS]:
        exact = exact_tokens(part)
        naming = [key for key in by_share if exact and exact <= material.shown_words[key]]
        near += [key for key in naming if key not in near][:MAX_NAMING]
    return [*near, *(key for key in best if key not in near)][: len(near) + MAX_OTHERS]


@dataclass(frozen=True)
class Unsupported:
    """A statement that needs support, and the passages that it has."""

    words: str
    evidence_ids: Sequence[str]
    others: Sequence[str] = ()
    """Passages of the run that are tried for it."""
    lacking: Sequence[str] = ()
    """The parts of it for which a checker found no passage, in its words."""


def search_pages(statements: Sequence[Unsupported], material: Material) -> list[list[Evidence]]:
    """Return the passages of the pages read that share most with the unsupported part of each statement, best first.

    Each part that a checker named is looked for by itself, as the words of a long statement would outweigh it. At most
    `MAX_FOUND`, of the pages that it cites before all others; none is within a passage that the run has for the
    statement, and none repeats another.
    """
    language = material.entry.language
    texts = _searched_texts(statements, material)
    lacking = [_lacking_words(one, material) for one in statements]
    named = [list(one.lacking[:MAX_PARTS]) for one in statements]
    subjects = [
        [subject]
        for one, missing, parts in zip(statements, lacking, named, strict=True)
        for subject in (*parts, " ".join(missing), one.words)
    ]
    ranked = iter(
        find_passages(texts, subjects, language, RANKED_PASSAGES, shortest=MIN_FOUND_CHARACTERS, one_per_section=False)
    )
    found = []
    for one, missing, parts in zip(statements, lacking, named, strict=True):
        about_parts = [next(ranked) for _ in parts]
        about_missing = next(ranked)
        about_all = next(ranked)
        if len(missing) < FEW_LACKING:
            # Passages on other subjects have a word or two of them as well.
            about_missing = [passage for passage in about_missing if passage in set(about_all)]
        rows = zip_longest(*(row[:RANKED_EACH] for row in (*about_parts, about_missing, about_all)))
        subject_of: dict[FoundPassage, str] = {}
        for row in rows:
            for passage, subject in zip(row, (*parts, one.words, one.words), strict=True):
                if passage is not None:
                    subject_of.setdefault(passage, subject)
        chosen = [*_literal_passages(one, material, texts), *_choose(subject_of, one, material, texts)]
        found.append(list({item.id: item for item in chosen}.values())[:MAX_FOUND])
    return found


def _literal_passages(one: Unsupported, material: Material, texts: Mapping[str, str]) -> list[Evidence]:
    """Return the lines of pages that have the parts that a checker named, or a name in code of one, letter by letter.

    A command or an option is found so where it stands in a listing, or among words that other passages share more of.
    """
    own = [material.passages[key][0] for key in (*one.evidence_ids, *one.others) if key in material.passages]
    found = []
    for part in one.lacking[:MAX_PARTS]:
        for literal in dict.fromkeys(name for name in (part.strip(), *code_names(part)) if len(name) >= MIN_LITERAL):
            places = ((source_id, text, text.find(literal)) for source_id, text in texts.items() if literal in text)
            source_id, text, start = next(places, ("", "", -1))
            if start >= 0:
                first = text.rfind("\n", 0, start) + 1
                last = text.find("\n", start)
                span = (first, last if last >= 0 else len(text))
                if span[1] - first > FOUND_CHARACTERS:
                    span = (start, start + len(literal))
                if not any(_is_within(source_id, span, item) for item in own):
                    found.append(evidence_at(source_id, text, *span))
                break
    return found


def _searched_texts(statements: Sequence[Unsupported], material: Material) -> dict[str, str]:
    """Return the texts of the sources by id, those that the statements cite first, up to a limit of characters."""
    cited = [
        material.passages[key][0].source_id
        for one in statements
        for key in one.evidence_ids
        if key in material.passages
    ]
    known = {
        source.id: material.texts[source.text.hash]
        for source in material.entry.sources
        if source.text.hash in material.texts
    }
    texts: dict[str, str] = {}
    room = SEARCHED_CHARACTERS
    for source_id in dict.fromkeys([*cited, *known]):
        text = known[source_id]
        if len(text) <= room:
            texts[source_id] = text
            room -= len(text)
    return texts


def _lacking_words(one: Unsupported, material: Material) -> list[str]:
    """Return the words with a meaning that a statement has and none of its passages, as they are shown.

    A part of a name, such as `primary` of `primary_conninfo`, is not that name.
    """
    language = material.entry.language
    shown = show_passages(one.evidence_ids, material)
    covered = _keys(" ".join(f"{item.title} {item.text}" for item in shown), language)
    meaning = dict.fromkeys(meaning_words(one.words, language))
    return [word for word in meaning if word_keys(word, language)[0] not in covered]


def _choose(
    passages: Mapping[FoundPassage, str], one: Unsupported, material: Material, texts: Mapping[str, str]
) -> list[Evidence]:
    """Return the best passages as evidence, without repetitions and what the statement has.

    `passages` are in order, each with the words for which it was found: the statement or a part of it.
    """
    language = material.entry.language
    own = [material.passages[key][0] for key in (*one.evidence_ids, *one.others) if key in material.passages]
    cited = {item.source_id for item in own[: len(one.evidence_ids)]}
    chosen: dict[bool, list[Evidence]] = {True: [], False: []}
    known: list[frozenset[str]] = []
    for passage, subject in passages.items():
        text = texts[passage.source_id]
        is_cited = passage.source_id in cited
        span = _best_sentences(text, passage, subject, language)
        if span is None or any(_is_within(passage.source_id, span, item) for item in own):
            continue
        keys = _keys(text[slice(*span)], language)
        if any(is_covered(keys, other) for other in known):
            continue
        item = evidence_at(passage.source_id, text, *span)
        shown = Statement(f"{item.heading} {term_above(text, item.start)} {text[slice(*span)]}", language).stems
        if material.shared_part(subject, shown) < LEAST_SHARED:
            continue
        known.append(keys)
        chosen[is_cited].append(item)
    first = chosen[True][:MAX_FOUND_CITED]
    others = chosen[False][: MAX_FOUND - len(first)]
    return [*first, *others, *chosen[True][len(first) :]][:MAX_FOUND]


def _is_within(source_id: str, span: tuple[int, int], item: Evidence) -> bool:
    return item.source_id == source_id and item.start <= span[0] and span[1] <= item.end


def _best_sentences(text: str, passage: FoundPassage, statement: str, language: str) -> tuple[int, int] | None:
    """Return the place of a passage, with the beginning of what it announces; of a long one, that of the neighbouring
    sentences that share most with a statement, or None if there is only one that is too long to be quoted.
    """
    start = passage.start
    end = passage.end
    if end - start <= FOUND_CHARACTERS:
        return start, with_announced(text, end, start + FOUND_CHARACTERS)
    sought = _keys(statement, language)
    spans = [(start + first, start + last) for first, last in sentence_spans(text[start:end])]
    keys = [sought & _keys(text[slice(*span)], language) for span in spans]
    best = None
    most = 0
    for first, (begin, _) in enumerate(spans):
        shared = frozenset[str]()
        for last in range(first, len(spans)):
            stop = spans[last][1]
            if stop - begin > (MAX_QUOTE_CHARACTERS if last == first else FOUND_CHARACTERS):
                break
            shared |= keys[last]
            if len(shared) > most:
                most = len(shared)
                best = begin, begin + len(text[begin:stop].rstrip())
    return best


def _keys(text: str, language: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(map(word_keys, set(words(text)), repeat(language))))
