"""The claims of a draft with what they are compared with, and the verdicts on them."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from activities.reporting.claims import Claim, claim_id, find_claims
from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import CitedPassage, judge
from activities.reporting.passages import listing_above, show_passage
from activities.reporting.references import KnownAddresses
from activities.reporting.tree import write
from contracts import checking
from contracts.addresses import long_hash
from contracts.call_sizes import claims_per_call
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from contracts.sentences import Message
from providers.tokens.surroundings import text_around
from providers.verification.quantities import find_quantities
from providers.verification.rules import ClaimJudgement, Statement, exact_tokens, find_code_names, find_differences

Claims = Sequence[checking.ExtractedClaim]
Answers = Mapping[str, checking.ClaimAnswer]
"""Answers of checkers by the fingerprint of the claim."""

MAX_PASSAGES: Final = 16
"""Passages shown to a checker for one claim; hardly any cites more."""
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
    def shown_texts(self) -> dict[str, str]:
        """Each passage as it is shown: with title, heading and the text around it."""
        shown = {key: show_passage(*passage) for key, passage in self.evidence.items()}
        return {key: f"{passage.title}\n{passage.text}" for key, passage in shown.items()}

    @cached_property
    def shown_stems(self) -> dict[str, frozenset[str]]:
        """The stems of the content words of each passage as it is shown."""
        return {key: Statement(text, self.entry.language).stems for key, text in self.shown_texts.items()}

    @cached_property
    def shown_words(self) -> dict[str, frozenset[str]]:
        """The words of each passage as it is shown, as `words_of` returns them."""
        return {key: self.shown_stems[key] | exact_tokens(text) for key, text in self.shown_texts.items()}

    def words_of(self, text: str) -> frozenset[str]:
        """Return the stems of the content words of a text, its names in code, its options and its numbers."""
        return Statement(text, self.entry.language).stems | exact_tokens(text)

    @cached_property
    def citing(self) -> list[tuple[frozenset[str], checking.ExtractedClaim]]:
        """The claims of the draft that cite anything, each with its words."""
        return [(self.words_of(claim.words), claim) for claim in self.entry.claims if claim.evidence_ids]

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
    def word_counts(self) -> Counter[str]:
        """The number of the run's passages that show each word."""
        return Counter(word for shown in self.shown_words.values() for word in shown)

    def weight_of(self, words: Iterable[str]) -> float:
        """Return the weight of words together: more for one that few passages of the run show."""
        passages = max(1, len(self.shown_words))
        # Sorted, as sums of the same numbers in another order may differ.
        return sum(math.log(1 + passages / max(1, self.word_counts[word])) for word in sorted(words))

    def weights(self, words: str) -> dict[str, float]:
        """Return the weight of each stem of a text."""
        return {stem: self.weight_of([stem]) for stem in Statement(words, self.entry.language).stems}

    def shared_part(self, words: str, stems: frozenset[str]) -> float:
        """Return the weight of a text's words that these stems have, as a share of the whole, from 0 to 1."""
        wanted = Statement(words, self.entry.language).stems
        whole = self.weight_of(wanted)
        return self.weight_of(wanted & stems) / whole if whole else 0.0

    @cached_property
    def registry(self) -> KnownAddresses:
        """The addresses known to the run."""
        return KnownAddresses.of([source.url for source in self.entry.sources], self.entry.query)


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
                others=[],
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


def to_asked(claim: checking.ExtractedClaim, material: Material) -> checking.AskedClaim:
    """Return a claim in the form shown to checkers and correctors."""
    return checking.AskedClaim(
        fingerprint=claim.fingerprint,
        text=claim.text,
        place=claim.place,
        passages=show_passages(claim.evidence_ids[:MAX_PASSAGES], material),
        others=show_passages(claim.others, material),
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
        if not claim.asked or (not checking.is_judged(answer) and claim.ruled.verdict in WRONG):
            verdict = claim.ruled
        elif answer is None:
            verdict = ClaimVerdict(claim_id="", verdict=Verdict.UNVERIFIED, method=CheckMethod.NONE, reason=NOT_REACHED)
        else:
            method = CheckMethod.MODEL if checking.is_judged(answer) else CheckMethod.NONE
            quoted = QUOTE_BREAK.join(answer.quotes)
            reason = answer.reason or (Message("reason_passages_say", words=quoted) if quoted else "")
            verdict = ClaimVerdict(
                claim_id="", verdict=answer.verdict, method=method, reason=reason, lacking=answer.lacking
            )
        verdicts.append(verdict.with_fields(claim_id=claim.id))
    return verdicts
