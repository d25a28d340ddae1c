"""How content is shared out when not all of it has room."""

import pytest

from activities.roles.excerpts import (
    LEAST_CHARACTERS,
    LEFT_OUT,
    allot,
    excerpt,
    findings_shown,
    part_of,
    shown_parts,
)


def test_with_room_for_all_every_text_has_its_most() -> None:
    """Nothing changes for a prompt that fits (S0-060)."""
    assert allot([50, 5_000, 900], 1_000, 1.0) == [1_000, 1_000, 1_000]


@pytest.mark.parametrize("share", [0.9, 0.6, 0.3])
def test_what_short_texts_do_not_need_longer_ones_get(share: float) -> None:
    """All texts are filled to one level, and together they use no more than their share."""
    lengths = [100, 5_000, 900, 300, 3_000]
    given = allot(lengths, 1_000, share)
    used = sum(min(length, budget) for length, budget in zip(lengths, given, strict=True))
    whole = sum(min(length, 1_000) for length in lengths)
    assert len(set(given)) == 1
    assert 0.97 * share * whole - 10 <= used <= share * whole


@pytest.mark.parametrize("share", [0.15, 0.05, 0.0])
def test_the_last_texts_are_left_out_before_all_become_useless(share: float) -> None:
    """No text is shown with less than makes sense; the first one is always shown."""
    given = allot([5_000] * 20, 1_000, share)
    assert 1 <= len(given) < 20
    assert all(budget >= LEAST_CHARACTERS for budget in given)
    assert sum(given) <= max(LEAST_CHARACTERS, share * 20_000)
    assert allot([], 1_000, share) == []


def test_parts_of_limits() -> None:
    """A limit shrinks with the share, down to nothing or to what is said to be the least."""
    assert part_of(400, 1.0) == 400
    assert part_of(400, 0.6) == 240
    assert part_of(400, 0.4) == 0
    assert part_of(400, 0.4, 80) == 80
    assert part_of(50, 0.0, 80) == 50


def test_findings_are_left_out_last() -> None:
    """Down to a third of the content every finding is shown, and never fewer than five (S0-072)."""
    assert findings_shown(60, 0.3) == 60
    assert findings_shown(60, 0.15) == 30
    assert findings_shown(60, 0.0) == 5
    assert findings_shown(3, 0.0) == 3


def test_an_excerpt_can_be_shortened_again() -> None:
    """The parts of an excerpt compete as blocks do, and what was left out before stays marked as left out."""
    best, other = ("Vacuum and wraparound are told here. " * 4).strip(), ("Vacuum is told in this place. " * 4).strip()
    useless = ("Nothing of use stands here. " * 4).strip()
    once = f"{other}{LEFT_OUT}{best}{LEFT_OUT}{useless}"
    assert [once[part.start : part.end] for part in shown_parts(once)] == [other, best, useless]
    assert excerpt(once, shown_parts(once), "vacuum wraparound", 160) == best
    assert excerpt(once, shown_parts(once), "vacuum wraparound", 290) == f"{other}{LEFT_OUT}{best}"
