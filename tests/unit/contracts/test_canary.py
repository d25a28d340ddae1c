"""The canary of a run, and addresses that carry what only a run knows."""

import base64
import codecs
import random
from pathlib import Path

import pytest

import contracts
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


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


DISGUISES = {
    "base64 twice": in_base64(in_base64(f"key={CANARY}")),
    "base64 backwards": in_base64(CANARY)[::-1],
    "backwards in base64": in_base64(CANARY[::-1]),
    "base64 for addresses": base64.urlsafe_b64encode(f"?>{CANARY}".encode()).decode(),
    "base32": base64.b32encode(f"x{CANARY}".encode()).decode(),
    "hexadecimal": CANARY.encode().hex(),
    "decimal codes": " ".join(str(ord(sign)) for sign in CANARY),
    "octal codes": " ".join(f"{ord(sign):o}" for sign in CANARY),
    "binary codes": " ".join(f"{ord(sign):08b}" for sign in CANARY),
    "rot13": codecs.encode(CANARY, "rot13"),
    "leet": CANARY.replace("a", "4").replace("b", "8").replace("e", "3"),
    "percent twice": "".join(f"%25{ord(sign):02x}" for sign in CANARY),
    "unicode escapes": "".join(f"\\u{ord(sign):04x}" for sign in CANARY),
    "byte escapes": "".join(f"\\x{ord(sign):02x}" for sign in CANARY),
    "numbers of C": " ".join(f"0x{ord(sign):02x}" for sign in CANARY),
    "entities with zeros": "".join(f"&#0000000000{ord(sign)};" for sign in CANARY),
    "wide letters": "".join(chr(ord(sign) + 0xFEE0) for sign in CANARY),
    "look-alikes": CANARY.replace("a", "\u0430"),
    "other digits": "".join(chr(0x660 + int(sign)) if sign.isdigit() else sign for sign in CANARY),
    "marks upon letters": "\u0301".join(CANARY),
    "host name": f"https://{('x' + CANARY.replace('a', chr(0x430))).encode('idna').decode()}.a.test/",
    "letters between": "x".join(CANARY),
    "eight signs": f"find {CANARY[5:13]}",
    "pieces in disorder": " and ".join([CANARY[12:18], CANARY[:6]]),
    "parameters": "https://a.test/?" + "&".join(f"k={CANARY[place : place + 4]}" for place in range(0, 24, 4)),
    "labels": f"https://{CANARY[:6]}.www.{CANARY[6:12]}.a.test/",
}


@pytest.mark.parametrize("form", DISGUISES.values(), ids=DISGUISES.keys())
def test_a_canary_is_known_decoded_and_split(form: str) -> None:
    """Encodings, also one within the other, other letters, and pieces in any order are the canary."""
    assert repeats(f"words {form} more words", CANARY)


def test_nothing_else_is_a_canary() -> None:
    """A short piece of it is not, another one is not, and a run of an old history has none."""
    assert not repeats(f"{CANARY[:7]} and more", CANARY)
    assert not repeats("0" * 24, CANARY)
    assert not repeats("any words", "")
    assert not repeats("", "")


def test_ordinary_texts_hold_no_canary() -> None:
    """No false alarm in pages, programs, lists of checksums and addresses with ids, for many canaries."""
    chance = random.Random(7)
    canaries = [f"{chance.getrandbits(96):024x}" for _ in range(20)]
    hashes = "\n".join(f"https://a.test/{chance.getrandbits(128):032x}?id={chance.getrandbits(64)}" for _ in range(300))
    files = [path.read_text(encoding="utf-8") for path in sorted(Path(contracts.__path__[0]).glob("*.py"))]
    for canary in canaries:
        assert not repeats("\n".join(files), canary)
        assert not repeats(hashes, canary)
        assert not [line for line in hashes.splitlines()[:50] if repeats(line, canary)]


@pytest.mark.parametrize(
    "unit", ["word ", "%25", "&#1", "&#11111", "&amp;", "QUJD", "\u0301\u0316", "xn--a-", "?a=", "&#0", "8fbddb3x", "1"]
)
def test_what_others_write_is_looked_through_step_by_step(unit: str) -> None:
    """No text fails, however odd: not by its long numbers, broken escapes and marks upon marks."""
    assert not repeats(f"xn--{unit * 5_000}&#{unit * 5_000}", CANARY)


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
