"""Corrections of claims that did not pass, as pure functions.

What a second look left in doubt gets the sentence that a corrector proposes, which is judged like any sentence of a
draft. A wrong statement without one is removed, even if it is the only one in its section; but what a corrector keeps
or a passage may support stays, marked, unless it is contradicted. If more than two of those that would go have evidence
in the run, none goes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from activities.reporting.claims import claim_id
from activities.reporting.drafts import MARKDOWN_TYPE, describe_draft, parse_draft
from activities.reporting.references import KnownAddresses, without_source_lists
from activities.reporting.tree import (
    Block,
    Blocks,
    CitationMark,
    Inline,
    Run,
    Sentence,
    change_sentences,
    parse_plain_text,
    tidy,
    write,
)
from activities.verifying.adoption import Adopted
from activities.verifying.further_passages import Unsupported, cited_elsewhere, related_to, search_pages
from activities.verifying.material import (
    SCORES,
    WRONG,
    Answers,
    Claims,
    Material,
    conclude,
    extract_claims,
    show_passages,
    to_asked,
)
from contracts import checking
from contracts.addresses import digest
from contracts.checking import CorrectionAction
from contracts.evidence import ClaimVerdict, DocumentRef, Evidence, ReportDraft, Verdict
from contracts.sentences import Message
from providers.verification.rules import find_differences, shared_words

MAX_SEAM_WORDS: Final = 2
"""Words that a statement may lose where it is cut in two: "and", "since"."""
MAX_LOST: Final = 2
"""Removed statements with evidence in the run from which the check is taken to be wrong, not the report."""
EVIDENT_SHARE: Final = 0.8
"""Share of a statement's words from which a passage that differs in no figure or name is evidence for it."""
MAX_DOUBTFUL: Final = 20
"""Claims that a model may correct in one round."""
DOUBTFUL: Final = (*WRONG, Verdict.PARTIAL, Verdict.NOT_ENOUGH_INFORMATION)
SPLIT_OFF: Final = Message("reason_split_off")
UNDECIDED: Final = (Verdict.NOT_ENOUGH_INFORMATION, Verdict.UNVERIFIED)
REMOVED_CELL: Final = "–"
"""What stands in a cell whose statement was removed."""
WORD: Final = re.compile(r"\w+(?:[.,'’-]\w+)*")
SHORT_WORD: Final = 3  # letters of a word whose loss is not named


def find_doubtful(
    claims: Claims, verdicts: Sequence[ClaimVerdict], material: Material, answers: Answers | None = None
) -> checking.AskedEntry:
    """Return the claims to correct, most important first, with further passages that may support them.

    After a second look, of which `answers` tells, these are the passages in which the checker found the deciding words.
    Quoted passages are not corrected: no sentence can replace them.
    """
    chosen = [number for number, claim in enumerate(claims) if not claim.row and verdicts[number].verdict in DOUBTFUL]
    chosen.sort(key=lambda number: (-claims[number].importance, SCORES[verdicts[number].verdict], number))
    chosen = chosen[:MAX_DOUBTFUL]
    looked = {number: answer for number in chosen if (answer := _second_look(claims[number], answers or {}))}
    faults = {number: _fault(claims[number], answers or {}) for number in chosen}
    # What attaches a condition to a statement, or says it with less force, is in the passages that it cites.
    known = (checking.Fault.CONDITION, checking.Fault.WEAKER)
    searched = [number for number in chosen if number not in looked and faults[number] not in known]
    related = {number: _quoted(claims[number], answers or {}) for number in chosen}
    for number in searched:
        near = related_to(claims[number], material, _beside(claims, number), verdicts[number].lacking)
        related[number] = list(dict.fromkeys([*related[number], *claims[number].others, *near]))
    found = {number: list[Evidence]() for number in chosen}
    # Only a model can tell whether a passage supports a statement.
    open_ones = searched if material.by_model else []
    if open_ones:
        statements = [
            Unsupported(
                claims[number].words, claims[number].evidence_ids, related[number], lacking=verdicts[number].lacking
            )
            for number in open_ones
        ]
        found |= dict(zip(open_ones, search_pages(statements, material), strict=True))
    return checking.AskedEntry(
        items=[
            to_asked(claims[number], material).with_fields(
                number=number,
                verdict=verdicts[number].verdict,
                reason=verdicts[number].reason,
                lacking=verdicts[number].lacking,
                fault=faults[number],
                others=show_passages(
                    _further(claims[number], related.get(number, []), found[number], verdicts[number].lacking),
                    material.with_found(found[number]),
                ),
                found=[*found[number], *_new_evidence(related.get(number, []), material)],
            )
            for number in chosen
        ]
    )


def _quoted(claim: checking.ExtractedClaim, answers: Answers) -> list[str]:
    """Return the passages whose words decide about a claim, by its answer."""
    answer = answers.get(claim.fingerprint)
    return list(answer.evidence_ids) if answer is not None else []


def _fault(claim: checking.ExtractedClaim, answers: Answers) -> checking.Fault | None:
    answer = answers.get(claim.fingerprint)
    return answer.fault if answer is not None else None


def can_be_mended(doubtful: checking.AskedClaim, claim: checking.ExtractedClaim) -> bool:
    """Return whether a corrector may do anything else than keep a statement.

    What no passage speaks of can only be cut off, and that only at the beginning or the end of a sentence.
    """
    if doubtful.verdict is Verdict.NOT_ENOUGH_INFORMATION:
        return bool(doubtful.others)
    is_missing = doubtful.verdict is Verdict.PARTIAL and doubtful.fault is checking.Fault.MISSING
    if not is_missing or not doubtful.lacking:
        return True
    return not claim.cell and _is_at_an_edge(claim.text, doubtful.lacking)


def _is_at_an_edge(text: str, parts: Sequence[str]) -> bool:
    """Return whether the stretch of a statement that holds all of some parts is its beginning or its end."""
    places = [(start, start + len(part)) for part in parts if (start := text.find(part)) >= 0]
    if not places:
        return True
    label = text.partition(": ")[0] if ": " in text else ""
    first = min(start for start, _ in places)
    before = len(WORD.findall(text[len(label) if first > len(label) else 0 : first]))
    behind = len(WORD.findall(text[max(end for _, end in places) :]))
    return (before <= MAX_SEAM_WORDS) is not (behind <= MAX_SEAM_WORDS)


def _second_look(claim: checking.ExtractedClaim, answers: Answers) -> checking.ClaimAnswer | None:
    answer = answers.get(claim.fingerprint)
    if answer is None or not answer.is_second:
        return None
    return answer


def _further(
    claim: checking.ExtractedClaim, related: Sequence[str], found: Sequence[Evidence], lacking: Sequence[str]
) -> list[str]:
    """Return the further passages of a claim; those that were found for the parts a checker named come first."""
    of_pages = [item.id for item in found]
    keys = dict.fromkeys([*of_pages, *related] if lacking else [*related, *of_pages])
    return [key for key in keys if key not in claim.evidence_ids]


def _new_evidence(keys: Iterable[str], material: Material) -> list[Evidence]:
    return [material.found_by_id[key] for key in keys if key in material.found_by_id]


def _beside(claims: Claims, number: int) -> list[str]:
    """Return the passages cited by the claims before and after one under the same headings, nearest first.

    A sentence often concludes from the one before it, whose citations it does not repeat.
    """
    claim = claims[number]
    near = (claims[place] for place in (number - 1, number + 1) if 0 <= place < len(claims))
    keys = [key for other in near if other.place.headings == claim.place.headings for key in other.evidence_ids]
    return [key for key in dict.fromkeys(keys) if key not in claim.evidence_ids]


def try_proposals(
    draft: str, proposals: Sequence[checking.Proposal], material: Material
) -> list[checking.TriedProposal]:
    """Return the first proposal for each claim with the claims of its sentences."""
    text = DraftText(draft, material)
    tried: dict[int, checking.TriedProposal] = {}
    for proposal in proposals:
        key = proposal.number
        claim = material.entry.claims[proposal.number]
        sentence, rest = text.corrected(claim, proposal, material.registry)
        if not sentence or key in tried or (claim.cell and rest):  # a cell is one claim, which has one mark
            continue
        claims = text.claims_of(claim, sentence, material)
        of_rest: list[checking.ExtractedClaim] = []
        if rest:
            before = " ".join(filter(None, (claim.place.before, *(part.text for part in claims))))
            if has_rest_first(claim.text, proposal):
                before = claim.place.before
            of_rest = text.claims_of(claim, rest, material, before)
        tried[key] = checking.TriedProposal(proposal=proposal, claims=[*claims, *of_rest], rest_claims=len(of_rest))
    return list(tried.values())


def seek_for_rests(
    tried: Sequence[checking.TriedProposal], material: Material
) -> tuple[list[checking.TriedProposal], list[Evidence]]:
    """Return the proposals, the rests of those that split with passages that may support them, and the new passages.

    A rest is a statement of its own, for which other passages are the best: those of the pages read, and those that the
    report cites where it says the same.
    """
    if not material.by_model:
        return list(tried), []
    rests = [part for item in tried for part in item.rest]
    found = search_pages([Unsupported(part.words, part.evidence_ids) for part in rests], material)
    further = {id(part): items for part, items in zip(rests, found, strict=True)}

    def with_passages(part: checking.ExtractedClaim, proposal: checking.Proposal) -> checking.ExtractedClaim:
        of_pages = (each.id for each in further[id(part)])
        keys = dict.fromkeys([*proposal.evidence_ids, *cited_elsewhere(part, material), *of_pages])
        others = [key for key in keys if key not in part.evidence_ids]
        is_open = part.ruled.verdict is not Verdict.SUPPORTED
        return part.with_fields(asked=is_open and (part.asked or bool(others)), others=others)

    extended = [
        item.with_fields(claims=[*item.main, *(with_passages(part, item.proposal) for part in item.rest)])
        for item in tried
    ]
    return extended, [each for items in found for each in items]


@dataclass(frozen=True)
class Chosen:
    """The corrections of a draft."""

    proposals: list[checking.Proposal]
    """One per corrected claim, in the order of the claims."""
    corrections: list[checking.Correction]
    """A record of each."""
    answers: dict[str, checking.ClaimAnswer]
    """Answers about claims of the new draft that were asked about in another form."""
    evidence: list[Evidence] = field(default_factory=list)
    """Passages of pages that the corrections cite, and that the run did not have."""
    undone: int = 0
    """Removals that were not made, because too many of the statements have evidence in the run."""


def choose_corrections(
    claims: Claims,
    tried: Sequence[checking.TriedProposal],
    answers: Answers,
    material: Material,
    actions: Mapping[int, CorrectionAction] | None = None,
) -> Chosen:
    """Choose for each claim the mildest proposal that passes, else a removal if it must go; others keep their mark.

    `actions` are those that a corrector proposed, by the index of the claim.
    """
    verdicts = conclude(claims, answers)
    proposals: dict[int, checking.Proposal] = {}
    corrections: dict[int, checking.Correction] = {}
    more_answers = dict[str, checking.ClaimAnswer]()
    removed = list[int]()
    in_order = sorted(tried, key=lambda item: checking.ACTION_ORDER.index(item.proposal.action))
    for number, (claim, judged) in enumerate(zip(claims, verdicts, strict=True)):
        options = (item for item in in_order if item.proposal.number == number)
        passing = (_pass(item, claim, judged.verdict, answers) for item in options)
        passed = next((option for option in passing if option), None)
        if passed is None and _must_go(claim, judged.verdict, (actions or {}).get(number)):
            proposal = checking.Proposal(number=number, action=CorrectionAction.REMOVE, reason=judged.reason)
            passed = Passed(proposal, "", judged.verdict)
            removed.append(number)
        if passed is None:
            continue
        proposals[number] = proposal = passed.proposal
        more_answers |= passed.answers
        lost = ""
        if passed.after:
            lost = _missing_words(claim.text, passed.after)
        corrections[number] = checking.Correction(
            claim_id=claim.id,
            section=claim.section,
            action=proposal.action,
            before=claim.text,
            after=passed.after,
            split_off=passed.split_off,
            dropped=proposal.dropped or lost,
            reason=proposal.reason,
            verdict=passed.verdict,
        )
    with_evidence = [number for number in removed if has_evidence(claims[number], material)]
    # What no passage contradicts and one may support is marked; of too many the check itself is in doubt.
    is_doubtful = len(with_evidence) > MAX_LOST
    if is_doubtful:
        staying = removed
    else:
        staying = [n for n in with_evidence if verdicts[n].verdict is Verdict.UNSUPPORTED]
    made = [number for number in corrections if number not in staying]
    cited = {key for n in made for key in (*proposals[n].evidence_ids, *proposals[n].rest_evidence_ids)}
    return Chosen(
        [proposals[n] for n in made],
        [corrections[n] for n in made],
        more_answers,
        [item for key, item in material.found_by_id.items() if key in cited],
        len(removed) * is_doubtful,
    )


def _must_go(claim: checking.ExtractedClaim, verdict: Verdict, action: CorrectionAction | None) -> bool:
    """Return whether a claim without a remedy is removed: a contradicted one, and an unsupported one.

    What a corrector keeps stays with its mark: it may be advice that the report leads to, which no passage states. So
    does a statement without a citation of its own, which the one that counts for it may not have been meant for.
    """
    if claim.row or claim.names_row or verdict not in WRONG:
        return False
    return verdict is Verdict.CONTRADICTED or (action is not CorrectionAction.KEEP and not claim.shared)


@dataclass(frozen=True)
class Passed:
    """A proposal that passes."""

    proposal: checking.Proposal
    """In the form in which it passes."""
    after: str
    """The plain text of its sentences."""
    verdict: Verdict
    split_off: list[str] = field(default_factory=list)
    """The sentences among them that were split off."""
    answers: Mapping[str, checking.ClaimAnswer] = field(default_factory=dict)
    """Answers about its claims under their fingerprints in the new draft."""


def _pass(
    tried: checking.TriedProposal, claim: checking.ExtractedClaim, previous: Verdict, answers: Answers
) -> Passed | None:
    proposal = tried.proposal
    verdicts = [item.verdict for item in conclude(tried.main, answers)]
    of_rest = [item.verdict for item in conclude(tried.rest, answers)]
    worst = min(verdicts, key=SCORES.__getitem__, default=Verdict.UNVERIFIED)
    # A softened statement need only be better supported than before.
    enough = Verdict.PARTIAL if proposal.action is CorrectionAction.SOFTEN else Verdict.SUPPORTED
    if SCORES[worst] <= SCORES[previous] or SCORES[worst] < SCORES[enough]:
        return None
    if proposal.rest and not is_cut(claim.text, proposal):
        return None
    # What no passage contradicts is marked, not dropped.
    if proposal.dropped and previous is not Verdict.CONTRADICTED:
        return None
    after = " ".join(part.text for part in tried.main)
    if Verdict.CONTRADICTED in of_rest:
        return Passed(proposal.with_fields(rest="", dropped=proposal.rest), after, worst)
    cited = _cited_by_rest(tried, of_rest, answers)
    called = dict[str, checking.ClaimAnswer]()
    for part, verdict in zip(tried.rest, of_rest, strict=True):
        fingerprint = claim_id(part.words, cited)
        answer = answers.get(part.fingerprint, checking.ClaimAnswer(fingerprint=fingerprint))
        if verdict in UNDECIDED:
            answer = checking.ClaimAnswer(fingerprint=fingerprint, verdict=Verdict.UNSUPPORTED, reason=SPLIT_OFF)
        called[fingerprint] = answer.with_fields(fingerprint=fingerprint)
    split_off = [
        part.text for part, verdict in zip(tried.rest, of_rest, strict=True) if verdict is not Verdict.SUPPORTED
    ]
    parts = [after, *(part.text for part in tried.rest)]
    if has_rest_first(claim.text, proposal):
        parts = [*parts[1:], after]
    whole = " ".join(parts)
    return Passed(proposal.with_fields(rest_evidence_ids=cited), whole, worst, split_off, called)


def _cited_by_rest(tried: checking.TriedProposal, verdicts: Sequence[Verdict], answers: Answers) -> list[str]:
    """Return what the rest of a split statement cites: the passages quoted for it if they show all of it, else what was
    left to it of the citations of the whole, and those quoted for a part of it.
    """
    left = [key for part in tried.rest for key in part.evidence_ids]
    quoted = [
        key
        for part, verdict in zip(tried.rest, verdicts, strict=True)
        if verdict is Verdict.SUPPORTED and part.fingerprint in answers
        for key in answers[part.fingerprint].evidence_ids
    ]
    is_shown = all(
        verdict is Verdict.SUPPORTED and part.fingerprint in answers
        for part, verdict in zip(tried.rest, verdicts, strict=True)
    )
    return list(dict.fromkeys(quoted if is_shown and quoted else [*left, *quoted]))


def _missing_words(before: str, after: str) -> str:
    """Return the longer words and the numbers of a statement that its correction does not have."""
    remaining = {word.casefold() for word in WORD.findall(after)}
    missing = [word for word in WORD.findall(before) if word.casefold() not in remaining]
    return ", ".join(dict.fromkeys(word for word in missing if len(word) > SHORT_WORD or word.isdecimal()))


def has_evidence(claim: checking.ExtractedClaim, material: Material) -> bool:
    """Return whether a passage of the run has nearly all words of a claim, and every figure and name of it."""
    language = material.entry.language
    question = material.entry.query
    for key in (*claim.evidence_ids, *related_to(claim, material), *material.found_by_id):
        if key in material.passages:
            item, title, text = material.passages[key]
            quote = text[item.start : item.end]
            about = [part for part in (title, item.heading, question) if part]
            (share,) = shared_words(claim.words, [quote], language)
            if share >= EVIDENT_SHARE and not find_differences(claim.words, [quote], about, language):
                return True
    return False


class DraftText:
    """The sentences of a draft, by the claims that they make; the material has the passages that they cite."""

    def __init__(self, draft: str, material: Material) -> None:
        self._material = material
        self.blocks = parse_draft(draft)
        self._spans = write(self.blocks).spans

    def sentences_of(self, claim: checking.ExtractedClaim) -> list[Sentence]:
        """Return the sentences of a claim."""
        return [one for one, (start, end) in self._spans.items() if claim.start <= start and end <= claim.end]

    def corrected(
        self, claim: checking.ExtractedClaim, proposal: checking.Proposal, registry: KnownAddresses
    ) -> tuple[tuple[Inline, ...], tuple[Inline, ...]]:
        """Return the new sentence of a claim and the rest that is split off, each with its citation.

        Both are empty for a removal. The lead word and the emphasis of the old sentence stay.
        """
        old = tuple(inline for sentence in self.sentences_of(claim) for inline in sentence.inlines)
        runs = [inline for inline in old if isinstance(inline, Run)]
        text, rest = (registry.strip(parse_plain_text(part)) for part in (proposal.text, proposal.rest))
        evidence_ids = tuple(proposal.evidence_ids)
        if proposal.action is CorrectionAction.CITE:
            return _cite_more(old, evidence_ids, self._material), ()
        if proposal.action is CorrectionAction.REMOVE or not text:
            return (), ()
        if not rest:
            return _cite(_in_style_of(runs, text), evidence_ids), ()
        rest_ids = tuple(proposal.rest_evidence_ids or _left_to_rest(claim, proposal))
        if has_rest_first(claim.text, proposal):
            return _cite([Run(text)], evidence_ids), _cite(_in_style_of(runs, rest), rest_ids)
        return _cite(_in_style_of(runs, text), evidence_ids), _cite([Run(rest)], rest_ids)

    def claims_of(
        self, claim: checking.ExtractedClaim, inlines: tuple[Inline, ...], material: Material, before: str | None = None
    ) -> list[checking.ExtractedClaim]:
        """Return the claims of a sentence or a cell in place of that of a claim, with its place in the draft.

        `before` is the text before the sentence, if it is another than before the claim.
        """
        if claim.cell:
            table, cell = self._with_cell(claim, inlines)
            written = write([table])
            start, end = written.spans[cell]
            found = [each for each in extract_claims(written.text, material) if each.start <= start and end <= each.end]
        else:
            written = write([Block("paragraph", (Sentence(inlines),))])
            found = extract_claims(written.text, material)
        if before is None:
            place = claim.place
        else:
            place = claim.place.with_fields(before=before)
        return [each.with_fields(place=place) for each in found]

    def _with_cell(self, claim: checking.ExtractedClaim, inlines: tuple[Inline, ...]) -> tuple[Block, Sentence]:
        """Return the header and the row of a cell as a table in which the cell has these inlines, and that cell."""
        parts = self.sentences_of(claim)
        first = parts[0]
        changed = _put_into(parts, inlines)
        rows = ((table, row) for table in _tables(self.blocks) for row in table.rows[1:])
        table, row = next((table, row) for table, row in rows if any(cell is first for cell in row))
        return replace(table, rows=(table.rows[0], tuple(changed.get(cell, cell) for cell in row))), changed[first]

    def apply(self, claims: Claims, proposals: Sequence[checking.Proposal], registry: KnownAddresses) -> Blocks:
        """Return the tree with these proposals applied, at most one per claim.

        A removed cell becomes a dash, and a row of which only the first cell is left goes.
        """
        changed: dict[Sentence, Sentence] = {}
        for proposal in proposals:
            claim = claims[proposal.number]
            new, rest = self.corrected(claim, proposal, registry)
            inlines = new
            if rest:
                first, last = (rest, new) if has_rest_first(claim.text, proposal) else (new, rest)
                inlines = (*first, Run(" "), *last)
            if claim.cell and not inlines:
                inlines = (Run(REMOVED_CELL),)
            changed |= _put_into(self.sentences_of(claim), inlines)
        # A sentence or a cell that shares the citation of one that changes gets it for itself.
        group_of = {one: number for number, group in enumerate(_groups(self.blocks)) for one in group}
        touched = {group_of[sentence] for sentence in changed}
        for claim in claims:
            parts = self.sentences_of(claim)
            shares = claim.evidence_ids and not claim.row and not any(part.marks for part in parts)
            if shares and parts[0] not in changed and group_of[parts[0]] in touched:
                runs = [inline for inline in parts[0].inlines if isinstance(inline, Run)]
                changed[parts[0]] = replace(parts[0], inlines=_cite(runs, tuple(claim.evidence_ids)))
        return _without_emptied_rows(change_sentences(self.blocks, lambda sentence: changed.get(sentence, sentence)))


def _left_to_rest(claim: checking.ExtractedClaim, proposal: checking.Proposal) -> list[str]:
    """Return the citations of a statement that the supported part of a split does not need; all if it needs all."""
    left = [key for key in claim.evidence_ids if key not in proposal.evidence_ids]
    return left or list(claim.evidence_ids)


def _put_into(parts: Sequence[Sentence], inlines: tuple[Inline, ...]) -> dict[Sentence, Sentence]:
    """Return the sentences of a claim with new inlines: all in the first one, but citations in a cell of their own."""
    first, *others = parts
    if others and others[-1].marks and not others[-1].words:
        runs = tuple(inline for inline in inlines if isinstance(inline, Run))
        marks = tuple(inline for inline in inlines if isinstance(inline, CitationMark))
        return {first: replace(first, inlines=tuple(tidy(runs)))} | {
            other: replace(other, inlines=marks if other is others[-1] else ()) for other in others
        }
    return {first: replace(first, inlines=inlines)} | {other: replace(other, inlines=()) for other in others}


def _tables(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.kind == "table":
            yield block
        for part in block.parts:
            yield from _tables(part)


def _groups(blocks: Iterable[Block]) -> Iterator[tuple[Sentence, ...]]:
    """Yield the sentences that may share a citation: those of a paragraph, and the cells of a row."""
    for block in blocks:
        yield block.sentences
        yield from block.rows
        for part in block.parts:
            yield from _groups(part)


def _without_emptied_rows(blocks: Blocks) -> Blocks:
    """Drop the rows of which removals left the first cell alone, and tables without other rows."""
    remaining = []
    for block in blocks:
        head, *rows = block.rows or ((),)
        rows = [row for row in rows if not _is_emptied(row)]
        parts = tuple(_without_emptied_rows(part) for part in block.parts)
        if rows or block.kind != "table" or len(block.rows) < 2:
            remaining.append(replace(block, rows=(head, *rows) if block.rows else (), parts=parts))
    return tuple(remaining)


def _is_emptied(row: Sequence[Sentence]) -> bool:
    others = {cell.words for cell in row[1:]}
    return REMOVED_CELL in others and others <= {REMOVED_CELL, ""}


def is_cut(text: str, proposal: checking.Proposal) -> bool:
    """Return true if a split cuts a statement at one place and leaves its words as they are.

    The supported part may be the first or the last. Real models also offered parts taken out of the middle, whose two
    sentences read worse than the mark of one.
    """
    return _is_cut_into(text, proposal.text, proposal.rest) or has_rest_first(text, proposal)


def has_rest_first(text: str, proposal: checking.Proposal) -> bool:
    """Return true if a split cuts off the beginning of a statement, and not its end."""
    is_split = bool(proposal.text and proposal.rest)
    return is_split and _is_cut_into(text, proposal.rest, proposal.text)


def _is_cut_into(text: str, beginning: str, end: str) -> bool:
    lead, whole, first, rest = (
        [word.casefold() for word in WORD.findall(part)]
        for part in (text.partition(": ")[0] if ": " in text else "", text, beginning, end)
    )
    if lead and first[: len(lead)] != lead:  # the lead word of a list item stays by itself
        whole = whole[len(lead) :]
    seam = len(whole) - len(first) - len(rest)
    return 0 <= seam <= MAX_SEAM_WORDS and whole[: len(first)] == first and whole[len(whole) - len(rest) :] == rest


def _cite(runs: Sequence[Inline], evidence_ids: tuple[str, ...]) -> tuple[Inline, ...]:
    """Return a sentence with its citation before its final full stop."""
    *first, last = runs
    if not evidence_ids or not isinstance(last, Run):
        return tuple(runs)
    stem = last.text.rstrip().rstrip(".!?")
    end = last.text.rstrip()[len(stem) :]
    final = [last.with_text(end)] if end else []
    return (*first, last.with_text(stem.rstrip()), Run(" "), CitationMark(evidence_ids), *final)


def _cite_more(inlines: tuple[Inline, ...], evidence_ids: tuple[str, ...], material: Material) -> tuple[Inline, ...]:
    """Return a sentence that cites these passages, too: each with the words of which it has most that have no passage.

    That is by the citation behind these words, or by a new one behind the last words; in doubt by the last.
    """
    places = [index for index, inline in enumerate(inlines) if isinstance(inline, CitationMark)]
    known = {key for index in places for key in _cited_by(inlines[index])}
    more = [key for key in evidence_ids if key not in known]
    parts = [
        (end, "".join(inline.text for inline in inlines[start:end] if isinstance(inline, Run)))
        for start, end in pairwise([0, *places, len(inlines)])
    ]
    if len(parts) > 1 and not WORD.search(parts[-1][1]):
        parts.pop()
    missing = {
        end: material.words_of(text).difference(
            *(_words_of_passage(key, material) for key in (_cited_by(inlines[end]) if end < len(inlines) else ()))
        )
        for end, text in parts
    }
    chosen: dict[int, list[str]] = {}
    for key in more:
        words = _words_of_passage(key, material)
        best = max(missing, key=lambda end: (len(missing[end] & words), end))
        chosen.setdefault(best, []).append(key)
    changed = [
        replace(inline, evidence_ids=(*inline.evidence_ids, *chosen.get(index, ())))
        if isinstance(inline, CitationMark)
        else inline
        for index, inline in enumerate(inlines)
    ]
    return _cite(changed, tuple(chosen.get(len(inlines), ())))


def _cited_by(inline: Inline) -> Sequence[str]:
    return inline.evidence_ids if isinstance(inline, CitationMark) else ()


def _words_of_passage(key: str, material: Material) -> frozenset[str]:
    """Return the words of a passage; none of one that is not known."""
    if key not in material.passages:
        return frozenset()
    item, _, text = material.passages[key]
    return material.words_of(text[item.start : item.end])


def _in_style_of(runs: Sequence[Run], text: str) -> list[Inline]:
    """Return a text with the lead word, the emphasis and the code of the runs of an old sentence, where it has them."""
    lead = runs[0] if runs and runs[0].bold and len(runs) > 1 else None
    if lead and not text.casefold().startswith(lead.text.rstrip(" .:").casefold()):
        text = f"{lead.text.strip()} {text}"
    styled: list[Inline] = []
    place = 0
    for run in runs:
        start = -1
        if run.text.strip() and run != Run(run.text):
            start = text.find(run.text.strip(), place)
        if run is lead and start < 0:
            start = 0 if text.casefold().startswith(run.text.strip().casefold()) else -1
        if start >= 0:
            end = start + len(run.text.strip())
            styled += [Run(text[place:start]), replace(run, text=text[start:end], link=None)]
            place = end
    return tidy([*styled, Run(text[place:])])


def to_plain_draft(markdown: str) -> str:
    """Return the draft in the form that is checked: rewritten from its tree, without lists of sources."""
    return write(without_source_lists(parse_draft(markdown))).text


def correct(
    draft: str, material: Material, tried: checking.CorrectedEntry, known: Answers
) -> tuple[Chosen, Material, ReportDraft, str]:
    """Apply the proposals that pass to a draft.

    Return the corrections, the material with the claims of the new draft, and that draft with its text, which is not
    stored yet.
    """
    claims = material.entry.claims
    chosen = choose_corrections(claims, tried.tried, known, material, tried.actions)
    return chosen, *_applied(draft, material, chosen)


def cite_further(draft: str, material: Material, adopted: Adopted) -> tuple[Chosen, Material, ReportDraft, str]:
    """Put the citations that a check found into a draft; the results are those of `correct`."""
    cited = {key for proposal in adopted.proposals for key in proposal.evidence_ids}
    evidence = [item for item in adopted.evidence if item.id in cited]
    chosen = Chosen(adopted.proposals, adopted.corrections, adopted.answers, evidence)
    return chosen, *_applied(draft, material, chosen)


def _applied(draft: str, material: Material, chosen: Chosen) -> tuple[Material, ReportDraft, str]:
    """Return the material with the claims of a corrected draft, and that draft with its text."""
    claims = material.entry.claims
    sentences = DraftText(draft, material.with_found(chosen.evidence))
    changed = sentences.apply(claims, chosen.proposals, material.registry)
    # Parsed again, as neighbours may merge, such as two lists that lost the paragraph between them.
    described, text = describe_draft(ReportDraft(document=material.entry.draft), parse_draft(write(changed).text))
    stored = DocumentRef(hash=digest(text), media_type=MARKDOWN_TYPE, size=len(text))
    evidence = [*material.entry.evidence, *chosen.evidence]
    entry = material.entry.with_fields(draft=stored, claims=extract_claims(text, material), evidence=evidence)
    return Material(entry, material.texts, material.by_model), described, text
