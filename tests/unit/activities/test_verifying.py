"""Fingerprints, routing and corrections of claims, as pure functions."""

from dataclasses import replace

import pytest

from activities.reporting.claims import claim_key
from activities.reporting.drafts import parse_draft
from activities.reporting.passages import LISTING_CHARACTERS, show_passage
from activities.reporting.tree import Block, write
from activities.verifying.corrections import (
    MAX_LOST,
    DraftText,
    choose_corrections,
    correct,
    find_doubtful,
    is_cut,
    seek_for_rests,
    to_plain_draft,
    try_proposals,
)
from activities.verifying.further_passages import FOUND_CHARACTERS, Unsupported, related_to, search_pages
from activities.verifying.material import Material, conclude, extract_claims, select_open, show_passages
from contracts.addresses import digest
from contracts.checking import (
    CheckedSource,
    ClaimAnswer,
    ClaimsEntry,
    CorrectedEntry,
    Correction,
    CorrectionAction,
    ExtractedClaim,
    Proposal,
)
from contracts.evidence import CheckMethod, DocumentRef, Evidence, Verdict

TEXT = (
    "Preface. The store keeps 128 MB of pages in memory by default. Valkey was chosen over Redis by the operators. "
    "Whether it suffices depends on the load."
)
REFERENCE = DocumentRef(hash=digest(TEXT))
QUOTE = "The store keeps 128 MB of pages in memory by default."
OTHER = "Valkey was chosen over Redis by the operators."


def passage(identity: str, quote: str) -> Evidence:
    start = TEXT.index(quote)
    return Evidence(id=identity, source_id="src-1", start=start, end=start + len(quote), quote_hash=digest(quote))


MATERIAL = Material(
    ClaimsEntry(
        draft=REFERENCE,
        evidence=[passage("ev-1", QUOTE), passage("ev-2", OTHER)],
        sources=[CheckedSource(id="src-1", url="https://manual.test/", title="Manual", text=REFERENCE)],
    ),
    {REFERENCE.hash: TEXT},
    by_model=True,
)
DRAFT = f"""# Stores

## Summary

{QUOTE} [ev-1] The store keeps 512 MB of pages in memory by default. [ev-1]

## Details

The operators settled on Valkey in preference to its ancestor. [ev-2] Everyone agrees that this was a mistake.
"""


def test_a_key_keeps_the_order_of_words() -> None:
    """`A beats B` is another claim than `B beats A`; other passages make another one, their order does not."""
    assert claim_key("A beats B", ["ev-1"]) != claim_key("B beats A", ["ev-1"])
    assert claim_key("A  beats B", ["ev-2", "ev-1"]) == claim_key("A beats B", ["ev-1", "ev-2"])


def test_only_what_rules_leave_open_is_asked() -> None:
    """Word for word and uncited claims need no call; with a model all others do, a figure that differs as a question."""
    claims = extract_claims(DRAFT, MATERIAL)
    same, changed, paraphrase, uncited = claims
    assert (same.ruled.method, same.asked) == (CheckMethod.VERBATIM, False)
    assert (changed.ruled.verdict, changed.asked) == (Verdict.CONTRADICTED, True)
    assert (uncited.ruled.verdict, uncited.asked) == (Verdict.UNVERIFIED, False)
    assert (paraphrase.asked, paraphrase.remarks) == (True, [])
    first, second = select_open(claims, MATERIAL, set())
    assert (first.fingerprint, second.fingerprint) == (changed.fingerprint, paraphrase.fingerprint)
    assert first.remarks == ["The claim says “512 MB”; the cited passages say “128 MB”."]
    assert "by default. " in second.passages[0].before
    assert second.passages[0].after.startswith(" Whether it suffices")
    assert select_open(claims, MATERIAL, {first.fingerprint, second.fingerprint}) == []
    without_model = extract_claims(DRAFT, Material(MATERIAL.entry, MATERIAL.texts, by_model=False))
    assert not any(each.asked for each in without_model)


def test_lines_of_a_listing_come_with_those_above_them_once() -> None:
    """What a listing shows is said above its rows; the last of several rows brings the lines, and no other line does."""
    rows = [f"row{number} | value {number}" for number in range(60)]
    text = "\n".join(
        ["The types are listed by a command.", "", "```", 'Types of parser "default"', *rows, "```", "", "End."]
    )
    stored = DocumentRef(hash=digest(text))
    quotes = ("row7 | value 7", "row9 | value 9", "The types are listed")
    evidence = []
    for number, quote in enumerate(quotes):
        start = text.index(quote)
        place = {"start": start, "end": start + len(quote), "quote_hash": digest(quote)}
        evidence.append(Evidence(id=f"ev-{number}", source_id="src-1", **place))
    source = CheckedSource(id="src-1", url="https://manual.test/", title="Manual", text=stored)
    material = Material(
        ClaimsEntry(draft=stored, evidence=evidence, sources=[source]), {stored.hash: text}, by_model=True
    )
    first, second, third = show_passages(["ev-0", "ev-1", "ev-2"], material)
    assert 'parser "default"' not in first.before
    assert second.before.startswith('The types are listed by a command.\n\n```\nTypes of parser "default"\nrow0')
    assert third.before == ""
    (alone,) = show_passages(["ev-0"], material)
    assert 'Types of parser "default"' in alone.before
    far = Evidence(id="ev-9", source_id="src-1", start=text.index(rows[59]), end=text.index(rows[59]) + len(rows[59]))
    assert len(show_passage(far, "Manual", text.replace("value", "value" * 9)).before) <= LISTING_CHARACTERS


def answers_for(claims: list[ExtractedClaim], verdict: Verdict, *evidence_ids: str) -> dict[str, ClaimAnswer]:
    """One answer of a checker for all of the claims."""
    return {
        claim.fingerprint: ClaimAnswer(
            fingerprint=claim.fingerprint, verdict=verdict, reason="r", evidence_ids=list(evidence_ids)
        )
        for claim in claims
    }


@pytest.mark.parametrize("verdict", [Verdict.SUPPORTED, Verdict.PARTIAL, None])
def test_no_rule_overrules_a_checker(verdict: Verdict | None) -> None:
    """A figure that differs is what the checker says of it; only without an answer the rules count."""
    changed = extract_claims(DRAFT, MATERIAL)[1]
    answers = answers_for([changed], verdict) if verdict else {}
    (concluded,) = conclude([changed], answers)
    assert concluded.verdict is (verdict or Verdict.CONTRADICTED)
    assert concluded.method is (CheckMethod.MODEL if verdict else CheckMethod.RULES)


def material_with(draft: str) -> tuple[list[ExtractedClaim], Material]:
    """The claims of a draft, and the material with them."""
    claims = extract_claims(draft, MATERIAL)
    return claims, replace(MATERIAL, entry=MATERIAL.entry.model_copy(update={"claims": claims}))


def corrected_by(
    draft: str, proposals: list[Proposal], before: Verdict, *answers: tuple[str, Verdict, list[str]]
) -> tuple[str, list[Correction], list[Verdict]]:
    """The text, its corrections and its verdicts, where the checker answers about the tried sentences by their words."""
    draft = to_plain_draft(draft)
    claims, material = material_with(draft)
    known = answers_for([claim for claim in claims if claim.asked], before)
    tried = try_proposals(draft, proposals, material)
    for item in tried:
        for claim in item.claims:
            given = (part for part in answers if claim.text.startswith(part[0]) and claim.fingerprint not in known)
            if found := next(given, None):
                known |= answers_for([claim], found[1], *found[2])
    chosen, corrected, _, text = correct(draft, material, CorrectedEntry(before="", tried=tried), known)
    verdicts = conclude(corrected.entry.claims, known | chosen.answers)
    return text, chosen.corrections, [verdict.verdict for verdict in verdicts]


BOTH = "**Memory:** it keeps 128 MB, and the operators chose *Valkey*"


PAGE = """# Stores

## Settings

`pages_in_memory`
The size of the store, `128 MB` unless it is set.

`flush_delay`
Time between two writes, in seconds. There are two modes:

`eager`
every page is written at once

`lazy`
pages wait for the delay

## Operators

Valkey was chosen over Redis by the operators.
"""
ABOUT_MODES = "With lazy, pages wait for the delay"


def material_of_page(*drafted: str) -> tuple[str, list[ExtractedClaim], Material]:
    """A draft of these sentences, its claims and a run that read the page, of which it quotes the last sentence."""
    reference = DocumentRef(hash=digest(PAGE))
    start = PAGE.index(OTHER)
    item = Evidence(id="ev-1", source_id="src-1", start=start, end=start + len(OTHER), quote_hash=digest(OTHER))
    others = [CheckedSource(id="src-2", title="Harbour", text=DocumentRef(hash=digest(HARBOUR)))]
    entry = ClaimsEntry(
        draft=reference, evidence=[item], sources=[*others, CheckedSource(id="src-1", title="Stores", text=reference)]
    )
    material = Material(entry, {reference.hash: PAGE, digest(HARBOUR): HARBOUR}, by_model=True)
    draft = to_plain_draft(" ".join(f"{sentence} [ev-1]." for sentence in drafted))
    claims = extract_claims(draft, material)
    return draft, claims, replace(material, entry=material.entry.with_fields(claims=claims))


HARBOUR = "# Harbour\n\nIn the lazy season the ferries wait, as the pages of the log show."


def test_passages_of_the_pages_read_are_tried_for_a_doubtful_statement() -> None:
    """The best of the page that it cites come first, with the term that they define; none is what it cites already.

    Without a model, which alone can judge them, none is sought.
    """
    _, claims, material = material_of_page(ABOUT_MODES)
    found = search_pages([Unsupported(ABOUT_MODES, ["ev-1"])], material)[0]
    texts = {"src-1": PAGE, "src-2": HARBOUR}
    quotes = [texts[item.source_id][item.start : item.end] for item in found]
    assert quotes[0] == "`lazy`\npages wait for the delay"
    assert any(quote.startswith("In the lazy season") for quote in quotes[1:])
    assert OTHER not in quotes
    assert found[0].quote_hash == digest(quotes[0])
    verdicts = conclude(claims, answers_for(claims, Verdict.UNSUPPORTED))
    (doubtful,) = find_doubtful(claims, verdicts, material).items
    assert [item.id for item in doubtful.found] == [item.id for item in found]
    assert [each.evidence_id for each in doubtful.others] == [item.id for item in found]
    assert doubtful.others[0].title == "Stores § Settings"
    by_rules = replace(material, by_model=False)
    assert find_doubtful(claims, verdicts, by_rules).items[0].found == []


def test_a_passage_with_hardly_a_word_of_a_statement_is_not_tried() -> None:
    """Release notes and footers share a common word with anything; none of them is shown beside what fits."""
    fitting = "Lamps burn at night along the northern quay, where sailors of every nation read charts."
    footer = "Changes of this release: the northern office moved, and several addresses in the list were corrected."
    page = f"# Tower\n\n{fitting}\n\n## Release 7\n\n{footer}\n"
    reference = DocumentRef(hash=digest(page))
    entry = ClaimsEntry(draft=reference, sources=[CheckedSource(id="src-1", text=reference)])
    statement = "Along the northern quay lamps burn at night, so that sailors of every nation can read their charts."
    (found,) = search_pages([Unsupported(statement, [])], Material(entry, {digest(page): page}, by_model=True))
    assert [page[item.start : item.end] for item in found] == [fitting]


def test_a_checker_is_asked_about_a_name_in_code_that_no_passage_has() -> None:
    """Such a name has one form; the passages as they are shown and the question may have it."""
    sentences = ["The operators chose `max_pages` for Valkey", "The operators chose `max_lines` for Valkey"]
    _, _, material = material_of_page()
    material = replace(material, entry=material.entry.with_fields(query="What is max_lines?"))
    named, asked_for = extract_claims(to_plain_draft(" ".join(f"{one} [ev-1]." for one in sentences)), material)
    assert named.remarks[-1:] == ["“max_pages” is named in no cited passage."]
    assert asked_for.remarks == []


def test_the_term_of_a_definition_is_a_part_of_its_passage() -> None:
    """No remark asks for a name that the line above the cited passage gives."""
    quote = "There are two modes:"
    far = PAGE.replace("Time between", f"{'Time passes, and more. ' * 8}Time between")
    start = far.index(quote)
    item = Evidence(id="ev-1", source_id="src-1", start=start, end=start + len(quote), quote_hash=digest(quote))
    _, _, material = material_of_page()
    material = Material(material.entry.with_fields(evidence=[item]), {digest(PAGE): far}, by_model=True)
    named, other = extract_claims(
        to_plain_draft("There are two modes of flush_delay [ev-1]. There are two modes of pages_in_memory [ev-1]."),
        material,
    )
    assert named.remarks == []
    assert other.remarks == ["“pages_in_memory” is in no cited passage, but at another place of a page that it cites."]


def test_a_checker_learns_that_a_page_has_a_code_elsewhere() -> None:
    """A number of four digits is hardly there by chance; a shorter one is everywhere."""
    text = f"{QUOTE} A restart ends with 40001 or 77."
    stored = DocumentRef(hash=digest(text))
    item = Evidence(id="ev-1", source_id="src-1", start=0, end=len(QUOTE))
    source = CheckedSource(id="src-1", title="Manual", text=stored)
    far = text.replace(" A restart", f" {'It says more. ' * 40}A restart")
    stored = DocumentRef(hash=digest(far))
    entry = ClaimsEntry(draft=stored, evidence=[item], sources=[source.with_fields(text=stored)])
    (claim,) = extract_claims(
        "The store ends with 40001, 77 or 88888 [ev-1].", Material(entry, {stored.hash: far}, True)
    )
    assert claim.remarks == [
        "“40001” is in no cited passage, but at another place of a page that it cites.",
        "“77” is in no cited passage.",
        "“88888” is in no cited passage.",
    ]


def test_no_remark_asks_for_what_names_the_row_of_a_cell() -> None:
    """The checker sees the first cell of the row beside the cell, and judges the cell alone."""
    table = (
        "| Mode | Effect | Cost |\n|---|---|---|\n| mode_7 in 2031 | It holds 512 MB [ev-1] | Chosen by Zed [ev-1] |\n"
    )
    size, owner = extract_claims(to_plain_draft(table), MATERIAL)
    assert size.remarks == ["The claim says “512 MB”; the cited passages say “128 MB”."]
    assert owner.remarks == ["“Zed” is named in no cited passage."]


def test_what_a_statement_lacks_is_searched_before_what_it_has() -> None:
    """A part of a name in its passages is not that name; a passage with more words of it, all known, comes later."""
    known = "To set up the standby, restore a backup of the primary, and create the signal."
    again = "The signal makes the server a standby that restores a backup of the primary which was set up."
    lacking = "A standby connects to the server in `primary_address`."
    page = f"# Setup\n\n{known}\n\n## Signals\n\n{again}\n\n## Addresses\n\n{lacking}\n"
    reference = DocumentRef(hash=digest(page))
    start = page.index(known)
    item = Evidence(id="ev-1", source_id="src-1", start=start, end=start + len(known))
    entry = ClaimsEntry(draft=reference, evidence=[item], sources=[CheckedSource(id="src-1", text=reference)])
    statement = "To set up the standby, restore a backup, create the signal, and set primary_address of the primary."
    material = Material(entry, {digest(page): page}, by_model=True)
    (found,) = search_pages([Unsupported(statement, ["ev-1"])], material)
    assert [page[one.start : one.end] for one in found] == [lacking, again]


def test_what_a_passage_announces_is_tried_with_it() -> None:
    """A sentence that ends with a colon says nothing without its list, as far as that has room."""
    (found,) = search_pages(
        [Unsupported("The flush_delay has two modes, eager and lazy.", ["ev-1"])], material_of_page("X")[2]
    )
    text = PAGE[found[0].start : found[0].end]
    assert text.startswith("`flush_delay`")
    assert text.endswith("pages wait for the delay")


def test_a_long_text_is_searched_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that a statement cites are searched before all others."""
    monkeypatch.setattr("activities.verifying.further_passages.SEARCHED_CHARACTERS", len(PAGE))
    (found,) = search_pages([Unsupported(ABOUT_MODES, ["ev-1"])], material_of_page("X")[2])
    assert {item.source_id for item in found} == {"src-1"}


def test_of_a_long_paragraph_the_best_sentences_are_tried() -> None:
    """A citation leads to few sentences, which are whole."""
    filler = "Ferries leave the harbour at noon on weekdays. " * 30
    sentence = "The lamp of the tower burns at night."
    page = f"# Tower\n\n{filler}{sentence} {filler}"
    reference = DocumentRef(hash=digest(page))
    entry = ClaimsEntry(draft=reference, sources=[CheckedSource(id="src-1", text=reference)])
    (found,) = search_pages(
        [Unsupported("The lamp of the tower burns at night.", [])], Material(entry, {digest(page): page}, by_model=True)
    )
    text = page[found[0].start : found[0].end]
    assert sentence in text
    assert len(text) <= FOUND_CHARACTERS
    assert text[0].isupper()
    assert text.endswith(".")


def tried_at_page(
    draft: str, proposals: list[Proposal], known: dict[str, ClaimAnswer], material: Material
) -> CorrectedEntry:
    """What is tried for a draft, as the activities do it."""
    claims = material.entry.claims
    doubtful = find_doubtful(claims, conclude(claims, known), material).items
    material = material.with_found(item for claim in doubtful for item in claim.found)
    tried, found = seek_for_rests(try_proposals(draft, proposals, material), material)
    material = material.with_found(found)
    return CorrectedEntry(before="", tried=tried, found=list(material.found_by_id.values()))


@pytest.mark.parametrize("supported", [True, False])
def test_the_rest_of_a_split_statement_is_checked_with_passages_of_its_own(*, supported: bool) -> None:
    """It cites those that support it alone and is not marked; else it is, with the citation of the statement."""
    both = f"{OTHER.rstrip('.')}, and pages wait for the delay with lazy"
    draft, claims, material = material_of_page(both)
    rest = "Pages wait for the delay with lazy."
    split = Proposal(number=0, action=CorrectionAction.SPLIT, text=OTHER, rest=rest, evidence_ids=["ev-1"])
    known = answers_for(claims, Verdict.PARTIAL)
    entry = tried_at_page(draft, [split], known, material)
    (tried,) = [item for item in entry.tried if item.proposal.rest]
    part = tried.claims[-1]
    key = next(item.id for item in entry.found if PAGE[item.start : item.end].startswith("`lazy`"))
    assert key in part.others
    known |= answers_for(tried.claims[:-1], Verdict.SUPPORTED, "ev-1")
    known |= answers_for([part], Verdict.SUPPORTED if supported else Verdict.NOT_ENOUGH_INFORMATION, *[key][:supported])
    chosen, corrected, _, text = correct(draft, material.with_found(entry.found), entry, known)
    cited = key if supported else "ev-1"
    assert text == f"{OTHER.rstrip('.')} [ev-1]. Pages wait for the delay with lazy [{cited}].\n"
    (correction,) = chosen.corrections
    assert correction.split_off == [rest] * (not supported)
    assert [item.id for item in chosen.evidence] == [key] * supported
    verdicts = [each.verdict for each in conclude(corrected.entry.claims, known | chosen.answers)]
    assert verdicts == [Verdict.SUPPORTED, Verdict.SUPPORTED if supported else Verdict.UNSUPPORTED]


def test_a_part_that_nothing_supports_becomes_a_sentence_of_its_own() -> None:
    """The supported part keeps its citation, its lead word and its place in the list; the rest is called unsupported."""
    split = Proposal(
        number=0,
        action=CorrectionAction.SPLIT,
        text="It keeps 128 MB.",
        rest="The operators chose *Valkey*.",
        evidence_ids=["ev-1"],
    )
    answers = [
        ("Memory: it keeps 128 MB, and", Verdict.PARTIAL, []),
        ("Memory: It keeps", Verdict.SUPPORTED, ["ev-1"]),
        ("The operators", Verdict.NOT_ENOUGH_INFORMATION, []),
    ]
    text, (correction,), verdicts = corrected_by(
        f"- {BOTH} [ev-1].\n- {OTHER} [ev-2]\n", [split], Verdict.PARTIAL, *answers
    )
    first, second = text.splitlines()
    assert first == "- **Memory:** It keeps 128 MB [ev-1]. The operators chose Valkey [ev-1]."
    assert second == f"- {OTHER} [ev-2]"
    assert correction.action is CorrectionAction.SPLIT
    assert correction.after == "Memory: It keeps 128 MB. The operators chose Valkey."
    assert correction.split_off == ["The operators chose Valkey."]
    assert verdicts == [Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.SUPPORTED]


def test_a_beginning_that_nothing_supports_is_split_off_in_its_place() -> None:
    """The supported end keeps its citation behind the marked beginning, which has the lead word."""
    split = Proposal(
        number=0,
        action=CorrectionAction.SPLIT,
        text="The operators chose Valkey.",
        rest="It keeps 128 MB.",
        evidence_ids=["ev-1"],
    )
    answers = [
        ("Memory: it keeps 128 MB, and", Verdict.PARTIAL, []),
        ("Memory: It keeps", Verdict.NOT_ENOUGH_INFORMATION, []),
        ("The operators", Verdict.SUPPORTED, ["ev-1"]),
    ]
    text, (correction,), verdicts = corrected_by(f"- {BOTH} [ev-1].\n", [split], Verdict.PARTIAL, *answers)
    assert text == "- **Memory:** It keeps 128 MB [ev-1]. The operators chose Valkey [ev-1].\n"
    assert correction.after == "Memory: It keeps 128 MB. The operators chose Valkey."
    assert correction.split_off == ["Memory: It keeps 128 MB."]
    assert verdicts == [Verdict.UNSUPPORTED, Verdict.SUPPORTED]


@pytest.mark.parametrize(
    ("text", "rest", "is_clean"),
    [
        ("Set the limit", "restart the server.", True),
        ("Limits: set the limit", "Restart the server", True),
        ("Restart the server", "Set the limit", True),
        ("Restart the server", "Limits: set the limit", True),
        ("Restart the limit", "Set the server", False),
        ("Set a limit", "restart the server", False),
        ("Set", "restart the server", False),
    ],
)
def test_a_statement_is_split_at_one_place_or_not_at_all(text: str, rest: str, *, is_clean: bool) -> None:
    """Its words stay in their order, but for a conjunction at the cut; else the mark of the whole tells more."""
    proposal = Proposal(number=0, action=CorrectionAction.SPLIT, text=text, rest=rest)
    assert is_cut("Limits: set the limit, and restart the server", proposal) is is_clean


def test_a_correction_names_what_it_drops() -> None:
    """In the words of the corrector, else in those that the new sentence lacks."""
    answers = [("Memory: it keeps", Verdict.PARTIAL, []), ("Memory: It keeps 128", Verdict.SUPPORTED, ["ev-1"])]
    for named, dropped in (("the choice", "the choice"), ("", "operators, chose, Valkey")):
        correct_it = Proposal(
            number=0, action=CorrectionAction.CORRECT, text="It keeps 128 MB.", evidence_ids=["ev-1"], dropped=named
        )
        text, (correction,), _ = corrected_by(f"{BOTH} [ev-1].\n", [correct_it], Verdict.CONTRADICTED, *answers)
        assert text == "**Memory:** It keeps 128 MB [ev-1].\n"
        assert correction.dropped == dropped


@pytest.mark.parametrize(("before", "is_taken"), [(Verdict.PARTIAL, False), (Verdict.CONTRADICTED, True)])
def test_only_what_is_contradicted_is_dropped(before: Verdict, *, is_taken: bool) -> None:
    """A statement supported in part keeps the rest, with its mark, where the corrector would say less."""
    answers = [("Memory: it keeps", before, []), ("Memory: It keeps 128", Verdict.SUPPORTED, ["ev-1"])]
    less = Proposal(
        number=0, action=CorrectionAction.SOFTEN, text="It keeps 128 MB.", evidence_ids=["ev-1"], dropped="the choice"
    )
    text, corrections, _ = corrected_by(f"{BOTH} [ev-1].\n", [less], before, *answers)
    assert [each.action for each in corrections] == [CorrectionAction.SOFTEN] * is_taken
    assert ("Valkey" in text) is not is_taken


@pytest.mark.parametrize(
    ("verdict", "action", "goes"),
    [
        (Verdict.UNSUPPORTED, CorrectionAction.KEEP, False),
        (Verdict.UNSUPPORTED, CorrectionAction.REMOVE, True),
        (Verdict.UNSUPPORTED, CorrectionAction.CORRECT, True),
        (Verdict.UNSUPPORTED, None, True),
        (Verdict.CONTRADICTED, CorrectionAction.KEEP, True),
        (Verdict.PARTIAL, CorrectionAction.REMOVE, False),
    ],
)
def test_what_a_corrector_keeps_stays_marked(verdict: Verdict, action: CorrectionAction | None, *, goes: bool) -> None:
    """Advice that the report leads to is stated by no passage; what a passage contradicts goes all the same."""
    claims, material = material_with(to_plain_draft("Choose it for small stores. [ev-1]"))
    actions = {} if action is None else {0: action}
    chosen = choose_corrections(claims, [], answers_for(claims, verdict), material, actions)
    assert [each.action for each in chosen.corrections] == [CorrectionAction.REMOVE] * goes


def test_a_statement_without_a_citation_of_its_own_is_marked_at_most() -> None:
    """The citation of the next sentence counts for it, and may not have been meant for it; a contradicted one goes."""
    claims, material = material_with(to_plain_draft("Choose it for small stores. Then it suffices for years. [ev-1]"))
    assert [claim.shared for claim in claims] == [True, False]
    for verdict, gone in ((Verdict.UNSUPPORTED, [1]), (Verdict.CONTRADICTED, [0, 1])):
        chosen = choose_corrections(claims, [], answers_for(claims, verdict), material)
        assert [each.number for each in chosen.proposals] == gone


ROWS = """| Store | Memory | Choice | Source |
|---|---|---|---|
| Main | 128 MB | over Redis | [ev-1] |
| Valkey | 64 MB | picked by vendors | [ev-2] |
"""


def rows_of(draft: str) -> list[list[str]]:
    """The cells of the rows below the header of the only table of a text."""
    (table,) = parse_draft(draft)
    return [[write([Block("paragraph", (cell,))]).text.strip() for cell in row] for row in table.rows[1:]]


def test_a_wrong_cell_is_corrected_in_its_place() -> None:
    """The table keeps its form, and the new cell is judged below the heads of its row and column."""
    fix = Proposal(number=2, action=CorrectionAction.CORRECT, text="128 MB", evidence_ids=["ev-1"])
    draft = to_plain_draft(ROWS)
    claims, material = material_with(draft)
    assert [claim.text for claim in claims] == ["128 MB", "over Redis", "64 MB", "picked by vendors"]
    (tried,) = try_proposals(draft, [fix], material)
    (claim,) = tried.claims
    assert (claim.cell, claim.text, claim.place.column) == (True, "128 MB", "Memory")
    assert claim.place.row.startswith("Store: Valkey")
    known = answers_for(claims[:2], Verdict.SUPPORTED, "ev-1") | answers_for(claims[3:], Verdict.SUPPORTED, "ev-2")
    known |= answers_for(claims[2:3], Verdict.CONTRADICTED) | answers_for([claim], Verdict.SUPPORTED, "ev-1")
    _, corrected, _, text = correct(draft, material, CorrectedEntry(before="", tried=[tried]), known)
    assert rows_of(text)[1] == ["Valkey", "128 MB [ev-1]", "picked by vendors", "[ev-2]"]
    assert {verdict.verdict for verdict in conclude(corrected.entry.claims, known)} == {Verdict.SUPPORTED}


def test_a_cell_is_never_split() -> None:
    """Two sentences in a cell would share one mark: a statement supported in part keeps its own."""
    split = Proposal(number=1, action=CorrectionAction.SPLIT, text="over", rest="Redis", evidence_ids=["ev-1"])
    draft = to_plain_draft(ROWS)
    assert try_proposals(draft, [split], material_with(draft)[1]) == []


@pytest.mark.parametrize(
    ("wrong", "rows"),
    [
        (["64 MB"], [["Main", "128 MB", "over Redis", "[ev-1]"], ["Valkey", "–", "picked by vendors", "[ev-2]"]]),
        (["64 MB", "picked by vendors"], [["Main", "128 MB", "over Redis", "[ev-1]"]]),
    ],
)
def test_a_removed_cell_leaves_a_table(wrong: list[str], rows: list[list[str]]) -> None:
    """A dash takes the place of the statement, and a row of which only its name is left goes."""
    draft = to_plain_draft(ROWS)
    claims, material = material_with(draft)
    known = {
        key: answer
        for claim in claims
        for key, answer in answers_for(
            [claim], Verdict.CONTRADICTED if claim.text in wrong else Verdict.SUPPORTED, *claim.evidence_ids
        ).items()
    }
    chosen, _, _, text = correct(draft, material, CorrectedEntry(before=""), known)
    assert [each.before for each in chosen.corrections] == wrong
    assert rows_of(text) == rows


def test_what_names_a_row_is_never_removed() -> None:
    """The other cells would say something about nothing; it is marked instead."""
    draft = to_plain_draft("| Store | Note |\n|---|---|\n| Mongo [ev-1] | in use [ev-2] |\n")
    claims, material = material_with(draft)
    known = answers_for(claims[:1], Verdict.UNSUPPORTED) | answers_for(claims[1:], Verdict.SUPPORTED, "ev-2")
    assert choose_corrections(claims, [], known, material).corrections == []


def test_a_passage_cited_for_the_same_elsewhere_is_tried_first() -> None:
    """A summary has other words than the passage; the section that says the same cites it."""
    draft = to_plain_draft(
        f"The team prefers a fork. [ev-1]\n\nThe team prefers a fork of it. [ev-2]\n\n{QUOTE} [ev-1]\n"
    )
    claims, material = material_with(draft)
    assert related_to(claims[0], Material(MATERIAL.entry, MATERIAL.texts, by_model=True)) == []
    assert related_to(claims[0], material) == ["ev-2"]


def test_a_passage_with_the_option_that_a_claim_lacks_is_tried_first() -> None:
    """An option has few words, and passages on other commands share more of the claim's."""
    others = [f"The release team asks git revert {number} to undo a faulty merge." for number in range(2, 7)]
    lines = [
        "A faulty merge is undone.",
        *others,
        "Look at parents, log, notes, colleagues, letters, then give `git revert -m 1 M`.",
    ]
    text = "\n\n".join(lines)
    reference = DocumentRef(hash=digest(text))
    evidence = [
        Evidence(
            id=f"ev-{number}",
            source_id="src-1",
            start=text.index(line),
            end=text.index(line) + len(line),
            quote_hash=digest(line),
        )
        for number, line in enumerate(lines)
    ]
    source = CheckedSource(id="src-1", url="https://manual.test/", title="Manual", text=reference)
    entry = ClaimsEntry(draft=reference, evidence=evidence, sources=[source])
    material = Material(entry, {reference.hash: text}, by_model=True)
    (claim,) = extract_claims(
        to_plain_draft("The release team has a faulty merge undone with git revert -m 1. [ev-0]\n"), material
    )
    assert "ev-6" not in related_to(claim, material)
    assert related_to(claim, material, lacking=["with git revert -m 1."])[0] == "ev-6"
    assert related_to(claim, material, lacking=["git revert -m 2", "undone"]) == related_to(claim, material)


def test_a_conclusion_is_tried_with_the_passages_of_the_sentences_beside_it() -> None:
    """It repeats neither their words nor their citations; those below another heading are not beside it."""
    draft = to_plain_draft(
        "## One\n\nThe team has a fork. [ev-2] So nothing else counts. [ev-1]\n\n## Two\n\nIt is fast. [ev-3]\n"
    )
    claims, material = material_with(draft)
    answers = answers_for([claim for claim in claims if claim.asked], Verdict.PARTIAL)
    doubtful = find_doubtful(claims, conclude(claims, answers), material).items
    others = {item.text: [passage.evidence_id for passage in item.others] for item in doubtful}
    assert others["So nothing else counts."][0] == "ev-2"
    assert "ev-3" not in others["So nothing else counts."]


@pytest.mark.parametrize("count", [MAX_LOST, MAX_LOST + 1])
def test_a_check_that_would_drop_what_the_run_has_evidence_for_fails(count: int) -> None:
    """Such a statement stays, marked; with more than two nothing goes, and the report says that (X-8)."""
    true = [f"By default the store keeps 128 MB of pages in memory{end}" for end in (".", " today.", " now.")[:count]]
    draft = to_plain_draft("\n\n".join(f"{sentence} [ev-1]" for sentence in true))
    claims, material = material_with(draft)
    known = answers_for(claims, Verdict.UNSUPPORTED)
    chosen = choose_corrections(claims, [], known, material)
    assert (chosen.corrections, chosen.undone) == ([], count if count > MAX_LOST else 0)


def test_a_sentence_keeps_the_citation_that_it_shares() -> None:
    """Where the sentence with the citation goes, the one before it is cited by itself."""
    draft = to_plain_draft(
        f"By default 128 MB of pages stay in memory. It is 512 MB by default [ev-1].\n\n{OTHER} [ev-2]\n"
    )
    claims, material = material_with(draft)
    assert [claim.evidence_ids for claim in claims] == [["ev-1"], ["ev-1"], ["ev-2"]]
    known = answers_for(claims[:1], Verdict.SUPPORTED, "ev-1") | answers_for(claims[1:2], Verdict.CONTRADICTED)
    chosen, corrected, _, text = correct(draft, material, CorrectedEntry(before=""), known)
    assert text == f"By default 128 MB of pages stay in memory [ev-1].\n\n{OTHER} [ev-2]\n"
    assert [item.action for item in chosen.corrections] == [CorrectionAction.REMOVE]
    assert conclude(corrected.entry.claims, known)[0].verdict is Verdict.SUPPORTED


def test_a_corrected_draft_has_the_form_in_which_its_claims_are_found() -> None:
    """Two lists become one where the paragraph between them is removed: places are those of the stored text."""
    wrong = "The store keeps 512 MB of pages in memory by default. [ev-1]"
    draft = to_plain_draft(f"- {QUOTE} [ev-1]\n\n{wrong}\n\n- {OTHER} [ev-2]\n- {QUOTE} [ev-1]\n")
    _, material = material_with(draft)
    chosen, corrected, _, text = correct(draft, material, CorrectedEntry(before=""), {})
    assert ([item.action for item in chosen.corrections], text) == ([CorrectionAction.REMOVE], to_plain_draft(text))
    found = [text[each.start : each.end] for each in corrected.entry.claims]
    assert found == [f"{QUOTE} [ev-1]", f"{OTHER} [ev-2]", f"{QUOTE} [ev-1]"]


def test_the_action_of_a_proposal_decides() -> None:
    """A removal has no sentence to be tried, whatever text comes with it."""
    removal = Proposal(number=1, action=CorrectionAction.REMOVE, text=OTHER, evidence_ids=["ev-2"])
    claims, material = material_with(DRAFT)
    assert try_proposals(DRAFT, [removal], material) == []
    text = write(DraftText(DRAFT, MATERIAL).apply(claims, [removal], MATERIAL.registry)).text
    assert "512 MB" not in text
    assert OTHER not in text
