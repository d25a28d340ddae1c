"""Rules judge a claim by its passages: which ones are chosen, how amounts are read, and what is decided."""

import json

import pytest

from contracts.evidence import Verdict
from providers.verification.quantities import Comparison, compare, find_quantities
from providers.verification.rules import (
    UNDECIDED_REASON,
    check,
    code_names,
    exact_tokens,
    find_code_names,
    find_differences,
)
from tests.architecture.repository import ROOT

KEEPS = "Kestrel keeps each message for 72 hours by default. The limit can be raised to 14 days with retention.max."


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        ("Kestrel keeps each message for three days by default.", Verdict.SUPPORTED, "agree"),
        ("Kestrel keeps each message for 48 hours by default.", Verdict.CONTRADICTED, "“72 hours”"),
        ("The limit can be raised to 14 GB with retention.max.", Verdict.UNSUPPORTED, "“14 GB” is in no cited passage"),
        ("The limit can be raised with Valkey.", Verdict.UNSUPPORTED, "“Valkey” is named in no cited passage"),
        ("Ferries cross the lake on weekday mornings.", Verdict.UNSUPPORTED, "about something else"),
        ("Unless configured otherwise, old messages stay for three days.", Verdict.NOT_ENOUGH_INFORMATION, "wording"),
    ],
)
def test_quantities_names_and_subjects_are_decided(claim: str, verdict: Verdict, reason: str) -> None:
    """A copy is supported, another amount contradicted, a strange name or subject unsupported, other words left open."""
    judgement = check(claim, [KEEPS], ["Queues"])
    assert judgement.verdict is verdict
    assert reason in judgement.reason


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Messages are not deleted at the next sweep.", "Messages are deleted at the next sweep."),
        ("All members must register in advance.", "Some members must register in advance."),
        ("The fire was caused by a discarded cigarette.", "The fire was possibly caused by a discarded cigarette."),
        ("Only administrators change the limit.", "Administrators change the limit."),
        ("Valdera beat Montrose in the cup final.", "Montrose beat Valdera in the cup final."),
        ("The castle was destroyed in 1284.", "The castle was built in 1284 and destroyed in 1633."),
    ],
)
def test_other_differences_are_hints(claim: str, passage: str) -> None:
    """A negation, a wider word, a lost doubt or exchanged parts is named, and decides nothing."""
    judgement = check(claim, [passage])
    assert judgement.verdict is Verdict.NOT_ENOUGH_INFORMATION
    assert judgement.reason != UNDECIDED_REASON


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The manual says that “the limit can be raised”, which matters.", Verdict.NOT_ENOUGH_INFORMATION),
        ("The manual says that “the limit can never be raised”, which matters here.", Verdict.UNSUPPORTED),
        ("The manual says that “the limit … with retention.max”, which matters here.", Verdict.NOT_ENOUGH_INFORMATION),
        ('As "messages are kept for ever" shows, the limit can be raised.', Verdict.UNSUPPORTED),
        ("Es heißt „the limit can be lowered“, und das zählt.", Verdict.UNSUPPORTED),
        ("The limit “can” be raised.", Verdict.SUPPORTED),
        ("The manual says that “the lim-it can be raised”, which matters.", Verdict.NOT_ENOUGH_INFORMATION),
        ("The chapter «Queues of any size» names the limit.", Verdict.NOT_ENOUGH_INFORMATION),
        ("“Kestrel keeps every message for 72 hours by default.”", Verdict.UNSUPPORTED),
        ("“message for 72 hours by default. The limit can be raised”, wisely.", Verdict.NOT_ENOUGH_INFORMATION),
    ],
)
def test_a_quotation_inside_a_sentence_is_compared_word_for_word(claim: str, verdict: Verdict) -> None:
    """One that is in no passage or title is unsupported; one that is there proves nothing of the words around it."""
    judgement = check(claim, [KEEPS], ["Queues of any size"])
    assert judgement.verdict is verdict
    assert ("is in no cited passage" in judgement.reason) is (verdict is Verdict.UNSUPPORTED)


def test_a_name_may_be_in_a_title_alone() -> None:
    """The heading names what the passage speaks of."""
    claim, passage = "The Kestrel queue drops messages.", "The queue drops messages."
    assert check(claim, [passage]).verdict is Verdict.UNSUPPORTED
    assert check(claim, [passage], ["Kestrel"]).verdict is not Verdict.UNSUPPORTED


def test_only_numbers_are_compared_across_languages() -> None:
    """A claim in another language than its passage is judged by its numbers alone, not by its words."""
    (problem,) = find_differences("Die Ablage von Valkey fasst 512 MB.", ["The store holds 128 MB."], [], "de")
    assert (problem.verdict, problem.words) == (Verdict.CONTRADICTED, "512 MB")
    assert find_differences("Die Ablage fasst 128 MB.", ["The store holds 128 MB."], [], "de") == []


@pytest.mark.parametrize(
    ("claim", "about", "verdict"),
    [
        ("In release 15, the queue drops messages of a schema.", ["Release 15"], Verdict.NOT_ENOUGH_INFORMATION),
        ("In release 15, the queue drops messages of a schema.", ["Release 14"], Verdict.UNSUPPORTED),
        ("The queue cannot write to the WAL at any time.", [], Verdict.NOT_ENOUGH_INFORMATION),
        ("The queue cannot write to the WQL at any time.", [], Verdict.UNSUPPORTED),
    ],
)
def test_a_title_gives_a_number_and_an_acronym_is_its_words(claim: str, about: list[str], verdict: Verdict) -> None:
    """A release that the title names and an acronym that the passage spells out are no missing figure or name."""
    passage = "The queue drops messages of a schema, and cannot write to the write-ahead log."
    assert check(claim, [passage], about).verdict is verdict


@pytest.mark.parametrize(
    ("claim", "passage", "page", "words"),
    [
        ("It prunes them after 2 weeks.", "Call prune --expire 2.weeks.ago here. The default is 15 days.", "", []),
        ("It prunes them after 3 weeks.", "Call prune --expire 2.weeks.ago here.", "", ["3 weeks"]),
        ("It takes 5 h.", "It takes 5.h of them.", "", ["5 h"]),
        ("It is the CA's certificate.", "The certificate is placed in a file.", "An authority (CA) and a CA.", ["CA"]),
        ("It is the CA's certificate.", "A certificate is in a file.", "A certificate authority (CA) signs.", []),
        ("It is the CA’s certificate.", "The CA has a certificate.", "", []),
    ],
)
def test_figures_and_names_are_compared_in_the_forms_of_programs(
    claim: str, passage: str, page: str, words: list[str]
) -> None:
    """A point may join a number to the long name of its unit, and a possessive is no part of a name."""
    assert [item.words for item in find_differences(claim, [passage], pages=[page])] == words


FIRST = KEEPS.partition(" The")[0]
PAIRS = [json.loads(line) for line in (ROOT / "benchmarks/truth/pairs.jsonl").read_text("utf-8").splitlines()]
LEADS = ("Notably, ", "According to the documentation, ", "[src-0a1b2c3d] ")


@pytest.mark.parametrize("lead", LEADS)
def test_words_before_a_statement_are_no_part_of_it(lead: str) -> None:
    """An adverb, an attribution to the source and an id change no verdict on a claim, true or false (X-8)."""
    for pair in (pair for pair in PAIRS if pair["language"] == "en"):
        about = [pair["passage"]], [pair["title"]]
        assert check(lead + pair["claim"], *about).verdict == check(pair["claim"], *about).verdict, pair["claim"]


@pytest.mark.parametrize("form", ["The source says: “{}”", "According to the manual, “{}”.", "“{}”"])
def test_a_quotation_with_an_attribution_is_supported(form: str) -> None:
    """What is quoted word for word is borne out, whoever is said to have said it; a changed word is not."""
    assert check(form.format(FIRST), [KEEPS]).verdict is Verdict.SUPPORTED
    assert check(form.format(FIRST.replace("72", "27")), [KEEPS]).verdict is Verdict.CONTRADICTED


# --- amounts, dates and versions ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("1.664 Spalten", "", 1664),
        ("32 TiB", "byte", 32 * 1024**4),
        ("$5.2bn", "USD", 5.2e9),
        ("5,2 Mrd. Euro", "EUR", 5.2e9),
        ("a fee of 300 Swiss francs, 20 per cent", "%", 20),
        ("1.5 minutes", "second", 90),
        ("two weeks", "second", 14 * 86400),
        ("a year of 5 km", "metre", 5000),
        ("20 °C", "°C", 20),
        ("100 km/h", "metre/second", 100 / 3.6),
        ("zwölf Stunden", "second", 12 * 3600),
    ],
)
def test_a_number_is_read_with_its_unit(text: str, unit: str, value: float) -> None:
    """Scales, units, currencies and locale forms come to one value in the base unit."""
    found = [quantity for quantity in find_quantities(text, "de" if "ö" in text else "en") if quantity.unit == unit]
    assert any(value == pytest.approx(reading) for quantity in found for reading in quantity.values)


@pytest.mark.parametrize(
    ("claim", "source", "match"),
    [
        ("60 seconds", "one minute", Comparison.EXACT),
        ("a year", "twelve months", Comparison.NONE),
        ("12 months", "1 year", Comparison.EXACT),
        ("about 80", "81", Comparison.APPROXIMATE),
        ("5.2 million", "5,187,000", Comparison.APPROXIMATE),
        ("more than 5 million", "5.3 million", Comparison.APPROXIMATE),
        ("more than 5 million", "4.9 million", Comparison.NONE),
        ("at least 5 MB", "at most 5 MB", Comparison.OPPOSED),
        ("5 MB", "5 GB", Comparison.NONE),
        ("20 %", "20 percentage points", Comparison.NONE),
        ("March 2024", "5 March 2024", Comparison.APPROXIMATE),
        ("March 5th, 2024", "05.03.2024", Comparison.EXACT),
        ("el 5 de marzo de 2024", "2024-03-05", Comparison.EXACT),
        ("5 March 2024", "6 March 2024", Comparison.NONE),
        ("3.11.2", "3.11.3", Comparison.NONE),
        ("paid annually", "5 crowns a year", Comparison.NONE),
        ("50 cents", "0.50 euros", Comparison.EXACT),
        ("18:00", "6 pm", Comparison.EXACT),
        ("6 millones de dólares", "6 million dollars", Comparison.EXACT),
    ],
)
def test_two_spellings_are_compared_by_what_they_say(claim: str, source: str, match: Comparison) -> None:
    """Rounding is allowed where the claim is the coarser, another unit or year never."""
    mine, other = find_quantities(claim), find_quantities(source)
    results = [compare(one, two) for one in mine for two in other] or [Comparison.NONE]
    assert results[0] is match


@pytest.mark.parametrize("abbreviation", ["e.g.", "i.e.", "z.B."])
def test_an_abbreviation_is_no_name(abbreviation: str) -> None:
    """Its points mark no identifier, so that nobody looks for it in a passage."""
    assert find_differences(f"It keeps copies, {abbreviation} of tables.", ["It keeps copies of tables."]) == []


@pytest.mark.parametrize(
    ("page", "verdict"),
    [
        ("It streams the write-ahead log (WAL). The standby follows.", "not_enough_information"),
        ("It streams WAL (write-ahead log) records. The standby follows.", "not_enough_information"),
        ("It streams WAL records. The standby follows.", "unsupported"),
        ("It streams the transaction log (WAL). The standby follows.", "unsupported"),
        ("It streams what has a write AL (WAL). The standby follows.", "not_enough_information"),
        ("It streams what has a write LA (WAL). The standby follows.", "unsupported"),
    ],
)
def test_an_acronym_that_the_page_spells_out_is_no_missing_name(page: str, verdict: str) -> None:
    """The passage need not repeat what its page explains; an acronym that is nowhere explained is missing."""
    claim, passages = "WAL shipping follows to the standby", ["The standby follows."]
    assert check(claim, passages, pages=[page]).verdict == verdict
    assert check(claim, passages).verdict == "unsupported"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Reads are 1 to 2 % slower", "It might be slower (perhaps 1% or 2% slower) for reads."),
        ("Beyond 1 GB a transaction fails", "For transactions in excess of a gigabyte a transaction fails."),
        ("A row has at most 1,000 bytes", "The maximum number of bytes of a row has a default of 1000."),
    ],
)
def test_a_unit_may_stand_apart_from_its_number(claim: str, passage: str) -> None:
    """A number of a range, "a gigabyte", and a number whose unit the sentence names before are no missing figures."""
    assert find_differences(claim, [passage]) == []


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Beyond 2 GB a transaction fails", "For transactions in excess of a gigabyte a transaction fails."),
        ("A row has at most 500 kB", "The maximum number of bytes of a row has a default of 1000."),
        ("Beyond 1 GB a transaction fails", "A transaction of 5 gigabytes fails."),
    ],
)
def test_another_number_for_the_unit_is_a_difference(claim: str, passage: str) -> None:
    """What stands apart is compared like any figure."""
    assert find_differences(claim, [passage]) != []


def test_an_acronym_in_the_plural_is_the_one_that_the_page_spells_out() -> None:
    """The "IDs" of a statement are the "ID" of a page; another acronym is still missing."""
    page = "Each row has a row number (RN). Rows may share it."
    passages = ["Rows may share it."]
    assert find_differences("Rows may share their RNs", passages, pages=[page]) == []
    assert [each.words for each in find_differences("Rows may share their XNs", passages, pages=[page])] == ["XNs"]


def test_an_article_is_no_unit() -> None:
    """French counts years in "an"; after the number of a version it begins the next words."""
    passages = ["An open transaction keeps the rows."]
    claim = "In Quagga 15 an open transaction keeps the rows"
    assert find_differences(claim, passages, ["Rows in Quagga 15"]) == []
    (quantity,) = find_quantities("It lasts 15 ans", "fr")
    assert quantity.unit


def test_a_short_name_means_all_names_that_end_with_it() -> None:
    """It is asked about only where it may be a name of its own: where at most one name of the statement ends so."""
    claim = "Those of row_min_age and page_min_age, and cost_limit beside io_cost_limit; min_age is per table."
    texts = ["row_min_age, page_min_age and io_cost_limit are settings."]
    assert [each.words for each in find_code_names(claim, texts)] == ["cost_limit"]


def test_the_beginning_of_names_is_known_with_one_of_them() -> None:
    """`max_locks_per_*` stands for several names; a beginning that no name has is asked about."""
    found = find_code_names("Raise max_locks_per_* and min_locks_per_*", ["max_locks_per_page is a setting."])
    assert [each.words for each in found] == ["min_locks_per_"]


def test_a_column_is_known_with_its_table() -> None:
    """A row of a table of columns does not repeat what the title names; another column, or another table, is unknown."""
    texts = ["54.12. pg_locks", "| `mode` `text` Name of the lock mode held | | `granted` `boolean` True if held |"]
    found = find_code_names("See pg_locks.mode, pg_locks.waitstart and pg_lock.mode", texts)
    assert [each.words for each in found] == ["pg_locks.waitstart", "pg_lock.mode"]


def test_a_small_count_in_words_is_no_rival_of_a_figure() -> None:
    """That there are two accounts does not say that account 11111 is another one; two in digits, or with a unit, does."""
    claim = "It takes from 11111 accounts"
    for passage, verdicts in (("It has two accounts", ["unsupported"]), ("It has 2 accounts", ["contradicted"])):
        assert [each.verdict.value for each in find_differences(claim, [passage])] == verdicts


def test_a_number_behind_a_hyphen_belongs_to_its_name() -> None:
    """`N-200` is one missing name, and no figure; between numbers and before a unit a hyphen joins figures."""
    assert [each.words for each in find_differences("It begins at offset N-200 of it", ["It begins there."])] == [
        "N-200"
    ]
    for claim, number in (("It takes 100-200 steps", "100"), ("It takes a pre-set 300 MB", "300 MB")):
        assert number in str(find_differences(claim, ["It takes some."])[0].reason)


def test_a_passage_need_not_name_what_its_page_is_about() -> None:
    """The name of the product stands all over its manual; one that the page names once is missing in the passage."""
    page = "Zebra keeps it. " * 30 + "Another store, Quagga, does not."
    passages = ["Large transactions are kept."]
    assert find_differences("In version Zebra large transactions are kept", passages, pages=[page]) == []
    (missing,) = find_differences("In version Quagga large transactions are kept", passages, pages=[page])
    assert missing.words == "Quagga"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It misses some signs, such as 0x1ED9.", "It misses some signs, such as 0x1ED9 of Vietnamese."),
        ("Both forms of query1 search, as in 'fat' <10> 'cat'.", "Both forms of query1 search, as in fat and cat."),
        ("It has 4 forms: full, column, none and fast.", "The forms are full, column, none and fast."),
        ("It has 4 forms: full, column, none, and fast.", "The forms are full, column, none and fast."),
        ("It has 4 forms: full, column, none, fast; beside, a default.", "Forms: full, column, none, fast. A default."),
        ("To mend it: (1) stop the store; (2) wait.", "First stop the store. Then wait."),
    ],
)
def test_a_number_that_states_nothing_by_itself_is_no_figure(claim: str, passage: str) -> None:
    """Digits of a name, a placeholder, a number of items or of steps that the statement gives itself."""
    assert find_differences(claim, [passage]) == []


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("It has 7 forms: full, column, none and fast.", "7"),
        ("A prefix of at most 10 is kept.", "10"),
        ("It runs 10x faster.", "10"),
        ("It starts from 1000 and adds 4: the base.", "1000"),
        ("The forms (2) are there.", "2"),
    ],
)
def test_a_number_that_a_statement_asserts_is_a_figure(claim: str, words: str) -> None:
    """Another count than that of its list, a bound, a factor, a default; the passages have no number."""
    assert words in [found.words for found in find_differences(claim, ["It has forms and starts from the base."])]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Set work_mem, gc.pruneExpire and std::vector.", ["work_mem", "gc.pruneExpire", "std::vector"]),
        ("Use --force-with-lease=<name> or -m 1.", ["--force-with-lease", "-m"]),
        ("A read-only page, and/or a well-known one, e.g. at 10:30.", []),
    ],
)
def test_signs_tell_names_in_code(text: str, names: list[str]) -> None:
    """Words joined by hyphens or slashes are mostly ordinary ones."""
    assert code_names(text) == names


def test_exact_tokens_are_names_operators_and_numbers() -> None:
    """Lines of a table and marks of punctuation are none."""
    found = exact_tokens("`->>` differs from @?, with Work_Mem at 1,024 or 3.5 -- see | --- | (twice)")
    assert found == {"->>", "@?", "work_mem", "1,024", "3.5"}


@pytest.mark.parametrize(
    ("claim", "asked"),
    [
        ("1. Stop the server. 2. Restore the files. 3. Start it.", []),
        ("Two steps: 1. stop the server; 2. restore the files.", []),
        ("The order is 1) stop the server, 2) restore the files.", []),
        ("Restore the files of version 9.", ["9"]),
        ("Stop the server (at level 1) and restore the files.", ["1"]),
        ("Restore the files after 7. stop the server before 9. start it.", ["7", "9"]),
    ],
)
def test_numbers_that_count_the_parts_of_a_sentence_are_no_figures(claim: str, asked: list[str]) -> None:
    """They run from one, each with the sign of a list behind it."""
    passages = ["Stop the server, restore the files, then start it in this order of steps."]
    assert [each.words for each in find_differences(claim, passages)] == asked
