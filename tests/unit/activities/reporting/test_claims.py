"""Claims: which sentences are some, under which ids, and what rules say of them."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from activities.reporting.claims import MAX_BEFORE, Claim, count_verdicts, find_claims
from activities.reporting.drafts import parse_draft
from activities.reporting.inputs import CitedPassage, judge
from activities.reporting.passages import show_passage
from activities.reporting.references import DraftMarks, KnownAddresses, number_citations
from activities.reporting.tree import WrittenText, parse, sentences, write
from contracts.checking import CorrectionAction, ExtractedClaim, VerificationSummary
from contracts.evidence import CheckMethod, ClaimVerdict, Evidence, Verdict
from tests.drawn import draws
from tests.unit.activities.reporting.sample import SAMPLE, rendered

RULE, PROBLEM = SAMPLE.quote(SAMPLE.rule), SAMPLE.quote(SAMPLE.problem)
A, B, C = "ev-aa", "ev-bb", "ev-cc"
SOURCES = {A: "src-1", B: "src-2", C: "src-1"}
EVIDENCE = {key: Evidence(id=key, source_id=source, start=0, end=5) for key, source in SOURCES.items()}
AWKWARD = "It is *not* so [7], see https://elsewhere.test/x_y, <stdin>.\n\nA 2nd\u200b paragraph | with 50 % & more."
CITED = {
    A: CitedPassage(RULE, "", "A page"),
    B: CitedPassage(PROBLEM, "", "A page"),
    C: CitedPassage(AWKWARD, "", "A page"),
}
REGISTRY = KnownAddresses.of(["https://good.test/page"])


def numbered(draft: str) -> tuple[list[Claim], WrittenText]:
    blocks = parse(draft, DraftMarks({key: [key] for key in EVIDENCE}), REGISTRY.filter([]))
    blocks, _ = number_citations(blocks, EVIDENCE, [], {})
    return find_claims(blocks), write(blocks)


@pytest.mark.parametrize(
    ("draft", "texts"),
    [
        (f"First one. Second [{A}]. Third.", ["Second [1]."]),
        (f"First. Second.[{A}] Third [{B}].", ["Second.[1]", "Third [2]."]),
        (f"Version 9.5, i.e. the old one, works [{A}]. Next.", ["Version 9.5, i.e. the old one, works [1]."]),
        (f"1. Item one [{A}].\n2. Item two [{B}]\n", ["Item one [1].", "Item two [2]"]),
        (f"| a | b |\n|---|---|\n| x | [{A}] |\n| y | z |\n", ["x | [1]"]),
        (f"| a | b | c |\n|---|---|---|\n| x | y | z [{A}] |\n", ["z [1]"]),
        (f"| a | b | c | d |\n|---|---|---|---|\n| x | y | z | [{A}] |\n", ["y", "z | [1]"]),
        (f"> One. Two. [{A}]\n>\n> Three. [{B}]\n", ["One. Two. [1]", "Three. [2]"]),
        (f"> - one\n> - two\n>\n> [{A}]", ["one\n> - two\n>\n> [1]"]),
        (f"> One. [{A}] Invented.", ["One. [1] Invented."]),
        ("`[ev-x]` alone.", []),
    ],
)
def test_claims_are_the_pieces_that_carry_citations(draft: str, texts: list[str]) -> None:
    """A claim is the sentence, the row or the quoted passage to which a number belongs, at its exact place (X-7)."""
    claims, written = numbered(draft)
    assert [written.text[slice(*claim.span(written))] for claim in claims if claim.evidence_ids] == texts


@pytest.mark.parametrize(
    "sentence",
    [
        "PostgreSQL was released in 1996.",
        "This report shows that sales fell by 5 %.",
        "No evidence of life on Mars was found by the probe.",
    ],
)
def test_assertion_without_a_citation_is_a_claim(sentence: str) -> None:
    """Nothing that says how the world is passes for a word about the report; an extractive text has cited claims alone."""
    (claim,) = find_claims(parse_draft(sentence))
    assert not claim.evidence_ids
    assert find_claims(parse_draft(sentence), uncited=False) == []
    forms = rendered(f"# T\n\n{sentence}\n", engine_by_role={"synthesizer": "model"})
    document = json.loads(forms.document)
    assert [(each["verdict"], each["evidence_ids"]) for each in document["claims"]] == [("unverified", [])]
    assert document["verification"]["uncited_claims"] == 1
    assert "The writer cites no passage for" in forms.markdown


def test_questions_labels_and_leads_are_no_claims() -> None:
    """Neither what leads over to a list nor a short label asserts something."""
    draft = f"# T\n\nWhich one is faster?\n\nThe main differences are:\n\n- Bloom filters\n- Reads cost more [{A}]\n"
    (claim,) = find_claims(parse_draft(draft))
    assert (claim.text, claim.section) == ("Reads cost more", "")


@pytest.mark.parametrize(
    ("draft", "claims"),
    [
        (f"One thing holds. Another [{A}].", [("One thing holds.", [A]), ("Another.", [A])]),
        (f"A [{A}]. One thing holds. More [{B}].", [("A.", [A]), ("One thing holds.", [B]), ("More.", [B])]),
        (f"One thing holds here. Another [{A}]. And so it ends.", [("Another.", [A])]),
        (f"- **What the one thing is.** It holds [{A}].", [("It holds.", [A])]),
        (
            f"It writes to tables. [{A}] Data Definition is out [{B}].",
            [("It writes to tables.", [A]), ("Data Definition is out.", [B])],
        ),
        (f"See e.g. [{A}] the manual [{B}].", [("See e.g. the manual.", [A, B])]),
    ],
)
def test_a_citation_at_the_end_counts_back_to_the_one_before(draft: str, claims: list[tuple[str, list[str]]]) -> None:
    """Sentences share the last citation of their paragraph; lead words are no claims; a citation may end a sentence."""
    found = find_claims(parse_draft(draft))
    assert [(claim.text, claim.evidence_ids) for claim in found if claim.evidence_ids] == claims


TABLE = f"""It has these settings:

| Setting | Default | Note | Source |
|---|---|---|---|
| `synchronous` | FULL | is safe [{B}] | [{A}] |
| `cache_size` | | | [{C}] |
| other | 2 | | |
"""


def test_a_cell_is_judged_with_the_heads_of_its_row_and_column() -> None:
    """A citation in a cell of its own belongs to the cell before, and counts for the cells of the row without any."""
    default, note, alone, uncited = find_claims(parse_draft(TABLE))
    assert (default.text, default.evidence_ids, default.stated) == ("FULL", [A], "synchronous | FULL")
    assert (default.place.column, default.place.row) == ("Default", "Setting: synchronous; Note: is safe")
    assert default.place.leads == ["It has these settings:"]
    assert (note.text, note.evidence_ids, note.place.row) == ("is safe", [B, A], "Setting: synchronous; Default: FULL")
    assert (alone.text, alone.row_head, alone.evidence_ids) == ("cache_size", "", [C])
    assert (uncited.text, uncited.row, uncited.evidence_ids) == ("other | 2", True, [])


def test_a_full_stop_within_code_ends_no_sentence() -> None:
    """A name such as `toast.` is a word of its sentence, so that no correction takes half of it."""
    text = "It has a `toast.` variant, unlike others. Write `a.b`. Then go."
    assert [sentence.words for sentence in sentences(parse(text))] == [
        "It has a toast. variant, unlike others.",
        "Write a.b.",
        "Then go.",
    ]


@pytest.mark.parametrize(
    ("line", "claims"), [("Keeping it in step with tables", 0), ("It is kept in step with tables.", 1)]
)
def test_a_line_in_bold_is_a_heading_unless_it_is_a_sentence(line: str, claims: int) -> None:
    """Without the end of a sentence it names what follows, and asserts nothing."""
    assert len(find_claims(parse_draft(f"**{line}**\n\nWhat is it?\n"))) == claims


def test_a_citation_of_the_first_cell_counts_for_its_row() -> None:
    """What names the row states nothing that it could be meant for; a cell with a citation of its own keeps to that."""
    table = f"| Level | Reads | Locks |\n|---|---|---|\n| FULL (2) [{A}] | Every page once | None at all [{B}] |\n"
    named, reads, locks = find_claims(parse_draft(table))
    assert (named.text, named.evidence_ids, named.row_head) == ("FULL (2)", [A], "")
    assert (reads.text, reads.evidence_ids, reads.row_head) == ("Every page once", [A], "FULL (2)")
    assert (locks.text, locks.evidence_ids) == ("None at all", [B])


def test_behind_a_cited_cell_that_of_the_first_one_counts_no_more() -> None:
    """A cell that says what an entry does not have is not judged by the passage of the entry's date."""
    table = f"| Release | Fault | Action |\n|---|---|---|\n| 15.19 [{A}] | Rows were missed [{B}] | None there |\n"
    assert [(claim.text, claim.evidence_ids) for claim in find_claims(parse_draft(table))] == [
        ("15.19", [A]),
        ("Rows were missed", [B]),
    ]


def test_a_citation_in_the_head_of_a_column_counts_for_its_cells() -> None:
    """One in the first head counts for all rows, one of a cell for that cell alone, and a dash states nothing."""
    table = f"| Mode [{C}] | Conflicts [{A}] | Taken by |\n|---|---|---|\n| share | update | delete [{B}] |\n| key | all | – |\n"
    found = [(claim.text, claim.evidence_ids) for claim in find_claims(parse_draft(table))]
    assert found == [("update", [A]), ("delete", [B]), ("all", [A])]
    named = f"| Mode [{C}] | Taken by |\n|---|---|\n| share | delete at once |\n"
    assert [claim.evidence_ids for claim in find_claims(parse_draft(named))] == [[C]]


def test_a_citation_at_the_end_of_each_row_counts_for_the_row() -> None:
    """Where no other cell of the table has any, they are not cited one by one."""
    table = f"| Mode | Conflicts | Taken by |\n|---|---|---|\n| share | update | delete [{A}] |\n| key | all | insert [{B}] |\n"
    found = [(claim.text, claim.evidence_ids) for claim in find_claims(parse_draft(table))]
    assert found == [("update", [A]), ("delete", [A]), ("all", [B]), ("insert", [B])]
    one_by_one = find_claims(parse_draft(f"{table}| row | none [{C}] | other |\n"))
    assert [claim.text for claim in one_by_one] == ["delete", "insert", "none"]


@pytest.mark.parametrize(
    ("head", "stated"),
    [
        ("FULL (2)", "FULL | Yes"),
        ("2. Restore", "Restore | Yes"),
        ("3", "Yes"),
        ("In 2019", "In 2019 | Yes"),
        ("2.5 GB", "2.5 GB | Yes"),
        ("10 servers", "10 servers | Yes"),
    ],
)
def test_the_number_of_a_row_is_no_figure(head: str, stated: str) -> None:
    """A label in brackets or before a full stop is in no passage; any other number of the first cell is compared."""
    _, *cells = find_claims(parse_draft(f"| Row | Safe | Quick |\n|---|---|---|\n| {head} | Yes [{A}] | No [{A}] |\n"))
    assert find_claims(parse_draft(f"| Row | Safe |\n|---|---|\n| {head} | Yes [{A}] |\n"))[0].stated == stated
    assert cells[0].subject.startswith(head), "a row is still told from another"


def test_an_uncited_cell_beside_cited_ones_is_no_claim() -> None:
    """Where cells are cited one by one, "No finding" is a word about the research."""
    rows = f"| Substrings | No finding | By trigrams [{A}] |\n| Languages | By dictionaries [{B}] | No finding |\n"
    found = find_claims(parse_draft(f"| | One | Other |\n|---|---|---|\n{rows}"))
    assert [claim.text for claim in found] == ["By trigrams", "By dictionaries"]


def test_equal_cells_of_different_rows_are_different_statements() -> None:
    """The same word below another head, or in another row, says something else and is judged by itself."""
    rows = f"| a | Yes [{A}] | Yes [{A}] |\n| b | Yes [{A}] | No [{A}] |\n"
    found = find_claims(parse_draft(f"| Name | Reads | Writes |\n|---|---|---|\n{rows}"))
    assert len({claim.subject for claim in found}) == len({claim.id for claim in found}) == len(found) == 4


PLACED = f"""# Stores

Before it all.

## Steps

The order matters:

1. Stop the server [{A}].
2. **Copy.** Then start it again [{A}].

It takes a minute [{B}]. Repeat step 1 [{B}].

```sh
stop
```
"""


def test_a_claim_comes_with_the_text_around_it() -> None:
    """The headings above, the words that introduce its list, and what is before and after it in its section."""
    _, first, second, third, fourth = find_claims(parse_draft(PLACED.replace("it all", "it all was built")))
    assert first.place.headings == ["Stores", "Steps"]
    assert (first.place.before, first.place.leads) == ("The order matters:", [])
    assert first.place.after == "2. Copy."
    assert second.place.before == "The order matters: 1. Stop the server. 2. Copy."
    assert third.place.before.endswith("2. Copy. Then start it again.")
    assert (fourth.place.before[-18:], fourth.place.after) == ("It takes a minute.", "stop")


def test_a_cell_comes_with_the_row_above_it() -> None:
    """A cell such as "the same for pages" speaks of that row; below the header there is none. Below a table one row is enough."""
    rows = "".join(f"| mode {n} | Holds {n} tables [{A}] | None [{B}] |\n" for n in range(4))
    *cells, after = find_claims(parse_draft(f"| Mode | Holds | Else |\n|---|---|---|\n{rows}\nIt is so [{A}].\n"))
    assert [cell.place.before for cell in cells[:2]] == ["", ""]
    assert {cell.place.before for cell in cells[2:4]} == {"mode 0 | Holds 0 tables | None"}
    assert after.place.before == "mode 3 | Holds 3 tables | None"


def test_an_elision_within_a_phrase_ends_no_sentence() -> None:
    """A syntax with words left out is one phrase; dots at the end of a word may end a sentence."""
    (claim,) = find_claims(parse_draft(f"With INSERT ... ON CONFLICT it is retried [{A}]."))
    assert claim.text == "With INSERT ... ON CONFLICT it is retried."
    assert len(find_claims(parse_draft(f"It goes on and on... Then it is retried [{A}]."))) == 2


def test_the_text_before_a_claim_is_the_nearest() -> None:
    """Whole sentences as far as there is room; the lead of a long list is shown by itself."""
    items = "".join(f"- Item {number} says {'much ' * 20}here [{A}].\n" for number in range(9))
    last = find_claims(parse_draft(f"These are all:\n\n{items}"))[-1]
    assert last.place.leads == ["These are all:"]
    assert last.place.before.startswith("- Item 5")
    assert len(last.place.before) <= MAX_BEFORE
    long = find_claims(parse_draft(f"{'Much ' * 200}before. It ends [{A}]."))[-1]
    assert long.place.before.startswith("…")
    assert long.place.before.endswith("before.")


TERMS = """## Settings

Of these, two matter.

`idle_timeout` (`integer`)
Ends a session that is idle.

Unlike the other one, it costs little.

```
idle_timeout = 5

## no heading
```

Be wary of it with a pool.

`NO CHECK`/`CHECK ROWS` (`boolean`)
Looks at rows.

`mode` (`enum`)
Chooses a mode. There are two modes:

`off`
`none`
Does nothing

`on`
Works in steps:

- The first step reads.

```sql
SET mode = on;
```

It is ignored on sockets.

`last_one`
Is the last, and announces:

```
last_one = 1
```

All of these are read at the start.

host name
A name that is no code.

Names are looked up.

`final`
Has a paragraph.

The server has two kinds of them:

`kind`
Is the first kind.

## Notes

Beware of `code` at the beginning.
"""


@pytest.mark.parametrize(
    ("quote", "term"),
    [
        ("Of these", ""),
        ("`idle_timeout` (`integer`)", ""),
        ("Ends a session", "`idle_timeout` (`integer`)"),
        ("Be wary of it", "`idle_timeout` (`integer`)"),
        ("Looks at rows", "`NO CHECK`/`CHECK ROWS` (`boolean`)"),
        ("There are two modes", "`mode` (`enum`)"),
        ("Does nothing", "`off`, `none`"),
        ("Works in steps", "`on`"),
        ("- The first step", "`on`"),
        ("It is ignored", "after the term `on`"),
        ("last_one = 1", "`last_one`"),
        ("All of these", "after the term `last_one`"),
        ("A name that", ""),
        ("Names are looked up", ""),
        ("Has a paragraph", "`final`"),
        ("The server has two", "after the term `final`"),
        ("Is the first kind", "`kind`"),
        ("Beware of", ""),
    ],
)
def test_a_passage_names_the_term_that_it_defines(quote: str, term: str) -> None:
    """What lies between two terms of a list has the first; what may come after the end of the list says that."""
    start = TERMS.index(quote)
    item = Evidence(id=A, source_id="src-1", start=start, end=start + len(quote), heading="Settings")
    shown = show_passage(item, "Manual", TERMS)
    assert (shown.title, shown.quote) == (" § ".join(filter(None, ("Manual", "Settings", term))), quote)


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("Then start it, and repeat steps 1 and 2", "not_enough_information"),
        ("Of steps 1, 2 and 3 the last is optional", "not_enough_information"),
        ("Steps 1–3 stop and start the server", "not_enough_information"),
        ("It is the subject of section 7", "not_enough_information"),
        ("It needs step 9", "unsupported"),
        ("It needs at least 2", "unsupported"),
        ("The 3 servers start again", "unsupported"),
    ],
)
def test_numbers_of_the_text_itself_are_no_figures(statement: str, verdict: str) -> None:
    """A step or a section of the report is in no passage; a count is, and so is a step that the report does not have."""
    steps = "".join(f"{number}. Do it [{C}]\n" for number in (1, 2, 3))
    draft = f"## 7. Restarting\n\n{steps}\n{statement} [{A}].\n"
    claim = find_claims(parse_draft(draft))[-1]
    passage = CitedPassage("The server is stopped and started; that is a section and a subject.", "", "")
    assert judge(claim, [passage], REGISTRY, "en").verdict == verdict


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("The example is:\n\n```sql\nSELECT 1\n  FROM rows;\n```\n\n[{A}]\n", "SELECT 1 FROM rows;"),
        ("- **Item.** The example is:\n\n  ```\n  SELECT 1;\n  ```\n  [{A}]\n- Other\n", "SELECT 1;"),
        ("It says:\n\n> Rows are safe. They stay.\n\n[{A}]\n", "Rows are safe. They stay."),
        ("> Rows are safe.\n\n> [{A}]\n", "Rows are safe."),
        ("> Rows are safe.\n>\n> [{A}]\n", "Rows are safe."),
        ("Rows are never lost.\n\n[{A}]\n", "Rows are never lost."),
        ("## Rows\n\n[{A}]\n", ""),
        ("- Rows\n\n[{A}]\n", ""),
    ],
)
def test_a_citation_alone_counts_for_the_block_above_it(text: str, statement: str) -> None:
    """The statement of a listing or a quotation is its text; a citation without words is no claim, and never empty."""
    claims = find_claims(parse_draft(text.replace("{A}", A)))
    assert [claim.text for claim in claims if claim.evidence_ids] == [statement] * bool(statement)
    assert all(claim.text for claim in claims)


@pytest.mark.parametrize("heading", ["Gaps and limitations", "Lücken und Grenzen", "Limitaciones", "Offene Fragen"])
def test_sentences_about_the_research_are_no_claims(heading: str) -> None:
    """Under its heading an uncited sentence says what the research did not find; a cited one is a claim as elsewhere."""
    state = f"No source gives a figure for users.\n\nThe figure dates from 2015 [{A}]."
    found = find_claims(parse_draft(f"## {heading}\n\n{state}\n\n## Conclusion\n\nIt holds for most users.\n"))
    assert [claim.text for claim in found] == ["The figure dates from 2015.", "It holds for most users."]


SIGNED = "\n".join(f"> {line}".rstrip() for line in AWKWARD.replace("[7]", "\\[7\\]").replace("|", "\\|").split("\n"))


@pytest.mark.parametrize(
    ("draft", "same"),
    [
        (f"> {RULE} [{A}]", True),
        (f"> “{RULE}” [{A}]", True),
        (f"> {RULE.replace(' every ', chr(10) + '> every ')} [{A}]", True),
        (f"> {RULE} [{A}][{B}]", True),
        (f"{RULE} [{A}]", True),
        (f"{SIGNED} [{C}]", True),
        (f"> {RULE.replace('table', 'ta-ble')} [{A}]", True),
        (f"> {RULE.replace('two', 'three')} [{A}]", False),
        (f"> {RULE} And more. [{A}]", False),
        (f"> {RULE.replace('table in every database', 'database in every table')} [{A}]", False),
        (f"> {PROBLEM} [{A}]", False),
    ],
)
def test_only_the_very_words_of_a_passage_are_its_quotation(draft: str, same: bool) -> None:
    """Line breaks, hyphens in words, signs and addresses may differ; other words or another order are unverified (invariant 15)."""
    claim = numbered(draft)[0][-1]
    found = judge(claim, [CITED[key] for key in claim.evidence_ids], REGISTRY, "en")
    assert (found.verdict, found.method) == (("supported", "verbatim") if same else ("unverified", "none"))
    assert "elsewhere" not in claim.text


SIGNS = ["\n\n", "\n", "> ", "- ", "1. ", "`x` ", "**", "| a |\n|---|\n| ", "```\n", "# ", "    ", "(", ")", "\\"]
WORDS = ["The dam is safe. ", "word ", "e.g. ", "🐘 ", "é", "? ", f"[{A}]", f"[{B}], [{C}] "]


@draws(30)
@given(st.lists(st.sampled_from(SIGNS + WORDS), max_size=40).map("".join))
def test_every_number_is_in_exactly_one_claim(draft: str) -> None:
    """Places are exact, claims do not overlap, together they have every citation with words, and rendering changes no id."""
    claims, written = numbered(draft)
    spans = [claim.span(written) for claim in claims]
    assert spans == sorted(spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    claimed = [each for claim in claims for each in claim.sentences if each.marks]
    assert claimed == [sentence for sentence in written.spans if sentence.marks and sentence in set(claimed)]
    assert not any(sentence.words for sentence in written.spans if sentence.marks and sentence not in set(claimed))
    drafted = find_claims(parse(draft, DraftMarks({key: [key] for key in EVIDENCE}), REGISTRY.filter([])))
    assert [claim.id for claim in drafted] == [claim.id for claim in claims]


def statement(
    section: str, verdict: Verdict, *, text: str = "It holds.", evidence_ids: Sequence[str] = (A,)
) -> tuple[ExtractedClaim, ClaimVerdict]:
    """A claim of a draft and its verdict."""
    claim = ExtractedClaim(id="c", text=text, section=section, evidence_ids=list(evidence_ids), fingerprint="c")
    return claim, ClaimVerdict(claim_id="c", verdict=verdict, method=CheckMethod.RULES)


LETTERS = {"-" if verdict is Verdict.UNVERIFIED else verdict.value[0]: verdict for verdict in Verdict}


@pytest.mark.parametrize(
    ("answer", "rest", "borne_out"),
    [
        ("ss", "ssss", True),
        ("sn", "unnnn", True),  # one of seven
        ("ss", "uusss", False),  # two of seven
        ("us", "ssssssss", False),  # the answer itself
        ("ss", "cssssssss", False),
        ("n-", "pppp", True),
        ("", "", True),
    ],
)
def test_a_report_is_supported_or_not(answer: str, rest: str, borne_out: bool) -> None:
    """A contradiction, an unsupported answer, or a fifth of unsupported statements is too much; doubt alone is not."""
    judged = [statement("Summary", LETTERS[letter]) for letter in answer]
    judged += [statement("More", LETTERS[letter]) for letter in rest]
    judged += [statement("Summary", Verdict.UNVERIFIED, evidence_ids=[])] * 20
    figures = count_verdicts(VerificationSummary(), judged)
    assert figures.warning is not borne_out
    assert figures.shortfall == ((answer + rest).count("u") + (answer + rest).count("c"), len(answer + rest))
    removed = VerificationSummary(correction_counts={CorrectionAction.REMOVE: 2})
    assert count_verdicts(removed, judged).warning is (not borne_out or not answer)


def test_a_part_that_was_split_off_fails_no_answer() -> None:
    """It is marked in the text, as the whole statement was before; without a split it would fail the answer."""
    for split_off, borne_out in ((True, True), (False, False)):
        parts = {"The rest."} if split_off else set()
        judged = [statement("Summary", Verdict.SUPPORTED)] * 5
        judged += [statement("Summary", Verdict.UNSUPPORTED, text="The rest.")]
        assert count_verdicts(VerificationSummary(), judged, parts).warning is not borne_out
        contradicted = statement("Summary", Verdict.CONTRADICTED, text="The rest.")
        assert count_verdicts(VerificationSummary(), [*judged, contradicted], parts).warning
