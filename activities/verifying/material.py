"""The claims of a draft with what they are compared with, and the verdicts on them."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, repeat, zip_longest
from typing import Any, Final

from activities.reporting.claims import Claim, claim_id, find_claims
from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import CitedPassage, judge
from activities.reporting.passages import listing_above, show_passage, term_above
from activities.reporting.references import KnownAddresses
from activities.reporting.tree import write
from activities.roles.grounding import MAX_QUOTE_CHARACTERS, evidence_at
from contracts import checking
from contracts.addresses import long_hash
from contracts.call_sizes import claims_per_call
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from contracts.sentences import Message
from providers.text import is_covered, meaning_words, sentence_spans, word_keys, words
from providers.tokens.lookup import FoundPassage, find_passages, with_announced
from providers.tokens.surroundings import text_around
from providers.verification.quantities import find_quantities
from providers.verification.rules import ClaimJudgement, Statement, find_code_names, find_differences

Claims = Sequence[checking.ExtractedClaim]
Answers = Mapping[str, checking.ClaimAnswer]
"""Answers of checkers by the fingerprint of the claim."""

MAX_PASSAGES: Final = 16
"""Passages shown to a checker for one claim; hardly any cites more."""
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
LITERAL_NAME: Final = re.compile(r"(?<![\w-])(?:--[A-Za-z][^\s,;)]*|\w+(?:[._:/-]\w+)+)")
"""A name in code: an option with its value, or words joined by signs."""
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
TOKEN_ENDS: Final = re.compile(r"[\s`|]")
SIGNS_AROUND: Final = ".,;:!?\"'“”‘’*"
LEAST_SHARED: Final = 0.15
"""Share of a claim's words, rare ones weighing more, that a further passage has with its heading.

Of 196 passages shown with 16 doubtful statements of two runs, 85 had less, among them release notes, footers and limits
of another product. Checkers quoted 13 of these, most of them, as far as was looked at, the
statement's own citations, which are always shown.
"""
MAX_REMARKS: Final = 4
"""Differences found by rules that a checker is asked about, of one claim."""
CONTROLS_PER_CALL: Final = 2
"""Controls drawn for each call, which shows one: that from under the same headings as others, or that it has not."""
MOST_FOREIGN: Final = 3
"""Passages of a control; most statements have no more."""
MIN_CONTROL_STEMS: Final = 3
"""Different words with a meaning that a control needs."""
MAX_CONTROL_SHARE: Final = 0.2
"""Share of the words of a control that its passage may have, with its title, its headings and the text around it."""
CONTROL_DISTANCE: Final = 2_000
"""Characters between the passage of a control and those that the statement cites: neighbours say the same."""
CONTROL: Final = "control"
WRONG: Final = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
LONG_NUMBER: Final = re.compile(r"\d{4,}")
"""A number that a page hardly has by chance."""
NAMED_NOWHERE: Final = "reason_named_nowhere"
NAMED_ELSEWHERE: Final = "“{name}” is in no cited passage, but at another place of a page that it cites."
NOT_REACHED: Final = Message("reason_not_reached")
QUOTE_BREAK: Final = "” – “"
"""Between the quotes of a reason."""
SCORES: Final[Mapping[Verdict, float]] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIAL: 0.4,
    Verdict.NOT_ENOUGH_INFORMATION: 0.2,
    Verdict.UNVERIFIED: 0.2,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: -1.0,
}
"""Order of verdicts: higher is better."""


@dataclass(frozen=True)
class Material:
    """The passages and texts that the claims of a run are compared with."""

    entry: checking.ClaimsEntry
    texts: Mapping[str, str]
    """Stored texts of sources by hash."""
    by_model: bool
    """True if a model checks claims that rules cannot decide."""
    found: Sequence[Evidence] = ()
    """Passages of pages that are tried as citations, and are no evidence of the run before a checker quotes them."""

    @cached_property
    def sources(self) -> dict[str, checking.CheckedSource]:
        """The sources whose texts are loaded, by id."""
        return {source.id: source for source in self.entry.sources if source.text.hash in self.texts}

    def text_of(self, source_id: str) -> str:
        """Return the stored text of a source that is loaded."""
        return self.texts[self.sources[source_id].text.hash]

    @cached_property
    def passages(self) -> dict[str, tuple[Evidence, str, str]]:
        """The run's passages and those found, by id, with title and text of their source, where that is loaded."""
        sources = self.sources
        # What the run has already comes last, with its page and its entry.
        items = [*self.found, *self.entry.evidence]
        known = ((item, sources[item.source_id]) for item in items if item.source_id in sources)
        return {item.id: (item, source.title, self.texts[source.text.hash]) for item, source in known}

    def show(self, key: str) -> checking.ShownPassage:
        """Return a passage as checkers see it; of a paper's abstract they learn that it is one."""
        item, title, text = self.passages[key]
        abstracts = {source.id for source in self.entry.sources if source.abstract_only}
        return show_passage(item, title, text).with_fields(abstract_only=item.source_id in abstracts)

    def with_found(self, found: Iterable[Evidence]) -> "Material":
        """Return the material with more passages that are tried."""
        return replace(self, found=[*self.found, *found])

    @cached_property
    def found_by_id(self) -> dict[str, Evidence]:
        """The passages that are tried and that the run does not have, by id."""
        known = {item.id for item in self.entry.evidence}
        return {item.id: item for item in self.found if item.id not in known}

    @cached_property
    def evidence(self) -> dict[str, tuple[Evidence, str, str]]:
        """The run's passages alone, as in `passages`."""
        return {item.id: self.passages[item.id] for item in self.entry.evidence if item.id in self.passages}

    @cached_property
    def stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage."""
        language = self.entry.language
        return {
            key: Statement(text[item.start : item.end], language).stems
            for key, (item, _, text) in self.evidence.items()
        }

    @cached_property
    def shown_stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage as it is shown: with title, heading and the text around it."""
        shown = {key: show_passage(*passage) for key, passage in self.evidence.items()}
        return {
            key: Statement(f"{passage.title}\n{passage.text}", self.entry.language).stems
            for key, passage in shown.items()
        }

    @cached_property
    def uses(self) -> dict[str, list[frozenset[str]]]:
        """The stems of the claims that cite each passage."""
        uses: dict[str, list[frozenset[str]]] = {}
        for claim in self.entry.claims:
            stems = Statement(claim.words, self.entry.language).stems
            for key in claim.evidence_ids:
                uses.setdefault(key, []).append(stems)
        return uses

    @cached_property
    def shown_tokens(self) -> dict[str, frozenset[str]]:
        """What stands between spaces in each passage and in its title, without the signs around it."""
        return {
            key: frozenset(_tokens(f"{title}\n{text[item.start : item.end]}"))
            for key, (item, title, text) in self.evidence.items()
        }

    def related(
        self, claim: checking.ExtractedClaim, beside: Sequence[str] = (), lacking: Sequence[str] = ()
    ) -> list[str]:
        """Return the passages `beside` a claim, then those that share most with it among the rest, best first.

        A passage shares its own words, or those of another claim that cites it: the summary says again what a section
        says with a citation. Rare words weigh more, and so do words that the claim's own passages lack; a short text
        that has them comes before a long one. Before these come the best that have all options, numbers and names in
        code of a part that the claim is `lacking`: `-m 1` has few words, and in its words other commands are nearer.
        """
        covered = frozenset[str]().union(*(self.stems.get(key, ()) for key in claim.evidence_ids))
        weights = {
            stem: weight * (1 if stem in covered else LACKING_WEIGHT)
            for stem, weight in self.weights(claim.words).items()
        }

        def share(stems: frozenset[str]) -> float:
            return sum(weights.get(stem, 0.0) for stem in stems) / math.sqrt(max(1, len(stems)))

        scores = {
            key: max(map(share, (stems, *self.uses.get(key, ()))))
            for key, stems in self.stems.items()
            if key not in claim.evidence_ids
        }
        shared = {
            key: max(self.shared_part(claim.words, stems) for stems in (self.shown_stems[key], *self.uses.get(key, ())))
            for key in scores
        }
        fitting = (key for key in scores if scores[key] and shared[key] >= LEAST_SHARED)
        best = sorted(fitting, key=lambda key: (-scores[key], key))
        near = [key for key in beside if key in self.stems][:MAX_BESIDE]
        by_share = sorted(scores, key=lambda key: (-scores[key], key))
        for part in lacking[:MAX_PARTS]:
            marks = {token for token in _tokens(part) if not token.isalpha()}
            naming = [key for key in by_share if marks and marks <= self.shown_tokens[key]]
            near += [key for key in naming if key not in near][:MAX_NAMING]
        return [*near, *(key for key in best if key not in near)][: len(near) + MAX_OTHERS]

    @cached_property
    def stem_counts(self) -> Counter[str]:
        """The number of the run's passages that have each stem."""
        return Counter(stem for stems in self.stems.values() for stem in stems)

    def weights(self, words: str) -> dict[str, float]:
        """Return the weight of each stem of a text: more for one that few passages of the run have."""
        counts = self.stem_counts
        return {
            stem: math.log(1 + max(1, len(self.stems)) / max(1, counts[stem]))
            for stem in Statement(words, self.entry.language).stems
        }

    def shared_part(self, words: str, stems: frozenset[str]) -> float:
        """Return the weight of a text's words that these stems have, as a share of the whole, from 0 to 1."""
        weights = self.weights(words)
        whole = sum(weights.values())
        return sum(weight for stem, weight in sorted(weights.items()) if stem in stems) / whole if whole else 0.0

    @cached_property
    def registry(self) -> KnownAddresses:
        """The addresses known to the run."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


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
        names = (name.strip(".,;:)") for name in LITERAL_NAME.findall(part))
        for literal in dict.fromkeys(name for name in (part.strip(), *names) if len(name) >= MIN_LITERAL):
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


def _tokens(text: str) -> list[str]:
    return [token for part in TOKEN_ENDS.split(text.casefold()) if (token := part.strip(SIGNS_AROUND))]


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


def extract_claims(draft: str, material: Material) -> list[checking.ExtractedClaim]:
    """Return the claims of a draft in order, each with the verdict that needs no model, if any.

    The draft must be text that `write` produced: the offsets of claims refer to it.
    """
    blocks = parse_draft(draft)
    written = write(blocks)
    parsed = find_claims(blocks, material.entry.language, uncited=material.entry.written_freely)
    first = next((claim.section for claim in parsed if claim.evidence_ids), "")
    extracted = []
    for claim in parsed:
        start, end = claim.span(written)
        weight = 0.2 + 0.2 * bool(claim.evidence_ids) + 0.3 * (claim.section == first)
        weight += 0.3 * bool(find_quantities(claim.stated, material.entry.language))
        extracted.append(
            checking.ExtractedClaim(
                id=claim.id,
                text=claim.text,
                section=claim.section,
                evidence_ids=claim.evidence_ids,
                start=start,
                end=end,
                subject=claim.subject if claim.cell else "",
                place=claim.place,
                fingerprint=claim_id(claim.subject, claim.evidence_ids),
                importance=round(weight, 2),
                row=claim.quoted or claim.row or claim.code,
                cell=claim.cell,
                shared=bool(claim.evidence_ids) and not any(part.marks for part in claim.sentences),
                names_row=claim.cell and not claim.row_head,
                **_rule(claim, material),
            )
        )
    return extracted


def _rule(claim: Claim, material: Material) -> dict[str, Any]:
    """Return the fields of a claim that follow from its verdict by rules: what is left to a checker, with remarks."""
    known = [material.passages[key] for key in claim.evidence_ids if key in material.passages]
    cited = [CitedPassage(text[item.start : item.end], item.heading, title, text) for item, title, text in known]
    language = material.entry.language
    question = material.entry.query
    ruled = judge(claim, cited, material.registry, language, question=question)
    asked = material.by_model and ruled.method is CheckMethod.RULES and ruled.verdict is not Verdict.SUPPORTED
    remarks = []
    if asked:
        shown = [show_passage(*passage) for passage in known]
        quotes = [item.text for item in shown]
        # The term of a definition and the heading above a passage are in its title.
        about = [*(item.title for item in shown), question]
        pages = list(dict.fromkeys(item.page for item in cited))
        found = find_differences(claim.stated, quotes, about, language, pages=pages, numbering=claim.numbering)
        found += find_code_names(claim.stated, [*quotes, *about])
        asked_about = filter(None, (_remark(difference, claim, pages) for difference in found))
        remarks = list(dict.fromkeys(asked_about))[:MAX_REMARKS]
    return {"ruled": ruled.with_fields(claim_id=claim.id), "asked": asked, "remarks": remarks}


def _remark(difference: ClaimJudgement, claim: Claim, pages: Sequence[str]) -> str:
    """Return what to ask a checker about a difference; empty for a figure or a name that only a cell's row head has.

    Of a name that a page has at another place, or a number as long as a code, the checker learns that: it may be
    another form of what the passages say, or another thing.
    """
    if claim.cell and difference.words and difference.words not in claim.text:
        return ""
    is_named = isinstance(difference.reason, Message) and difference.reason.id == NAMED_NOWHERE
    is_code = difference.verdict is Verdict.UNSUPPORTED and LONG_NUMBER.fullmatch(difference.words) is not None
    if is_named or is_code:
        name = re.compile(rf"(?<!\w){re.escape(difference.words)}(?!\w)", re.IGNORECASE)
        if any(map(name.search, pages)):
            return NAMED_ELSEWHERE.format(name=difference.words)
    return difference.reason


def select_open(claims: Claims, material: Material, known: Collection[str]) -> list[checking.AskedClaim]:
    """Return the claims that need a checker, each once, most important first, without the `known` ones."""
    unchecked = {
        claim.fingerprint: claim
        for claim in sorted(claims, key=lambda claim: -claim.importance)
        if claim.asked and claim.fingerprint not in known
    }
    return [to_asked(claim, material) for claim in unchecked.values()]


def draw_controls(
    claims: Claims, material: Material, asked: checking.AskedEntry, at_once: int = 0
) -> list[checking.AskedClaim]:
    """Return statements of a draft for the calls in which `asked` is asked about, with passages that speak of something
    else.

    Unlike invented ones they look like any other statement of a call: they have as many passages, or with the sections
    of a second look one of these, and another text has others. Nothing near the passages that a statement cites is
    taken for it, and nothing that shares more than a few words with it. `at_once` are the statements of one call, by
    default those of calls that the sizes of the statements make necessary.
    """
    language = material.entry.language
    at_once = at_once or claims_per_call([len(item.compact_json()) for item in asked.items])
    wanted = CONTROLS_PER_CALL * math.ceil(len(asked.items) / at_once)
    seed = [item.fingerprint for item in asked.items]
    texts = {section.id: Statement(section.text, language).stems for section in asked.sections}
    controls: list[checking.AskedClaim] = []
    for claim in sorted(claims, key=lambda claim: long_hash(*seed, claim.fingerprint)):
        stems = Statement(claim.words, language).stems
        if not claim.evidence_ids or len(stems) < MIN_CONTROL_STEMS:
            continue
        # Those of a page that it cites come first: the harder it is to see, the more a control shows.
        pages = {material.passages[key][0].source_id for key in claim.evidence_ids if key in material.passages}
        foreign = sorted(
            (key for key, others in material.shown_stems.items() if others and _is_foreign(stems, others)),
            key=lambda key: (material.passages[key][0].source_id not in pages, long_hash(claim.fingerprint, key)),
        )
        keys = [key for key in foreign if _is_apart(key, claim, material)][: min(len(claim.evidence_ids), MOST_FOREIGN)]
        if not keys:
            continue
        fingerprint = claim_id(claim.words, [*keys, CONTROL])
        sections = [
            section.id
            for section in asked.sections
            if section.source_id not in pages and _is_foreign(stems, texts[section.id])
        ]
        controls.append(
            to_asked(claim, material).with_fields(
                fingerprint=fingerprint,
                passages=show_passages(keys, material),
                sections=sorted(sections, key=lambda name: long_hash(claim.fingerprint, name))[:1],
                remarks=[],
            )
        )
        if len(controls) == wanted:
            break
    return controls


def _is_foreign(stems: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a text has hardly any of the words of a statement, by their stems."""
    return len(stems & others) <= MAX_CONTROL_SHARE * len(stems)


def _is_apart(key: str, claim: checking.ExtractedClaim, material: Material) -> bool:
    """Return whether a passage is far from all that a claim cites: of another source, or of another part of it."""
    item = material.passages[key][0]
    cited = [material.passages[name][0] for name in claim.evidence_ids if name in material.passages]
    return all(
        item.source_id != other.source_id
        or item.start - other.end > CONTROL_DISTANCE
        or other.start - item.end > CONTROL_DISTANCE
        for other in cited
    )


def is_judged(answer: checking.ClaimAnswer | None) -> bool:
    """Return whether an answer has a verdict."""
    return answer is not None and answer.verdict is not Verdict.UNVERIFIED


def to_asked(claim: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """Return a claim in the form shown to checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=claim.fingerprint,
        text=claim.text,
        place=claim.place,
        passages=show_passages(claim.evidence_ids[:MAX_PASSAGES], material),
        remarks=claim.remarks,
    )


def show_passages(identities: Sequence[str], material: Material) -> list[checking.ShownPassage]:
    """Return the passages with these ids and the text around them, where their texts are available.

    The lines above several of one listing are shown once, with the last of them.
    """
    keys = [key for key in identities if key in material.passages]
    last: dict[tuple[str, int], int] = {}
    for item, _, text in (material.passages[key] for key in keys):
        if (listing := listing_above(text, item.start)) is not None:
            last[item.source_id, listing] = max(item.start, last.get((item.source_id, listing), 0))
    shown = []
    for key in keys:
        item, _, text = material.passages[key]
        passage = material.show(key)
        listing = listing_above(text, item.start)
        if listing is not None and item.start < last[item.source_id, listing]:
            passage = passage.with_fields(before=text_around(text, item.start, item.end)[0])
        shown.append(passage)
    return shown


def conclude(claims: Claims, answers: Answers) -> list[ClaimVerdict]:
    """Return the verdict on each claim: the checker's if it was asked, else that of the rules.

    Without a usable answer a difference that the rules found counts; other claims are `UNVERIFIED`.
    """
    verdicts = []
    for claim in claims:
        answer = answers.get(claim.fingerprint)
        if not claim.asked or (not is_judged(answer) and claim.ruled.verdict in WRONG):
            verdict = claim.ruled
        elif answer is None:
            verdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
        else:
            method = CheckMethod.MODEL if is_judged(answer) else CheckMethod.NONE
            quoted = QUOTE_BREAK.join(answer.quotes)
            reason = answer.reason or (Message("reason_passages_say", words=quoted) if quoted else "")
            verdict = ClaimVerdict(
                claim_id="", verdict=answer.verdict, method=method, reason=reason, lacking=answer.lacking
            )
        verdicts.append(verdict.with_fields(claim_id=claim.id))
    return verdicts
