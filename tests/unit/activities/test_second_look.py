"""A second look at statements that would be marked: what it shows, and what follows from its answers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.reporting.drafts import parse_draft
from activities.reporting.passages import show_passage
from activities.reporting.tree import Block, write
from activities.roles.grounding import evidence_at
from activities.roles.prompt_rendering import render_role
from activities.verifying import second_look
from activities.verifying.adoption import adopt_second
from activities.verifying.corrections import can_be_mended, cite_further, find_doubtful
from activities.verifying.further_passages import Unsupported, search_pages
from activities.verifying.material import Answers, Material, conclude, show_passages
from activities.verifying.second_look import FEW_AFTER, FEW_BEFORE, WHOLE_CHARACTERS, ask_again, second_fingerprint
from activities.verifying.verification import VerifyingActivities
from contracts.addresses import digest
from contracts.checking import (
    AnswersEntry,
    AskedClaim,
    AskedEntry,
    CheckedSource,
    ClaimAnswer,
    CorrectionAction,
    ExtractedClaim,
    Fault,
    QuotePlace,
    ShownPassage,
    best_answers,
)
from contracts.checking_roles import CORRECTOR, CorrectInput
from contracts.evidence import DocumentRef, Evidence, Verdict
from contracts.messages import FinalizedVerification, FinalizeVerificationRequest
from tests.fakes.world import World
from tests.unit.activities.scripted import common, drafted_over, passage_of

DELAY = "Feedback will be delayed by use of this feature, which can bloat the primary."
TERMS = (
    "# Settings\n\n## Standby\n\n`first_delay` (`integer`)\nThe first.\n\n`apply_delay` (`integer`)\nDelays the replay."
)
SHARED = "The limit is divided among all workers, so that their total load is the same."
OTHER_PAGE = f"# Load\n\nWorkers have a limit of 200.\n\n{SHARED}\n\n" + "The harbour is open. " * 10
FILLER = "\n\n".join(f"Paragraph {number} of the standby. " * 4 for number in range(28))
END = "The end of the standby settings."
LONG = f"{TERMS}\n\n{FILLER}\n\n{DELAY}\n\n{FILLER}\n\n{END}\n"
FAR = LONG + "\n## Elsewhere\n\n" + "\n\n".join("Ferries leave at noon. " * 9 for _ in range(80)) + "\n"
SOURCES = {"src-1": FAR, "src-2": OTHER_PAGE}


def evidence(identity: str, source_id: str, quote: str) -> Evidence:
    """A passage of one of the pages."""
    return passage_of(SOURCES, identity, source_id, quote)


PASSAGES = [evidence("ev-1", "src-1", DELAY), evidence("ev-2", "src-2", "Workers have a limit of 200.")]


def drafted(markdown: str) -> tuple[str, list[ExtractedClaim], Material]:
    """A draft with its claims, and a run that has read both pages."""
    return drafted_over(markdown, SOURCES, PASSAGES)


def judged(claims: list[ExtractedClaim], verdict: Verdict) -> dict[str, ClaimAnswer]:
    """The same answer of a first check about each claim."""
    return {claim.fingerprint: ClaimAnswer(fingerprint=claim.fingerprint, verdict=verdict) for claim in claims}


def doubtful_of(markdown: str, verdict: Verdict = Verdict.PARTIAL) -> tuple[list[AskedClaim], Material]:
    """The doubtful claims of a draft."""
    _, claims, material = drafted(markdown)
    return find_doubtful(claims, conclude(claims, judged(claims, verdict)), material).items, material


def asked(markdown: str) -> AskedEntry:
    """What a second look at all statements of a draft shows."""
    return ask_again(*doubtful_of(markdown))


APPLY = "With apply_delay, feedback is delayed, which can bloat the primary [ev-1].\n"
LOAD = "The limit is divided among the workers [ev-2].\n"


def test_a_short_page_is_shown_whole_and_once() -> None:
    """Two statements that cite one page name the same section, which is all of the page."""
    shown = asked(f"{LOAD}\nThe total load of the workers is the same [ev-2].\n")
    assert [section.text for section in shown.sections] == [OTHER_PAGE.strip()]
    assert {tuple(item.sections) for item in shown.items} == {(shown.sections[0].id,)}


def test_a_statement_made_twice_is_asked_about_once() -> None:
    """A summary may say word for word what a section says, with the same citation."""
    assert len(asked(f"{LOAD}\n## Load\n\n{LOAD}").items) == 1


def test_a_remark_about_what_a_section_has_is_not_made_again() -> None:
    """The first check was asked where the name is; the second sees it, and not the one that is nowhere."""
    (item,) = asked("With `first_delay` and `no_delay`, feedback is delayed [ev-1].\n").items
    assert [name for name in ("first_delay", "no_delay") if any(name in remark for remark in item.remarks)] == [
        "no_delay"
    ]


def test_of_a_long_page_the_section_is_shown_with_the_term_above() -> None:
    """A paragraph far below the term of its definition says "this feature"; nothing of another section is shown."""
    assert len(FAR) > WHOLE_CHARACTERS
    (section,) = [section for section in asked(APPLY).sections if section.source_id == "src-1"]
    assert "`apply_delay` (`integer`)" in section.text
    assert DELAY in section.text
    assert section.text.endswith(END)
    assert "Ferries" not in section.text
    assert FAR[section.start : section.start + len(section.text)] == section.text


def test_a_passage_far_below_a_term_names_it() -> None:
    """The checker of the first look sees after which term of a list the passage stands."""
    assert "after the term `apply_delay`" in show_passage(PASSAGES[0], "Settings", FAR).title


def test_a_second_look_has_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no room is not shown: what surrounds a cited passage, from its term on, comes before the whole section."""
    most = len(TERMS) + len(FILLER) + 2_500
    monkeypatch.setattr(second_look, "CLAIM_CHARACTERS", 1_000)
    monkeypatch.setattr(second_look, "LOOK_CHARACTERS", most)
    shown = asked("The primary can bloat [ev-1].\n")
    assert sum(len(section.text) for section in shown.sections) <= most
    (section,) = [section for section in shown.sections if DELAY in section.text]
    assert "`apply_delay` (`integer`)" in section.text
    assert END not in section.text
    monkeypatch.setattr(second_look, "WHOLE_CHARACTERS", 100)
    assert asked("The primary can bloat [ev-1].\n").sections == []


def test_a_part_that_a_checker_named_is_looked_for_by_itself() -> None:
    """A summary of many facts shares little with the passage of one; it is found on the page by that part's words."""
    words = "Feedback is delayed, the first paragraph is of the standby, the load is the same, and ferries leave early"
    _, claims, material = drafted(f"{words} [ev-1].\n")
    found = {}
    for named in ((), ("ferries leave early",)):
        (answer,) = judged(claims, Verdict.PARTIAL).values()
        answers = {answer.fingerprint: answer.with_fields(lacking=list(named))}
        (claim,) = find_doubtful(claims, conclude(claims, answers), material).items
        found[bool(named)] = "Ferries" in claim.others[0].text
    assert found == {False: False, True: True}


def test_a_command_that_a_checker_missed_is_found_letter_by_letter() -> None:
    """It stands in a listing, or is an option among words that other passages share more of; a short one is no clue."""
    listing = "# Reverting\n\nFerries leave early.\n\n```\n$ undo merge -m 1 M\n```\n"
    options = "# Pushing\n\n--force-with-lease=<name>\n\nIt is refused otherwise.\n"
    pages = {**SOURCES, "src-3": listing, "src-4": options}
    _, _, material = drafted(APPLY)
    known = [CheckedSource(id=name, text=DocumentRef(hash=digest(text))) for name, text in pages.items()]
    material = replace(
        material, entry=material.entry.with_fields(sources=known), texts={digest(text): text for text in pages.values()}
    )
    missing = ["undo merge -m 1", "and push with --force-with-lease=<name>, never else", "-m 9"]
    (found,) = search_pages([Unsupported("Feedback is delayed.", ["ev-1"], lacking=missing)], material)
    assert [pages[item.source_id][item.start : item.end] for item in found[:2]] == [
        "$ undo merge -m 1 M",
        "--force-with-lease=<name>",
    ]
    assert not any("-m 9" in pages[item.source_id][item.start : item.end] for item in found)


def test_all_that_is_shown_of_a_cited_page_counts_for_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A section that was chosen for one statement may have what another one lacks."""
    monkeypatch.setitem(globals(), "PASSAGES", [*PASSAGES, evidence("ev-3", "src-1", "Ferries leave at noon.")])
    shown = asked(f"{APPLY}\n## Ferries\n\nAll ferries leave at noon and in time [ev-3].\n\n{LOAD}")
    of_page = {section.id for section in shown.sections if section.source_id == "src-1"}
    assert len(of_page) > 1
    cites_page = [item.passages[0].evidence_id != "ev-2" for item in shown.items]
    assert [of_page <= set(item.sections) for item in shown.items] == cites_page


TARIFF = "# Tariff\n\n" + "Children travel for nothing. " * 12 + "\n\nA permit costs 45 euros, set by port_fee.\n"
PIER = "# Pier\n\nAt the pier a permit costs 45 euros.\n"
FEE = "# Dues\n\nA fee is no permit.\n"
NOISE = "# Workers\n\n" + "\n\n".join(f"Workers of shift {number} have a limit. " * 8 for number in range(40))


def asked_with(lacking: tuple[str, ...], *quotes: tuple[str, str]) -> AskedEntry:
    """What a second look at a statement about workers shows, with these passages as further ones."""
    doubtful, material = doubtful_of("The limit is divided among workers, and a permit costs 45 euros [ev-2].\n")
    return looked_at(doubtful[0], material, lacking, *quotes)


def looked_at(claim: AskedClaim, material: Material, lacking: tuple[str, ...], *quotes: tuple[str, str]) -> AskedEntry:
    """What a second look at a statement shows that has these passages as further ones."""
    pages = {**SOURCES, "src-3": TARIFF, "src-4": NOISE, "src-5": PIER, "src-6": FEE}
    known = [CheckedSource(id=name, title=name, text=DocumentRef(hash=digest(text))) for name, text in pages.items()]
    material = replace(
        material, entry=material.entry.with_fields(sources=known), texts={digest(text): text for text in pages.values()}
    )
    found = []
    for source_id, quote in quotes:
        start = pages[source_id].index(quote)
        found.append(evidence_at(source_id, pages[source_id], start, start + len(quote)))
    others = show_passages([item.id for item in found], material.with_found(found))
    return ask_again([claim.with_fields(others=others, found=found, lacking=list(lacking))], material)


SHIFT = ("src-4", "Workers of shift 20 have a limit.")
PERMIT = ("src-3", "A permit costs 45 euros, set by port_fee.")


@pytest.mark.parametrize("lacking", [(), ("and a permit costs 45 euros",)])
def test_what_a_statement_lacks_comes_first_and_nothing_else_of_other_pages(lacking: tuple[str, ...]) -> None:
    """A further passage without a word that its own passages lack is not shown, however much it has of the others."""
    shown = asked_with(lacking, SHIFT, PERMIT)
    assert [section.source_id for section in shown.sections] == ["src-3", "src-2"]
    assert PERMIT[1] in shown.sections[0].text
    assert shown.items[0].sections == [section.id for section in shown.sections]


def test_a_second_passage_with_much_of_what_is_missing_is_shown_and_one_with_little_is_not() -> None:
    """Which of them says it no comparison of words can tell; one that shares a word with the whole says nothing."""
    lacking = ("a permit by port_fee costs 45 euros for workers of the shift",)
    fee = ("src-3", "Children travel for nothing.")
    shown = asked_with(lacking, PERMIT, SHIFT)
    assert [section.source_id for section in shown.sections] == ["src-3", "src-4", "src-2"]
    both = asked_with(("a permit costs 45 euros",), PERMIT, ("src-5", "At the pier a permit costs 45 euros."), fee)
    assert [section.source_id for section in both.sections][:2] == ["src-5", "src-3"]
    few = asked_with(("a permit by port_fee costs 45 euros",), PERMIT, ("src-6", "A fee is no permit."))
    assert [section.source_id for section in few.sections] == ["src-3", "src-2"]


def test_of_passages_with_the_same_words_that_of_a_cited_page_comes_first() -> None:
    """A page that the report cites for the statement more likely says the rest of it."""
    pier = ("src-5", "At the pier a permit costs 45 euros.")
    doubtful, material = doubtful_of("The limit is divided among workers, and a permit costs 45 euros [ev-2].\n")
    children = evidence_at("src-3", TARIFF, (start := TARIFF.index("Children")), start + 28)
    cited = [*doubtful[0].passages, ShownPassage(evidence_id=children.id, title="Tariff", quote="Children travel.")]
    claim = doubtful[0].with_fields(passages=cited, found=[children])
    shown = looked_at(claim, material.with_found([children]), ("a permit costs 45 euros",), PERMIT, pier)
    assert [section.source_id for section in shown.sections][:2] == ["src-3", "src-5"]


def test_a_cell_is_looked_for_with_its_row() -> None:
    """`None in the entry` says of the row what its other cells name; its own words say nothing that could be found."""
    table = "| Release | Fault | Action |\n|---|---|---|\n| 45 | euros for a permit | None in it [ev-2] |\n"
    doubtful, material = doubtful_of(table)
    cell = next(item for item in doubtful if item.text == "None in it")
    assert [section.source_id for section in looked_at(cell, material, (), PERMIT).sections] == ["src-3", "src-2"]
    bare = cell.with_fields(place=cell.place.with_fields(row="", column=""))
    assert [section.source_id for section in looked_at(bare, material, (), PERMIT).sections] == ["src-2"]


def test_where_no_word_is_missing_all_that_is_in_doubt_is_looked_for() -> None:
    """The passages cited may have its words and not say it."""
    assert [section.source_id for section in asked_with(("limit is",), SHIFT).sections] == ["src-4", "src-2"]


def test_of_a_page_that_is_not_cited_less_is_shown() -> None:
    """What surrounds a further passage is shorter than what surrounds a cited one."""
    (section, _) = asked_with(("in shift 20",), SHIFT).sections
    assert SHIFT[1] in section.text
    assert len(section.text) < 2 * len(SHIFT[1]) * 8 + FEW_BEFORE + FEW_AFTER


def place_of(source_id: str, quote: str) -> QuotePlace:
    """The place of words in a page."""
    start = SOURCES[source_id].index(quote)
    return QuotePlace(source_id=source_id, start=start, end=start + len(quote))


def adopted(
    markdown: str, first: Verdict, second: Verdict, *places: QuotePlace, evidence_ids: tuple[str, ...] = ()
) -> tuple[str, list[Verdict], Answers, Material]:
    """The draft after a second look with this answer about its first statement, and the verdicts."""
    draft, claims, material = drafted(markdown)
    known = judged(claims, first)
    again = second_fingerprint(claims[0].fingerprint)
    known[again] = ClaimAnswer(
        fingerprint=again, verdict=second, places=list(places), evidence_ids=list(evidence_ids), lacking=["half of it"]
    )
    look = adopt_second(claims, known, material)
    chosen, corrected, _, text = cite_further(draft, material, look)
    known |= chosen.answers
    after = corrected.with_found(look.evidence)
    return text, [each.verdict for each in conclude(corrected.entry.claims, known)], known, after


def test_words_quoted_from_a_section_become_a_citation() -> None:
    """The whole sentence around them is evidence of the run, the statement cites it, and no word changes."""
    text, verdicts, _, after = adopted(
        LOAD, Verdict.PARTIAL, Verdict.SUPPORTED, place_of("src-2", "is divided among all workers")
    )
    (new,) = [item for item in after.entry.evidence if item not in PASSAGES]
    assert OTHER_PAGE[new.start : new.end] == SHARED
    assert text == f"The limit is divided among the workers [ev-2][{new.id}].\n"
    assert verdicts == [Verdict.SUPPORTED]


def test_a_heading_is_cited_only_if_nothing_else_is_quoted() -> None:
    """As a citation it says nothing, but a verdict is not left without what it was given for."""
    heading, sentence = place_of("src-2", "# Load"), place_of("src-2", "is divided among all workers")
    for places, cited in (((heading, sentence), [SHARED]), ((heading,), ["# Load"])):
        _, verdicts, _, after = adopted(LOAD, Verdict.PARTIAL, Verdict.SUPPORTED, *places)
        assert [OTHER_PAGE[item.start : item.end] for item in after.entry.evidence if item not in PASSAGES] == cited
        assert verdicts == [Verdict.SUPPORTED]


def test_words_of_a_passage_that_the_run_has_are_cited_under_its_id() -> None:
    """No second entry is made for a place that is evidence already."""
    text, verdicts, _, after = adopted(
        APPLY, Verdict.UNSUPPORTED, Verdict.SUPPORTED, place_of("src-2", "a limit of 200")
    )
    assert after.entry.evidence == PASSAGES
    assert text.endswith("[ev-1][ev-2].\n")
    assert verdicts == [Verdict.SUPPORTED]


def test_what_is_supported_without_a_further_passage_loses_its_mark() -> None:
    """The checker that saw the whole section is believed, and the text stays as it is."""
    text, verdicts, _, _ = adopted(LOAD, Verdict.PARTIAL, Verdict.SUPPORTED, evidence_ids=("ev-2",))
    assert text == LOAD
    assert verdicts == [Verdict.SUPPORTED]


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        (Verdict.PARTIAL, Verdict.PARTIAL, Verdict.PARTIAL),
        (Verdict.PARTIAL, Verdict.UNSUPPORTED, Verdict.PARTIAL),
        (Verdict.PARTIAL, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
        (Verdict.UNSUPPORTED, Verdict.PARTIAL, Verdict.PARTIAL),
        (Verdict.UNSUPPORTED, Verdict.UNVERIFIED, Verdict.UNSUPPORTED),
    ],
)
def test_a_second_look_lowers_nothing_that_no_passage_contradicts(
    first: Verdict, second: Verdict, counts: Verdict
) -> None:
    """What a part of the passages supported stays supported in part."""
    _, verdicts, _, _ = adopted(LOAD, first, second)
    assert verdicts == [counts]


def test_of_two_answers_about_a_statement_the_second_look_counts() -> None:
    """Where it cites nothing more, both are stored under the same fingerprint, in any order."""
    first = ClaimAnswer(fingerprint="c-1", verdict=Verdict.PARTIAL)
    second = ClaimAnswer(fingerprint="c-1", verdict=Verdict.SUPPORTED, is_second=True)
    assert best_answers([first, second])["c-1"] == best_answers([second, first])["c-1"] == second


def test_the_words_without_a_passage_are_data() -> None:
    """A statement supported in part names them, and its corrector gets the passages that decided."""
    _, _, known, after = adopted(
        LOAD, Verdict.UNSUPPORTED, Verdict.PARTIAL, place_of("src-1", "The first."), evidence_ids=("ev-2",)
    )
    claims = after.entry.claims
    verdicts = conclude(claims, known)
    assert verdicts[0].lacking == ["half of it"]
    (item,) = find_doubtful(claims, verdicts, after, known).items
    assert (item.lacking, item.others) == (["half of it"], [])
    assert len(item.passages) == 2


def test_what_contradicts_a_statement_is_shown_to_its_corrector_and_not_cited() -> None:
    """A citation says that a passage supports the statement."""
    text, _, known, after = adopted(LOAD, Verdict.PARTIAL, Verdict.CONTRADICTED, place_of("src-1", "The first."))
    assert text == LOAD
    claims = after.entry.claims
    (item,) = find_doubtful(claims, conclude(claims, known), after, known).items
    assert [each.quote for each in item.others] == ["The first."]
    assert [each.id for each in item.found] == [item.others[0].evidence_id]


ROWS = "| Store | Memory | Choice | Source |\n|---|---|---|---|\n| Main | 128 MB | over Redis | [ev-1] |\n"


def test_a_cell_gets_a_further_citation_and_its_neighbours_keep_theirs() -> None:
    """The citation goes into the cell that has the citations of its row; one that shared them is cited by itself."""
    draft, claims, material = drafted(ROWS)
    known = judged(claims, Verdict.PARTIAL)
    number = next(index for index, claim in enumerate(claims) if claim.text == "over Redis")
    again = second_fingerprint(claims[number].fingerprint)
    known[again] = ClaimAnswer(fingerprint=again, verdict=Verdict.SUPPORTED, evidence_ids=["ev-2"])
    look = adopt_second(claims, known, material)
    assert [each.action for each in look.corrections] == [CorrectionAction.CITE]
    _, corrected, _, text = cite_further(draft, material, look)
    (table,) = parse_draft(text)
    cells = [write([Block("paragraph", (cell,))]).text.strip() for cell in table.rows[1]]
    assert cells == ["Main", "128 MB [ev-1]", "over Redis", "[ev-1][ev-2]"]
    assert conclude(corrected.entry.claims, known | look.answers)[number].verdict is Verdict.SUPPORTED


TABLE = (
    "# Views\n\nTable 4. Columns of the view\n\n| Column | Meaning |\n| --- | --- |\n| one | " + "long " * 40 + "|\n"
)


def test_a_row_is_shown_with_the_name_of_its_table() -> None:
    """What a column is a column of stands above the table."""
    page = f"{TABLE}| cycles | Number of completed cycles. |\n"
    start = page.index("| cycles")
    item = Evidence(id="ev-9", source_id="s", start=start, end=len(page) - 1, quote_hash="")
    shown = show_passage(item, "Views", page)
    assert shown.text.startswith("Table 4. Columns of the view | Column | Meaning |")
    assert "long" not in shown.text


@pytest.mark.parametrize(
    ("verdict", "fault", "lacking", "mendable"),
    [
        (Verdict.PARTIAL, Fault.MISSING, ["feedback is delayed"], True),
        (Verdict.PARTIAL, Fault.MISSING, ["and no other server notices it"], True),
        (Verdict.PARTIAL, Fault.MISSING, ["and the primary can bloat"], False),
        (Verdict.PARTIAL, Fault.MISSING, ["feedback is delayed", "and no other server notices it"], False),
        (Verdict.PARTIAL, Fault.MISSING, ["the primary can bloat", "and no other server notices it"], True),
        (Verdict.PARTIAL, Fault.MISSING, [], True),
        (Verdict.PARTIAL, Fault.WEAKER, ["and the primary can bloat"], True),
        (Verdict.PARTIAL, Fault.CONDITION, [], True),
        (Verdict.PARTIAL, None, ["and the primary can bloat"], True),
        (Verdict.UNSUPPORTED, None, ["and the primary can bloat"], True),
        (Verdict.NOT_ENOUGH_INFORMATION, None, [], False),
    ],
)
def test_a_corrector_is_asked_only_where_it_can_do_more_than_keep(
    verdict: Verdict, fault: Fault | None, lacking: list[str], *, mendable: bool
) -> None:
    """What no passage speaks of can be split off at an edge alone, and of what no passage speaks at all nothing can."""
    text = "With `apply_delay` feedback is delayed, and the primary can bloat, and no other server notices it [ev-1].\n"
    _, claims, _ = drawn = drafted(text.replace("With `apply_delay` feedback", "Delay: feedback"))
    answers = {
        claims[0].fingerprint: ClaimAnswer(
            fingerprint=claims[0].fingerprint, verdict=verdict, fault=fault, lacking=lacking, is_second=True
        )
    }
    (item,) = find_doubtful(claims, conclude(claims, answers), drawn[2], answers).items
    assert (item.fault, can_be_mended(item, claims[0])) == (fault, mendable)


def test_a_cell_that_lacks_a_part_is_left_as_it_is() -> None:
    """It is never split, at no edge."""
    cell = "| Setting | Effect | Cost |\n|---|---|---|\n| delay | Feedback is delayed and lost [ev-1] | None [ev-1] |\n"
    _, claims, material = drafted(cell)
    answers = judged(claims[:1], Verdict.PARTIAL)
    answers = {key: one.with_fields(fault=Fault.MISSING, lacking=["and lost"]) for key, one in answers.items()}
    item = find_doubtful(claims, conclude(claims, answers), material, answers).items[0]
    assert not can_be_mended(item, claims[0])


def test_a_condition_that_is_dropped_is_looked_for_in_no_page() -> None:
    """The passages that attach it are those that the statement cites, so that a corrector has what it needs."""
    _, claims, material = drafted(APPLY)
    missing, weaker, dropped = (
        {key: one.with_fields(fault=fault) for key, one in judged(claims, Verdict.PARTIAL).items()}
        for fault in (Fault.MISSING, Fault.WEAKER, Fault.CONDITION)
    )
    (searched,) = find_doubtful(claims, conclude(claims, missing), material, missing).items
    (less,) = find_doubtful(claims, conclude(claims, weaker), material, weaker).items
    (known,) = find_doubtful(claims, conclude(claims, dropped), material, dropped).items
    assert searched.others
    assert (known.others, known.found, less.others, less.found) == ([], [], [], [])
    request = CorrectInput(**common(claims=[known], canary="c4nary"))
    assert "fault: condition" in render_role(CORRECTOR, request, {}).prompt


async def concluded(tmp_path: Path, **answer: Any) -> FinalizedVerification:
    """The end of a first check whose only doubtful statement got this answer."""
    world = World(tmp_path)
    _, claims, material = drafted(APPLY)
    for text in SOURCES.values():
        await world.content.put_text(text)
    given = {key: one.with_fields(**answer) for key, one in judged(claims, Verdict.PARTIAL).items()}
    verifying = VerifyingActivities(world.content, world.sessions, world.notebooks)
    return await ActivityEnvironment().run(
        verifying.finalize_verification,
        FinalizeVerificationRequest(
            research_id="r-1",
            claims_entry=await world.notebooks.write(material.entry),
            answers=[await world.notebooks.write(AnswersEntry(items=list(given.values())))],
            corrects=True,
        ),
    )


@pytest.mark.parametrize(
    ("answer", "looks", "corrections"),
    [
        ({"fault": Fault.MISSING, "lacking": ["which can bloat the primary"]}, 1, 1),
        ({"fault": Fault.MISSING, "lacking": ["is delayed"]}, 1, 0),
        ({"fault": Fault.CONDITION}, 0, 1),
        ({"fault": Fault.WEAKER}, 1, 1),
    ],
)
async def test_no_call_is_made_that_can_change_nothing(
    answer: dict[str, Any], looks: int, corrections: int, tmp_path: Path
) -> None:
    """A dropped condition needs no second look, and what can only stay as it is no corrector."""
    result = await concluded(tmp_path, **answer)
    assert (result.second_claims, len(result.sizes)) == (looks, corrections)
    assert (bool(result.second_entry), bool(result.doubtful_entry)) == (bool(looks), bool(corrections))
