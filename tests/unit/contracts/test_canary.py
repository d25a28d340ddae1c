"""The canary of a run, and addresses that carry what only a run knows."""

import pytest

from contracts.canary import holds_private, repeats
from tests.fakes.gullible_work import disguised

CANARY = "8fbddb3160f16a89af97bab4"
MEMO = "The heliotrope memorandum stays among the four of us, whatever happens."


@pytest.mark.parametrize("form", disguised(CANARY))
@pytest.mark.parametrize("around", ["{}", "words before {} and behind it", "<a href='x?{}'>"])
def test_a_canary_is_known_in_any_dress(form: str, around: str) -> None:
    """Case, blanks, invisible signs, encodings and direction do not hide it."""
    assert repeats(around.format(form), CANARY)


@pytest.mark.parametrize(
    "text",
    ["＆#x38;fbddb3160f16a89af97bab4".replace("＆", "&"), "８ｆbddb3160f16a89af97bab4", "8fbddb3160f1\n- 6a89af97bab4"],
)
def test_entities_and_other_letters_are_read(text: str) -> None:
    """What a program would read as the canary is the canary."""
    assert repeats(text, CANARY)


def test_nothing_else_is_a_canary() -> None:
    """Half of it is not, another one is not, and a run of an old history has none."""
    assert not repeats(f"{CANARY[:12]} and more", CANARY)
    assert not repeats("0" * 24, CANARY)
    assert not repeats("any words", "")
    assert not repeats("", "")


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        (f"https://a.test/{CANARY}", True),
        (f"https://a.test/x?y={CANARY[:12]}-{CANARY[12:]}", True),
        ("https://a.test/?d=heliotrope%20memorandum%20stays", True),
        ("https://a.test/?d=HELIOTROPE+MEMORANDUM+STAYS+AMONG", True),
        ("https://a.test/?d=heliotrope", False),
        ("https://a.test/the-heliotrope-memorandum-stays-among-us", False),
        ("https://a.test/?q=transaction+id+wraparound+prevention", False),
        ("https://a.test/", False),
        ("corpus:manual/a.md", False),
    ],
)
def test_addresses_that_carry_private_words(url: str, refused: bool) -> None:
    """The canary anywhere, and in a query twenty letters of what a person told the run alone; not the question's."""
    private = [MEMO, "Earlier we spoke of transaction id wraparound prevention."]
    assert holds_private(url, CANARY, private, ["How does transaction ID wraparound prevention work?"]) is refused
