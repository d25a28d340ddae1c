"""Stems and texts come out of their packs as they went in."""

from itertools import pairwise

from providers.search.corpus.packing import (
    PACK_CHARACTERS,
    PIECE_CHARACTERS,
    PassageStems,
    pack,
    pack_lines,
    pack_text,
    stems_of,
    unpack_lines,
    unpack_text,
)


def test_passages_come_out_of_their_packs_in_order():
    """Packs follow one another without a gap, and hold every field, empty ones and other scripts too."""
    many = [PassageStems(f"größe {number} 検索 log-file", "", "o'clock") for number in range(2_000)]
    tables = {
        "none": [],
        "one, of nothing": [PassageStems("", "", "")],
        "some without words": [PassageStems("a b", "", ""), PassageStems("", "", ""), PassageStems("c", "d", "e")],
        "one longer than a pack": [PassageStems("w " * PACK_CHARACTERS, "h", "t"), PassageStems("x", "h", "t")],
        "many": many,
    }
    for name, passages in tables.items():
        packs = [(first, list(map(stems_of, unpack_lines(packed)))) for first, packed in pack(passages)]
        assert [passage for _, inside in packs for passage in inside] == passages, name
        assert all(after == first + len(inside) for (first, inside), (after, _) in pairwise(packs)), name
    assert len(list(pack(many))) > 10


def test_pieces_of_a_text_are_its_characters():
    """Any text is the sum of its pieces, and each but the last has the same number of characters."""
    for text in ("", "a", "ä" * PIECE_CHARACTERS, "日本\n" * PIECE_CHARACTERS, "😀x" * 20_001):
        pieces = pack_text(text)
        assert unpack_text(pieces) == text
        for number, piece in enumerate(pieces):
            assert unpack_text([piece]) == text[number * PIECE_CHARACTERS :][:PIECE_CHARACTERS]


def test_no_lines_are_one_empty_line():
    """What has no stems of its own is still read."""
    assert unpack_lines(pack_lines([])) == [""]
