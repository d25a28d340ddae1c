"""What a call shows of its sources: whole pages, sections, units that belong together, and the outline of the rest."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import Gap, SectionHint, SectionRef
from contracts.plan import PlanNode
from contracts.roles import AnalyzeInput
from contracts.tokens import Level
from providers.extractive.blocks import blocks_of
from providers.extractive.ranking import Ranking, SourceWords
from providers.tokens.sections import sections_of, units_of
from providers.tokens.showing import numbered_sections, rest_of_pages, show_sources
from providers.tokens.shown_sources import MAX_OUTLINE_LINES, ShownSource, token_size
from tests.unit.activities.scripted import analyze_input, reference, source

TALK = "The harbour has a long history of storms, and its people tell many stories about them. " * 12
ANSWER = "Vacuum prevents transaction ID wraparound by freezing old rows."
STEPS = "Do this in order:\n\n" + "\n".join(f"{number}. Vacuum step {number} of many." for number in range(1, 9))


def call(*texts: str, **changes: Any) -> tuple[AnalyzeInput, dict[str, str]]:
    """A request about vacuum and wraparound over these texts, and the texts by hash."""
    sources = [source(reference(text), id=f"src-{number}") for number, text in enumerate(texts)]
    return analyze_input(sources, **changes), {reference(text).hash: text for text in texts}


def shown(*texts: str, **changes: Any) -> dict[str, ShownSource]:
    return {one.source.id: one for one in show_sources(*call(*texts, **changes))}


def page(count: int, answered: int, text: str = TALK) -> str:
    """A page of so many sections, one of which answers."""
    sections = (
        f"## {number}. Part {number}\n\n{ANSWER + ' ' + TALK if number == answered else text}"
        for number in range(count)
    )
    return "# The manual\n\nAn introduction to all of this.\n\n" + "\n\n".join(sections)


def test_a_page_that_matters_is_shown_whole() -> None:
    """With nothing left to ask for."""
    (one,) = shown(text := page(12, 7)).values()
    assert one.excerpt() == text
    assert one.hidden == ()


@pytest.mark.parametrize(("sections", "is_whole"), [(25, True), (46, True), (60, False)])
def test_a_page_that_was_opened_to_be_read_is_shown_whole(sections: int, is_whole: bool) -> None:
    """Also if one paragraph of it fits the question; a longer one than a call shows whole is not."""
    text = page(sections, 7).replace("transaction ID wraparound by freezing old rows", "it")
    (one,) = shown(text, outlined=True).values()
    assert (one.excerpt() == text) is is_whole
    assert bool(one.hidden) is not is_whole
    (chosen,) = shown(text).values()
    assert chosen.hidden


def test_a_long_page_that_was_opened_leaves_money_for_others() -> None:
    """Of a page that is too long to be shown whole a purpose gets 8,000 tokens, two get as many each; with more beside
    sections that were asked for, its agent could read nothing else.
    """
    text = page(120, 7, text=f"Vacuum and wraparound come up in transaction after transaction. {TALK}")
    (one,) = shown(text, outlined=True).values()
    assert 7_000 < token_size(one.excerpt()) <= 8_300
    two = [PlanNode(id=f"sq-{number}", text=name) for number, name in enumerate(("vacuum", "wraparound"))]
    (both,) = shown(text, outlined=True, sub_queries=two).values()
    assert 15_000 < token_size(both.excerpt()) <= 16_600
    (chosen,) = shown(text).values()
    assert token_size(chosen.excerpt()) > 20_000
    request, documents = call(text, outlined=True)
    asked = [SectionRef(source_id="src-0", start=one.hidden[0].section.start, end=one.hidden[0].section.end)]
    rest = rest_of_pages(request, documents, asked)
    assert sum(token_size(text[part.start : part.end]) for part in rest) <= 8_000


def test_a_long_page_that_was_opened_fills_its_room() -> None:
    """Sections that have a word or two of the question are shown, too, as its reader would ask for them; not the others,
    and none of them on a page that a search brought.
    """
    question = "How does vacuum prevent wraparound and bloat, and what do workers cost?"
    answer = "Vacuum prevents wraparound and bloat, and workers cost."
    told = ["Of workers it is told." if number % 4 == 0 else "Of nothing it is told." for number in range(60)]
    parts = (
        f"## {number}. Part {number}\n\n{answer if number == 7 else text} {TALK}" for number, text in enumerate(told)
    )
    text = "# The manual\n\n" + "\n\n".join(parts)
    asked = {"query": question, "sub_query": PlanNode(id="sq-1", text=question)}
    opened, found = (show_sources(*call(text, outlined=outlined, **asked))[0].excerpt() for outlined in (True, False))
    assert (opened.count("Of workers"), opened.count("Of nothing")) == (15, 0)
    assert (found.count("Of workers"), answer in found) == (0, True)


def test_a_short_section_is_shown_for_its_heading() -> None:
    """A long question has few of its words in any section; a heading that it names makes a section of the page worth
    showing, before longer ones that share more words by chance. Words of the page's title are none of it.
    """
    question = "How are prefix search, phrase search, languages, stemming, ranking and upkeep of an index compared?"
    chance = "The index of languages has a prefix and, now and then, a search. " + TALK
    parts = [f"## {number}. Chapter {number}\n\n{chance}" for number in range(60)]
    parts.insert(30, f"## Engine prefix searches\n\nWrite an asterisk after the word. {TALK}")
    parts.insert(50, f"## Engine storms\n\nWrite a comma after the word, or nothing. {TALK}")
    text = "# The engine\n\n" + "\n\n".join(parts)
    sources = [source(reference(text), id="src-0", title="The engine")]
    request = analyze_input(sources, shown_tokens=3_000)
    request = request.model_copy(
        update={"query": question, "sub_query": request.sub_query.model_copy(update={"text": question})}
    )
    (one,) = show_sources(request, {reference(text).hash: text})
    assert "an asterisk" in one.excerpt()
    assert "a comma" not in one.excerpt()


def settings(count: int) -> str:
    """A manual's page of settings under one heading: each name stands alone above its text, some in two forms."""
    forms = ("SET part.{0};\nSET part.{0} = number;", "ENABLE_{0}", "`part_{0}` (`integer`)\nIts value is a number.")
    parts = [f"{forms[number % 3].format(number)}\n\n{TALK}" for number in range(count)]
    return "# The settings\n\n" + "\n\n".join(parts)


def test_parts_of_a_page_without_headings_are_named_by_their_terms() -> None:
    """The first words of a part may be the end of a text that began before: from them no reader can choose."""
    text = settings(24).replace("ENABLE_13", "```\nin use\n\nENABLE_13\n\nof old\n```")
    parts = sections_of(text)
    names = "; ".join(part.title for part in parts[1:])
    assert names.count("SET part.9") == 1
    assert "ENABLE_10; `part_11` (`integer`)" in names
    assert "ENABLE_13" not in names
    assert all(text[part.start : part.end].strip().startswith(("SET", "ENABLE", "`part", "```")) for part in parts[1:])
    assert [part.end for part in parts[:-1]] == [part.start for part in parts[1:]]


def test_a_list_of_options_is_cut_between_its_options() -> None:
    """Of ten thousand characters under one heading a question asks for one option; running text there is one part."""
    options = "\n\n".join(f"-{name}\n--long-{name} <value>\n{TALK}\n\nSee also {name}." for name in "abcdefgh")
    text = f"# Command\n\n## Options\n\n{options}\n\n## Notes\n\n" + "\n\n".join([TALK * 2] * 9)
    parts = sections_of(text)
    assert [part.path[1] for part in parts] == ["Options"] * (len(parts) - 1) + ["Notes"]
    assert len(parts) > 3
    assert all(part.end - part.start <= 4_000 for part in parts[:-1])
    assert all(text[part.start : part.end].strip().startswith(("-", "# Command")) for part in parts[:-1])
    assert "-e" in "; ".join(part.title for part in parts)


def test_a_part_of_a_long_list_is_named_by_its_items() -> None:
    """From the middle of a sentence no reader can choose; thanks that end with a bracket name nothing either."""
    thanks = "The project thanks the finder for reporting this problem. (No. 7)"
    items = "\n\n".join(
        f"- Fix fault {number} of the harbour (A. Finder)\n\n{TALK}\n\n{thanks}" for number in range(24)
    )
    parts = sections_of(f"# Changes\n\n{items}")
    assert parts[1].title.startswith("Fix fault 4 of the harbour (A. Finder); Fix fault 5 of the harbour")
    assert not any("thanks" in part.title for part in parts)


def test_a_part_without_terms_is_named_by_its_first_words() -> None:
    """Running text has none; its lines end with a full stop or go on."""
    parts = sections_of("\n\n".join(f"Story {number}. {TALK}" for number in range(12)))
    assert parts[1].title.startswith("… Story ")


def test_a_section_hardly_longer_than_its_line_is_shown() -> None:
    """An outline names no section that is shorter than two lines, if any of its page is shown and room is left."""
    text = page(40, 7).replace("## 30. Part 30\n\n" + TALK, "## 30. Part 30\n\n" + "Short. " * 4)
    text = text.replace("## 31. Part 31", "## Next\n\n## 31. Part 31")
    (one,) = shown(text, shown_tokens=6_000).values()
    assert one.hidden
    assert all(each.section.end - each.section.start > 200 for each in one.hidden)


def test_a_page_that_does_not_belong_is_not_shown() -> None:
    """Neither is an index, however many of the question's words it lists; a page in another language is."""
    index = "\n\n".join(f"- vacuum {number}, wraparound, see freezing" for number in range(3))
    links = f"# Index\n\n{'. . . . . vacuum wraparound transaction 12' * 40}\n\n{index}"
    foreign = "真空操作可以防止事务标识回卷。" * 40
    assert list(shown(page(3, 1), f"# Storms\n\n{TALK}", links, foreign)) == ["src-0", "src-3"]


def test_a_long_page_is_shown_by_its_best_sections_and_names_the_others() -> None:
    """The answer is shown under its headings, and each hidden section has a number that leads to it."""
    text = page(80, 61)
    request, documents = call(text, shown_tokens=3_000)
    (one,) = show_sources(request, documents)
    assert ANSWER in one.excerpt()
    assert "[…] (in: The manual)\n## 61. Part 61" in one.excerpt()
    lines = one.outline()
    assert len(lines) == MAX_OUTLINE_LINES + 1
    assert (
        lines[-1] == f"and {len(one.hidden) - MAX_OUTLINE_LINES} more sections that have less of the questions' words"
    )
    numbers = [int(line.partition(".")[0]) for line in lines[:-1]]
    assert numbers == sorted(numbers)
    least = max(part.rank for part in one.hidden if part.number in numbers)
    assert all(part.rank > least for part in one.hidden if part.number not in numbers)
    assert len(one.outline(0.1)) == MAX_OUTLINE_LINES // 10 + 1
    sections = numbered_sections(request, documents)
    for hidden in one.hidden:
        wanted = sections[hidden.number]
        assert text[wanted.start : wanted.end].lstrip("# ").startswith(hidden.section.title)
        beginning = "The harbour has a long history of storms, and its people… ("
        assert hidden.describe().startswith(f"{hidden.number}. {hidden.section.title}: {beginning}")


def test_what_was_asked_for_is_shown_and_nothing_else() -> None:
    """Sections whole, however little they have of the question's words; beside those that were named for a gap, from
    their headings alone, what fits it best.
    """
    text = page(80, 61)
    start = text.index("## 5. Part 5")
    wanted = [SectionRef(source_id="src-0", start=start, end=start + 100)]
    (one,) = shown(text, wanted=wanted, shown_before=True).values()
    assert one.excerpt().splitlines()[1] == "## 5. Part 5"
    assert one.excerpt().count("## ") == 1
    (one,) = shown(text, sections=[6]).values()
    assert one.excerpt().count("## ") == 1
    (one,) = shown(text, wanted=wanted).values()
    assert one.excerpt().count("## ") == 2
    assert ANSWER in one.excerpt()


def test_a_second_call_shows_what_else_of_a_page_fits() -> None:
    """Beside the sections asked for, those of the same page that were not shown, up to the tokens of a call, and no more
    of them than was asked for.
    """
    near = "The wraparound of a harbour is a story of its own. " + TALK
    text, other = page(30, 7, near), page(30, 8, near)
    aside = range(12, 30)  # parts without a word of the question
    for number in aside:
        text = text.replace(f"## {number}. Part {number}\n\n{near}", f"## {number}. Part {number}\n\n{TALK}")
    request, documents = call(text, other, shown_tokens=3_000)
    before = {one.source.id: one for one in show_sources(request, documents)}
    starts = [text.index(f"## {number}. Part {number}") for number in (5, 20)]
    asked = [SectionRef(source_id="src-0", start=start, end=text.index("\n## ", start)) for start in starts]
    few = [asked[0].with_fields(end=asked[0].start + 100)]
    assert rest_of_pages(request, documents, few) == []
    rest = rest_of_pages(request, documents, asked)
    assert rest
    assert sum(one.end - one.start for one in rest) <= 1.1 * sum(one.end - one.start for one in asked)
    assert {one.source_id for one in rest} == {"src-0"}
    assert asked[0] not in rest
    hidden = {part.section.start for part in before["src-0"].hidden} | {asked[0].start}
    assert {one.start for one in rest} <= hidden
    assert not {one.start for one in rest} & {text.index(f"## {number}. Part {number}") for number in aside}
    (again,) = show_sources(request.with_fields(wanted=[*asked, *rest], shown_before=True), documents)
    assert token_size(again.excerpt()) <= 3_000
    short = page(8, 7, near * 3)
    request, documents = call(short, shown_tokens=3_000)
    (one,) = show_sources(request, documents)
    assert one.hidden
    start = short.index("## 5. Part 5")
    asked = [SectionRef(source_id="src-0", start=start, end=short.index("## 6. Part 6"))]
    assert rest_of_pages(request.with_fields(shown_tokens=9_000), documents, asked) == []


def test_a_list_keeps_its_introduction_and_a_table_its_head() -> None:
    """Steps are one unit with their sentence; rows of a long table are shown under its head."""
    text = f"# Steps\n\n{TALK}\n\n{STEPS}\n\n{TALK}"
    listed = next(
        unit for unit in units_of(text, sections_of(text)[0]) if "Vacuum step 1" in text[unit.start : unit.end]
    )
    assert STEPS in text[listed.start : listed.end]
    rows = "\n".join(f"| setting_{number} | {TALK[:80]} |" for number in range(200))
    table = f"# Settings\n\n| Name | Meaning |\n| --- | --- |\n{rows}\n| wraparound_age | freezes transaction rows by vacuum |"
    (one,) = shown(table + f"\n\n{TALK * 40}", shown_tokens=1_000).values()
    assert "| Name | Meaning |" in one.excerpt()
    assert "| wraparound_age |" in one.excerpt()
    assert "setting_3 " not in one.excerpt()


def test_a_definition_stays_with_its_term() -> None:
    """All its paragraphs are one unit, up to the next term; what follows the last one may be about something else."""
    names = ("SHARE", "OWN", "SOLE")
    modes = "\n\n".join(
        f"`{name}` (`{name}Lock`)\nConflicts with others.\n\nTaken by {name} commands." for name in names
    )
    text = f"# Locks\n\nThere are modes.\n\n{modes}\n\nA lock is held to the end."
    units = [text[one.start : one.end].split("\n") for one in units_of(text, sections_of(text)[0])]
    taken = [unit for unit in units if any("Taken by" in line for line in unit)]
    assert [[line for line in unit if line.startswith("`")] for unit in taken[:2]] == [
        ["`SHARE` (`SHARELock`)"],
        ["`OWN` (`OWNLock`)"],
    ]
    assert not any("A lock is held" in line for unit in taken for line in unit)


def test_tokens_are_spent_on_the_best_page_and_each_other_page_has_its_best_section() -> None:
    """However good the best one is, what the second says is shown too."""
    one, other = shown(page(30, 3, ANSWER + TALK), page(30, 4, ANSWER + TALK), shown_tokens=14_000).values()
    assert (one.hidden == ()) != (other.hidden == ())
    assert ANSWER in one.excerpt()
    assert ANSWER in other.excerpt()


def test_a_page_that_was_read_before_is_shown_in_part() -> None:
    """Its best sections, however much room there is; a person's limit of characters holds for every page."""
    text = page(30, 3)
    request, documents = call(text)
    again = request.model_copy(update={"sources": [request.sources[0].model_copy(update={"again": True})]})
    (one,) = show_sources(again, documents)
    assert ANSWER in one.excerpt()
    assert token_size(one.excerpt()) <= 2_100
    (bounded,) = shown(text, max_characters=1_500).values()
    assert bounded.characters <= 1_500


def asking(text: str, question: str, **changes: Any) -> tuple[AnalyzeInput, dict[str, str]]:
    """A request with this question about one text."""
    request, documents = call(text, **changes)
    return request.with_fields(
        query=question, sub_query=request.sub_query.with_fields(text=question), documents_searched=500
    ), documents


def test_names_in_code_bring_their_section_though_no_block_has_many_of_them() -> None:
    """Each row of a table of columns has one of the asked names; a section that has more words of the question in one
    paragraph is shown too. A name that most sections have brings none.
    """
    columns = ("dead_rows", "last_auto_run", "auto_run_count", "changed_rows")
    rows = "\n".join(f"| `{name}` `bigint` | {TALK[:300]} |" for name in columns)
    table = f"| Column | Description |\n| --- | --- |\n{rows}"
    overview = f"Views and columns show whether the sweeper keeps up. {TALK}"
    sections = [f"## {number}. Chapter {number}\n\nIt has `row_id`. {TALK}" for number in range(40)]
    sections[30] = f"## 30. The tables\n\n{table}"
    sections[35] = f"## 35. Of old\n\n{TALK} There is `old_run_end`, too."
    text = "# Statistics\n\n" + f"## Overview\n\n{overview}\n\n" + "\n\n".join(sections)
    question = f"Which views and columns show whether the sweeper keeps up: {', '.join(columns)}, old_run_end, row_id?"
    (one,) = show_sources(*asking(text, question))
    assert all(f"`{name}`" in one.excerpt() for name in columns)
    assert "`old_run_end`" in one.excerpt()
    assert "## Overview" in one.excerpt()
    assert one.excerpt().count("`row_id`") == 0


def test_the_section_that_a_search_found_is_shown() -> None:
    """Though it has hardly a word of the question that is asked of the page now."""
    text = page(60, 7)
    start = text.index("## 40. Part 40")
    request, documents = call(text, shown_tokens=3_000)
    hint = SectionHint(start=start, end=start + 50, heading="Part 40")
    assert "## 40. Part 40" not in show_sources(request, documents)[0].excerpt()
    start = text.index("## 50. Part 50")
    hints = [hint, SectionHint(start=start, end=start + 50, heading="Part 50")]
    found = request.with_fields(sources=[request.sources[0].with_fields(sections=hints)])
    (one,) = show_sources(found, documents)
    assert "## 40. Part 40" in one.excerpt()
    assert "## 50. Part 50" in one.excerpt()
    assert ANSWER in one.excerpt()
    (one,) = show_sources(found.with_fields(shown_tokens=400), documents)
    assert "## 40. Part 40" in one.excerpt(), "before what fits best"


def test_a_long_section_is_read_on_where_there_is_room() -> None:
    """Its best parts come first."""
    paragraph = f"{ANSWER} {TALK}"
    filler = "\n\n".join(f"## {number}. Part {number}\n\n{TALK}" for number in range(40))
    long = "\n\n".join([paragraph] * 8)
    text = f"# The manual\n\n## Freezing\n\n{long}\n\n{filler}"
    (one,) = shown(text, shown_tokens=24_000).values()
    assert one.excerpt().count(ANSWER) == 8
    (one,) = shown(text, shown_tokens=1_500).values()
    assert 0 < one.excerpt().count(ANSWER) < 8


def test_one_of_several_questions_makes_no_long_section_of_a_page_on_something_else_whole() -> None:
    """A page that has less than half of a question's words is read on for one question that was asked of it alone."""
    question = "How does the vacuum of the kiln keep its wraparound seal tight at night?"
    paragraph = f"A vacuum has a wraparound seal. {TALK}"
    filler = "\n\n".join(f"## {number}. Part {number}\n\n{TALK}" for number in range(40))
    words = "\n\n".join(
        f"## Of old {number}\n\nThere was a {word}." for number, word in enumerate(("kiln", "tight", "night", "keep"))
    )
    long = "\n\n".join([paragraph] * 8)
    text = f"# Manual\n\n## Rings\n\n{long}\n\n{words}\n\n{filler}"
    request, documents = asking(text, question)
    (alone,) = show_sources(request, documents)
    assert alone.excerpt().count("wraparound seal.") == 8
    several = [request.sub_query, request.sub_query.with_fields(id="sq-2", text="Where do crates stand in winter?")]
    (one,) = show_sources(request.with_fields(sub_queries=several), documents)
    assert 0 < one.excerpt().count("wraparound seal.") < 8


def test_of_a_large_page_that_fits_in_small_part_this_part_is_shown() -> None:
    """A small page is shown whole, and so is a large one if a third of it fits."""
    large = page(30, 7)
    (one,) = shown(large).values()
    assert ANSWER in one.excerpt()
    assert one.characters < len(large) / 5
    assert len(one.hidden) >= 28
    (one,) = shown(page(30, 7, f"{ANSWER} {TALK}")).values()
    assert one.hidden == ()


def test_with_less_room_whole_units_of_the_same_sections_are_shown() -> None:
    """Under their headings, a list with all its items, and the rest is named by its numbers."""
    steps = STEPS.replace("Vacuum step", "Vacuum rows before wraparound, step")
    text = f"# The manual\n\n## Steps\n\n{steps}\n\n" + "\n\n".join(
        f"## {number}. Part {number}\n\n{ANSWER} {TALK}" for number in range(8)
    )
    request, documents = call(text)
    (whole,) = show_sources(request, documents)
    assert whole.hidden == ()
    size = token_size(whole.excerpt())
    less = whole.narrow(0.4 * size)
    assert token_size(less.excerpt()) <= 0.45 * size
    assert steps in less.excerpt()
    headings = [line for line in less.excerpt().splitlines() if line.startswith("## ")]
    assert headings
    assert len(headings) + len(less.hidden) == 9
    numbers = numbered_sections(request, documents)
    assert all(not less.text[numbers[one.number].start :].startswith(tuple(headings)) for one in less.hidden)
    assert all(whole.narrow(share * size).characters for share in (0.2, 0.1, 0.05))


def test_a_second_reading_shows_of_a_section_what_the_first_did_not() -> None:
    """So that nothing is read twice; the two together are the whole section, and no list names it any more."""
    paragraphs = [f"{ANSWER} Rule {number} of the transaction rows. {TALK}" for number in range(9)]
    filler = "\n\n".join(f"## {number}. Part {number}\n\n{TALK}" for number in range(60))
    long = "\n\n".join(paragraphs)
    text = f"# The manual\n\n## Freezing\n\n{long}\n\n{filler}"
    request, documents = call(text, shown_tokens=1_500)
    (first,) = show_sources(request, documents)
    asked = next(one for one in first.hidden if one.section.title == "Freezing")
    assert asked.in_part
    wanted = [numbered_sections(request, documents)[asked.number]]
    again = request.with_fields(wanted=wanted, shown_before=True, shown_tokens=1_500)
    (second,) = show_sources(again, documents)
    shown_first = {number for number in range(9) if f"Rule {number} " in first.excerpt()}
    shown_second = {number for number in range(9) if f"Rule {number} " in second.excerpt()}
    assert shown_first
    assert shown_second
    assert not shown_first & shown_second
    (alike,) = show_sources(again.with_fields(narrowed_before=True), documents)
    assert any(f"Rule {number} " in alike.excerpt() for number in shown_first), (
        "of a shortened one nothing counts as seen"
    )


def test_a_second_reading_after_a_shortened_one_shows_the_rest() -> None:
    """What the first one was shown is known part by part: it is not repeated, nor listed as hidden."""
    text = page(12, 7, f"{ANSWER} {TALK}")
    request, documents = call(text)
    known = numbered_sections(request, documents)
    seen = [known[3], known[5]]
    again = request.with_fields(
        wanted=[known[4], known[5]], shown_before=True, narrowed_before=True, seen=seen, shown_tokens=900
    )
    (one,) = show_sources(again, documents)
    assert text[known[4].start : known[4].end].strip() in one.excerpt()
    assert {3, 4}.isdisjoint(hidden.number for hidden in one.hidden)
    assert 7 in {hidden.number for hidden in one.hidden}


def test_with_less_room_a_second_reading_shows_what_was_asked_for_first() -> None:
    """In the order in which it was asked; of a first reading that was shortened nothing counts as seen."""
    text = page(12, 7, f"{ANSWER} {TALK}")
    request, documents = call(text)
    known = numbered_sections(request, documents)
    wanted = [known[number] for number in (10, 4, 8, 5)]
    again = request.with_fields(wanted=wanted, shown_before=True, narrowed_before=True)
    (one,) = show_sources(again, documents)
    assert all(one.text[part.start : part.end].strip() in one.excerpt() for part in wanted)
    less = one.narrow(0.5 * token_size(one.excerpt()))
    shown_parts = [number for number in (10, 4, 8, 5) if less.text[known[number].start :][:12] in less.excerpt()]
    assert shown_parts
    assert shown_parts == [10, 4, 8, 5][: len(shown_parts)]
    assert len(shown_parts) < 4


PLANNING = (
    "Primary and standby should be as alike as possible, at least for the database server. "
    "Paths of table spaces are passed on as they are, so both need the same mounts. "
    "It is not very likely that rows are frozen alike by vacuum where transaction releases differ, as wraparound shows. "
    "Hardware may differ, but one kind of it is easier to maintain over the lifetime of the application."
)


def test_a_section_that_was_asked_for_is_shown_whole_though_a_call_has_little_room() -> None:
    """The frame of such a call is many times as long, and the end of a sentence answers nothing."""
    text = page(60, 7) + f"\n\n## Planning\n\n{PLANNING}\n"
    request, documents = call(text)
    numbers = numbered_sections(request, documents)
    (wanted,) = [part for part in numbers.values() if text[part.start : part.end].startswith("## Planning")]
    (one,) = show_sources(request.with_fields(wanted=[wanted]), documents)
    for level in (Level.COMPRESSED, Level.TRUNCATED):
        assert PLANNING in one.at(level).excerpt()
    assert one.at(Level.DROPPED).excerpt() == ""


def test_a_part_of_a_paragraph_begins_where_a_sentence_does() -> None:
    """A part that begins within one may say the opposite of it."""
    text = page(60, 7) + f"\n\n## Planning\n\n{PLANNING}\n"
    request, documents = call(text)
    numbers = numbered_sections(request, documents)
    (wanted,) = [part for part in numbers.values() if text[part.start : part.end].startswith("## Planning")]
    (one,) = show_sources(request.with_fields(wanted=[wanted]), documents)
    (line,) = [part for part in one.narrow(85).excerpt().splitlines() if part and not part.startswith("[…]")]
    assert line.startswith("It is not very likely that rows are frozen alike")


@given(
    st.lists(
        st.sampled_from(
            [TALK, STEPS, ANSWER, "# A", "## B", "### C", "```\ncode\n```", "| a | b |\n|---|---|\n| c | d |"]
        ),
        max_size=30,
    )
)
def test_sections_and_their_units_leave_out_nothing(parts: list[str]) -> None:
    """Whatever a text is made of, its sections follow each other, and so do the units of each."""
    text = "\n\n".join(parts)
    sections = sections_of(text)
    covered = "".join(text[one.start : one.end] for one in sections)
    assert covered.split() == text.split()
    for section in sections:
        units = units_of(text, section)
        assert (units[0].start, units[-1].end) == (section.start, section.end)
        assert all(one.end == other.start for one, other in pairwise(units))


@given(st.integers(1_000, 30_000), st.integers(1, 8))
def test_no_more_is_shown_than_the_tokens_of_a_call(tokens: int, count: int) -> None:
    """By the same estimate as prompts are measured."""
    chosen = shown(*(page(5 * number + 1, number) for number in range(count)), shown_tokens=tokens)
    total = sum(token_size(one.text[start:end]) for one in chosen.values() for start, end in one.spans)
    assert total <= tokens


def test_a_source_without_text_is_not_shown() -> None:
    """Whatever the language of the questions; others are shown as ever."""
    assert list(shown("", page(3, 1), language="de")) == ["src-1"]


def test_lines_of_contents_behind_a_list_are_cut_into_parts() -> None:
    """They are no blocks, so no cut between blocks makes a long unit of them shorter."""
    contents = "\n\n".join(f"Chapter {number} {'. ' * 20}{number}" for number in range(200))
    text = f"# Contents\n\n- vacuum here\n- wraparound there\n\n{contents}\n"
    units = [unit for section in sections_of(text) for unit in units_of(text, section)]
    assert "".join(text[unit.start : unit.end] for unit in units) == text
    assert max(unit.end - unit.start for unit in units) <= 4_000


def test_a_passage_is_scored_once_for_a_question() -> None:
    """A block is chosen for its page, for its section and for its unit, and its words are counted once."""
    request, documents = call(page(3, 1))
    ranking = Ranking(request, SourceWords.of(request, documents), request.query)
    (one,) = request.sources
    block = blocks_of(page(3, 1))[2]
    measured = ranking.measure(one, block.start, block.end, block)
    assert measured.coverage > 0
    assert ranking.measure(one, block.start, block.end, block) is measured
    assert ranking.measure(one, block.start, block.end, None) is not measured


def last_look(text: str, **changes: Any) -> ShownSource:
    """What a last look at one gap shows of a page."""
    gap = Gap(id="gap-1", description="Which releases of the engine may replicate", **changes)
    request, documents = call(text, gaps=[gap], for_gaps=True)
    (one,) = show_sources(request, documents)
    return one


def test_a_last_look_shows_the_sections_that_speak_of_a_gap() -> None:
    """Not those of the question, which were read; and it lists nothing to ask for, as nothing is asked again."""
    parts = [f"## {number}. Part {number}\n\n{ANSWER} {TALK}" for number in range(12)]
    answer = "Two releases of the engine may replicate if they are of one series."
    parts.insert(7, f"## 7a. Planning\n\n{answer} {TALK}")
    one = last_look("# The manual\n\n" + "\n\n".join(parts))
    assert answer in one.excerpt()
    assert len(one.excerpt()) < 3_000
    assert one.hidden == ()


def test_a_last_look_with_little_room_shows_what_speaks_of_the_gap() -> None:
    """Not the paragraphs of the same section that speak of the question."""
    paragraphs = [f"Vacuum prevents transaction wraparound in table {number}." for number in range(8)]
    answer = "Two releases of the engine may replicate if they are of one series."
    paragraphs.insert(5, answer)
    one = last_look("# The manual\n\n" + "\n\n".join(paragraphs))
    assert paragraphs[0] in one.excerpt()
    assert answer in one.narrow(token_size(answer) + 9).excerpt()


def test_a_last_look_shows_where_a_reader_expects_the_answer() -> None:
    """Whatever words the section has."""
    text = page(12, 3)
    section = next(part for part in sections_of(text) if part.title.endswith("Part 9"))
    one = last_look(text, unread=[SectionRef(source_id="src-0", start=section.start, end=section.end)])
    assert any(start <= section.start and section.end <= end for start, end in one.spans)


@pytest.mark.parametrize("place", [0, 20])
def test_a_last_look_shows_of_a_long_section_what_is_around_the_passage(place: int) -> None:
    """A list of changes with a paragraph for each has room for its neighbours alone."""
    paragraphs = [f"Change {number}. {TALK}" for number in range(15 if place == 0 else 30)]
    paragraphs[place] = "Releases of the engine may replicate if both are of one series."
    text = "# Changes\n\n" + "\n\n".join(paragraphs)
    one = last_look(text)
    assert paragraphs[place] in one.excerpt()
    assert one.characters < 8_000


def test_a_short_section_that_was_asked_for_is_shown_before_a_long_one() -> None:
    """However little room there is: what is asked for first would fill it, and the short one has hardly a line."""
    short = "## 2. Dates\n\nIt came out in May 2023."
    text = f"# The manual\n\n## 1. Changes\n\n{page(9, 4)[20:].replace('## ', '- ')}\n\n{short}\n\n## 3. Thanks\n\n{TALK * 3}"
    parts = [part for part in sections_of(text) if part.title in ("1. Changes", "2. Dates")]
    wanted = [SectionRef(source_id="src-0", start=part.start, end=part.end) for part in parts]
    (one,) = shown(text, wanted=wanted, shown_before=True).values()
    assert "It came out" in one.excerpt()
    assert "It came out" in one.narrow(300).excerpt()
    (little,) = shown(text, wanted=wanted, shown_before=True, shown_tokens=300).values()
    assert "It came out" in little.excerpt()


def test_sections_that_were_not_asked_for_come_last() -> None:
    """A shorter section beside those that were asked for takes none of their room."""
    lengths = {"1. Caveats": 6, "2. Thanks": 3}
    text = "# The manual\n\n" + "\n\n".join(
        f"## {title}\n\n" + "\n\n".join(f"{title[3:]} {number} of the wraparound. {TALK}" for number in range(count))
        for title, count in lengths.items()
    )
    parts = [part for part in sections_of(text) if part.title in lengths]
    wanted = [
        SectionRef(source_id="src-0", start=part.start, end=part.end, beside=part.title == "2. Thanks")
        for part in parts
    ]
    (one,) = shown(text, wanted=wanted, shown_before=True, narrowed_before=True, shown_tokens=2_200).values()
    caveats, thanks = (one.excerpt().count(f"{title[3:]} ") for title in lengths)
    assert caveats == 6
    assert thanks < 3


def test_a_definition_is_not_shown_for_its_neighbour() -> None:
    """Of a list of settings those that fit are shown, and not what stands beside the best one."""
    settings = [f"`setting_{number}`\nIt is a number. {TALK}" for number in range(4)]
    settings[0] = f"`freeze_age`\n{ANSWER} {TALK}"
    settings[3] = f"`worker_age`\nWorkers vacuum before the wraparound of a transaction. {TALK}"
    text = "# Settings\n\n" + "\n\n".join(settings)
    (one,) = shown(text, shown_tokens=900).values()
    assert ANSWER in one.excerpt()
    assert "`worker_age`" in one.excerpt()
    assert one.excerpt().count("`setting_") == 0
