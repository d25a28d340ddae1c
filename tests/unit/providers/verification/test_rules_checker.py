"""Claims against passages, by rules."""

import pytest

from contracts.evidence import Verdict
from providers.verification.alignment import difference
from providers.verification.rules_checker import check, find_objection
from providers.verification.statement import Statement

FLAGGED = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIAL)

COLUMNS = "PostgreSQL supports up to 1,664 columns per table, depending on the column types."
VACUUM = "Autovacuum is not disabled by default. It wakes up every minute and may start up to three workers."
DAM = (
    "The Hallern Dam was completed in 1962 at a cost of $48 million. It is 94 metres high, whereas the Merle Dam, "
    "finished in 1971, is 112 metres high."
)
TRIAL = "In the trial, the drug lowered blood pressure in most patients; some patients reported headaches."
MERGER = "Norvik acquired Halden Foods in March 2019. The purchase may reduce prices for customers."
WAL = "Replicas receive changes from the primary. A write is confirmed before it is copied to the replica."
DE = "Der Turm ist 112 Meter hoch und wurde 1971 eröffnet. Er darf nicht bestiegen werden."
FR = "Le pont mesure 2,5 kilomètres et a été ouvert en 1998. Les camions n'y sont jamais autorisés."

SUPPORTED = [
    (COLUMNS, "A PostgreSQL table has at most 1664 columns."),
    (VACUUM, "Autovacuum is enabled by default."),
    (VACUUM, "By default, autovacuum wakes up once a minute."),
    (VACUUM, "Autovacuum may start up to 3 workers."),
    (DAM, "The Merle Dam is 112 m high."),
    (DAM, "The Hallern Dam cost 48 million dollars and was completed in 1962."),
    (DAM, "The Hallern Dam is about 95 metres high."),
    (TRIAL, "Most patients had lower blood pressure with the drug."),
    (TRIAL, "Headaches were reported by some patients."),
    (MERGER, "Halden Foods was acquired by Norvik in 2019."),
    (MERGER, "The purchase might reduce customers' prices."),
    (WAL, "A write is confirmed before being copied to the replica."),
    (DE, "Der Turm ist 112 m hoch."),
    (FR, "Le pont a été ouvert en 1998 et mesure 2500 mètres."),
]
ALTERED = [
    (COLUMNS, "A PostgreSQL table has at most 1600 columns."),
    (COLUMNS, "PostgreSQL supports at least 1,664 columns per table."),
    (COLUMNS, "MySQL tables support up to 1,664 columns."),
    (VACUUM, "Autovacuum is disabled by default."),
    (VACUUM, "Autovacuum wakes up every hour."),
    (VACUUM, "Autovacuum must start three workers."),
    (DAM, "The Hallern Dam is 112 metres high."),
    (DAM, "The Hallern Dam was completed in 1971."),
    (DAM, "The Hallern Dam cost $48 billion."),
    (DAM, "The Hallern Dam cost €48 million."),
    (DAM, "The Hallern Dam was never completed."),
    (TRIAL, "In the trial, the drug lowered blood pressure in all patients."),
    (TRIAL, "In the trial, the drug raised blood pressure in most patients."),
    (TRIAL, "Most patients reported headaches in the trial."),
    (MERGER, "Halden Foods acquired Norvik in March 2019."),
    (MERGER, "The purchase reduces prices for customers."),
    (MERGER, "Norvik acquired Halden Foods in March 2018."),
    (MERGER, "Norvik acquired Orla Foods in March 2019."),
    (WAL, "A write is confirmed after it is copied to the replica."),
    (WAL, "The primary receives changes from replicas."),
    (DE, "Der Turm ist 121 Meter hoch."),
    (DE, "Der Turm darf bestiegen werden."),
    (FR, "Le pont mesure 25 kilomètres."),
    (FR, "Les camions y sont autorisés."),
    (COLUMNS, "The recipe needs butter, flour and a warm oven."),
]


def language_of(passage: str) -> str:
    """The language of a sample."""
    return {DE: "de", FR: "fr"}.get(passage, "en")


@pytest.mark.parametrize(("passage", "claim"), SUPPORTED)
def test_what_says_the_same_is_not_flagged(passage: str, claim: str) -> None:
    """A paraphrase is supported, or not decided; it is never called unsupported or contradicted."""
    judgement = check(claim, [passage], language=language_of(passage))
    assert judgement.verdict not in FLAGGED, judgement.reason


@pytest.mark.parametrize(("passage", "claim"), ALTERED)
def test_what_says_something_else_is_not_supported(passage: str, claim: str) -> None:
    """Another number, unit, name, sign, quantifier, certainty or order is never supported."""
    judgement = check(claim, [passage], language=language_of(passage))
    assert judgement.verdict is not Verdict.SUPPORTED


def test_a_name_may_stand_in_the_title_alone() -> None:
    """A manual seldom repeats what it is about: the title counts for names, not for what is said of them."""
    passage = "The server accepts up to 100 connections."
    assert (
        check("PostgreSQL accepts up to 100 connections.", [passage], ["PostgreSQL manual"]).verdict
        is Verdict.SUPPORTED
    )
    assert check("Oracle12c accepts up to 100 connections.", [passage], ["PostgreSQL manual"]).verdict in FLAGGED


def test_a_reason_names_what_differs() -> None:
    """A reader sees both sides of a difference."""
    judgement = check("The Hallern Dam is 95.5 metres high.", [DAM])
    assert "95.5 metres" in judgement.reason
    assert "metres" in judgement.reason.replace("95.5 metres", "")


def test_words_without_content_are_not_judged() -> None:
    """`Both.` says nothing that could be compared."""
    assert check("Both.", [DAM]).verdict is Verdict.NOT_ENOUGH_INFORMATION


QUEUE = "The broker keeps a message for 72 hours. Consumers must acknowledge it within 60 seconds. Kelt beat Orla 2-1."
POLICY = "Shops and museums are eligible; private firms are not. The permit costs 120 crowns a year."
COPIES = [
    (POLICY, "Private firms are eligible.", Verdict.NOT_ENOUGH_INFORMATION),
    (POLICY, "The permit costs 120 crowns a month.", Verdict.CONTRADICTED),
    (POLICY, "The permit costs 120 crowns annually.", Verdict.SUPPORTED),
    (POLICY, "Nothing but 120 crowns is charged per year for the paper.", Verdict.NOT_ENOUGH_INFORMATION),
    (QUEUE, "Consumers may acknowledge it within 60 seconds.", Verdict.PARTIAL),
    (QUEUE, "Consumers must not acknowledge it within 60 seconds.", Verdict.CONTRADICTED),
    (POLICY, "The permit costs not 120 crowns a year.", Verdict.CONTRADICTED),
    (QUEUE, "Orla beat Kelt 2-1.", Verdict.NOT_ENOUGH_INFORMATION),
    (QUEUE, "The broker deletes a message for 72 hours.", Verdict.NOT_ENOUGH_INFORMATION),
    (QUEUE, "The broker keeps a message for 3 days.", Verdict.SUPPORTED),
    (QUEUE, "The broker keeps a message for no more than 72 hours.", Verdict.SUPPORTED),
]


@pytest.mark.parametrize(("passage", "claim", "verdict"), COPIES)
def test_a_copy_with_one_change_is_judged_by_the_change(passage: str, claim: str, verdict: Verdict) -> None:
    """Laid over its sentence, a claim shows what was put in the place of what; a mere paraphrase stays open."""
    judgement = check(claim, [passage])
    assert judgement.verdict is verdict, judgement.reason


def test_what_a_paraphrase_seems_to_deny_is_left_open() -> None:
    """Structure is compared in near copies only: in other words a denial may well be the same statement."""
    passage = "Nobody may enter the pit while blasting takes place between 10:00 and 11:30."
    judgement = check("It is forbidden to go into the pit from 10 am to 11:30.", [passage])
    assert judgement.verdict is Verdict.NOT_ENOUGH_INFORMATION, judgement.reason


def test_a_hostile_sentence_is_compared_in_bounded_time() -> None:
    """Only the beginning of two long sentences is laid over each other."""
    long = " ".join(f"word{number % 7}" for number in range(20_000))
    assert difference(Statement(long), Statement(long[::-1])).share <= 1.0


def test_a_sentence_of_numbers_alone_is_left_open() -> None:
    """Each number is compared with each of the passages: a list of hundreds would take the square of its length."""
    numbers = "5 km " * 400
    assert check(numbers, [numbers]).verdict is Verdict.NOT_ENOUGH_INFORMATION


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("The guard does nothing except ring a bell when the gate opens.", "The guard only rings a bell when the gate opens."),
        ("If a key cannot be found, the door stays shut.", "If no key can be found, the door stays shut."),
        ("The wall is not impassable for climbers, as a ladder helps.", "The wall can be passed by climbers, as a ladder helps."),
        ("Boats of less than ten metres tend to get larger sails in winter.", "Boats smaller than ten metres tend to grow sails in winter."),
        ("Of the 60 kilograms in the hold, 41 kilograms (20+21) were grain.", "Of the 60 kilograms in the hold 41 were grain."),
        ("It breaks the Brenn treaty, which makes no room for ships to be armed.", "It breaks the Brenn treaty, which makes no room to ships that are armed."),
        ("There are two keepers: Ana Ruiz (day and night) and Otto Vane (night only).", "There are two keepers: Ana Ruiz by day and night, Otto Vane at night only."),
    ],
)  # fmt: skip
def test_other_words_for_the_same_are_no_error(passage: str, claim: str) -> None:
    """Only in other words, a denial in another place or denied, an opposite of something else, a unit said once."""
    assert check(claim, [passage]).verdict not in FLAGGED


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("The meter can only tell that a fuse is blown.", "The meter can not only tell that a fuse is blown."),
        ("The meter not only counts litres but warns of leaks.", "The meter only counts litres but warns of leaks."),
        ("The wall is not impassable for climbers.", "The wall is impassable for climbers."),
        ("Of the 60 kilograms in the hold, 41 kilograms were grain.", "Of the 60 kilograms in the hold 47 were grain."),
    ],
)
def test_small_words_that_turn_a_sentence_round_are_found(passage: str, claim: str) -> None:
    """`not only` for `only`, a denial of a denial that lost one, another number without its unit."""
    assert check(claim, [passage]).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("passage", "claim", "objected"),
    [
        ("Ilse Marholt won the Lindqvist prize in 1929.", "Otto Vane won the Lindqvist prize in 1929.", True),
        ("Cancellation costs half of the fee 14 days before.", "Whoever withdraws two days earlier pays half.", True),
        ("Visitors may use the pit.", "Visitors can not use the pit.", True),
        ("The ridge is the second highest of all.", "The ridge is the third highest of all.", True),
        ("The store keeps 128 MB of pages in memory.", "The store holds 128 MB of pages in memory.", False),
        ("Around 90 seconds pass until it blinks.", "It takes a minute and a half to blink.", False),
    ],
)
def test_objections_to_support_are_stricter_than_verdicts(passage: str, claim: str, objected: bool) -> None:
    """Another name, amount, rank or a denial withholds support; another word for the same does not."""
    assert bool(find_objection(claim, [passage])) is objected
