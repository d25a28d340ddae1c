"""Room of a window, allotment of it to items, and texts at their levels."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from contracts.tokens import RATIOS, Band, FidelityTotals, Level, TokenSettings
from providers.tokens.allotment import (
    MAX_OUTPUT_SHARE,
    ContentItem,
    ContextBudgetExceeded,
    Rank,
    allot,
    available_tokens,
    call_fidelity,
    estimated_tokens,
    fidelity_of,
    priority,
)
from providers.tokens.shortening import shortened

PARTS = st.tuples(
    st.sampled_from(Rank),
    st.floats(0, 1),
    st.integers(0, 3_000),
    st.sampled_from([Level.COMPRESSED, Level.HEADLINE, Level.TRUNCATED, Level.DROPPED]),
)
CONTENTS = st.lists(PARTS, max_size=12)


def items_of(parts: Sequence[tuple[Rank, float, int, Level]]) -> list[ContentItem]:
    """Items of so many letters, of which a level shows its share; their ids are their numbers."""
    texts = [lambda level, size=size: "x" * int(size * RATIOS[level]) for _, _, size, _ in parts]
    return [
        ContentItem(f"i-{number:02}", "source", texts[number], rank, value, last)
        for number, (rank, value, _, last) in enumerate(parts)
    ]


def steps(items: Sequence[ContentItem], levels: dict[str, Level]) -> dict[str, int]:
    """The place of each item's level in its ladder."""
    return {item.id: item.ladder.index(levels.get(item.id, Level.FULL)) for item in items}


@given(CONTENTS, st.integers(-100, 6_000), st.randoms(use_true_random=False))
def test_an_allotment_keeps_room_floors_and_classes(
    parts: list[tuple[Rank, float, int, Level]], room: int, random: Random
) -> None:
    """No floor is passed, no class before those behind it, in any order (S0-150, S0-157 to S0-159, invariant 16)."""
    items = items_of(parts)
    least = sum(item.size(item.ladder[-1]) for item in items)
    if least > room:
        with pytest.raises(ContextBudgetExceeded) as caught:
            allot(items, room)
        assert caught.value.needed == pytest.approx(least)
        return
    levels = allot(items, room)
    shown = steps(items, levels)
    assert sum(item.size(levels.get(item.id, Level.FULL)) for item in items) <= room + 1e-6
    for one in items:
        assert RATIOS[levels.get(one.id, Level.FULL)] >= RATIOS[one.last]
        if shown[one.id]:
            assert all(shown[other.id] == len(other.ladder) - 1 for other in items if other.rank < one.rank)
    random.shuffle(items)
    assert allot(items, room) == levels


@given(CONTENTS, PARTS, st.integers(0, 6_000))
def test_one_item_more_lifts_no_other(
    parts: list[tuple[Rank, float, int, Level]], more: tuple[Rank, float, int, Level], room: int
) -> None:
    """Fewer items never lower what is shown of the others (S0-151, S0-181)."""
    *items, _ = larger = items_of([*parts, more])
    assume(sum(item.size(item.ladder[-1]) for item in larger) <= room)
    before, after = steps(items, allot(items, room)), steps(larger, allot(larger, room))
    assert all(after[name] >= step for name, step in before.items())


@given(st.integers(2_000, 300_000), st.integers(0, 40_000), st.integers(0, 100_000), st.integers(0, 5_000))
def test_room_is_monotone(window: int, output: int, overhead: int, less: int) -> None:
    """A smaller overhead, a smaller margin or a larger window never gives less room
    (S0-138, S0-149, S0-180, C0-15, C0-18).
    """

    def room(window: int, overhead: int, margin: float) -> int:
        settings = TokenSettings(runtime_overhead=overhead, token_safety_margin=margin)
        return available_tokens(window, output, None, settings, MAX_OUTPUT_SHARE)[0]

    known = room(window, overhead, 0.5)
    assert known >= 0
    assert room(window + less, overhead, 0.5) >= known
    assert room(window, max(0, overhead - less), 0.5) >= known
    assert room(window, overhead, 0.5 - less / 10_000) >= known


@pytest.mark.parametrize(
    ("window", "overhead", "margin", "expected"),
    [
        (200_000, 60_000, 0.15, (200_000 - 50_000 - 10_000) * 0.85),
        (200_000, 10_000, 0.15, (200_000 - 10_000 - 10_000) * 0.85),
        (32_000, 10_000, 0.0, 32_000 - 8_000 - 10_000),
        (32_000, 0, 0.99, 220),
    ],
)
def test_room_is_what_overhead_output_and_margin_leave(
    window: int, overhead: int, margin: float, expected: float
) -> None:
    """The overhead takes at most a quarter of a window, the margin is of what is left (S0-139, S0-149)."""
    settings = TokenSettings(runtime_overhead=overhead, token_safety_margin=margin)
    assert available_tokens(window, 10_000, None, settings, MAX_OUTPUT_SHARE) == (int(expected), 10_000)


@pytest.mark.parametrize(
    ("fidelity", "band"),
    [(1, "full"), (0.9, "full"), (0.895, "condensed"), (0.6, "condensed"), (0.595, "compressed"), (0.3, "compressed"),
     (0.295, "minimal"), (0, "minimal")],
)  # fmt: skip
def test_bands_have_no_hole(fidelity: float, band: str) -> None:
    """Each bound belongs to the better band (S0-155)."""
    assert Band.of(fidelity).value == band


def test_fidelity_is_shown_over_considered() -> None:
    """Dropped items count as nothing shown; the lowest call is remembered (C0-12, S0-153, S0-154)."""
    items = items_of([(Rank.REGULAR, 0.1, 1_000, Level.DROPPED), (Rank.PRIORITY, 0.9, 1_000, Level.COMPRESSED)])
    levels = {"i-00": Level.DROPPED, "i-01": Level.COMPRESSED}
    shown = fidelity_of(items, levels, factor=2.0)
    assert [item.original_tokens for item in shown] == [540, 540]
    assert [item.compression_ratio for item in shown] == [0, 0.4]
    call = call_fidelity(shown, available=400, used=300)
    assert (call.considered, call.shown, call.shortened, call.dropped) == (1_080, 216, 2, ["i-00"])
    whole = call_fidelity(fidelity_of(items, {}, factor=2.0), available=4_000, used=2_000)
    total = FidelityTotals().plus(call).plus(whole)
    assert total.fidelity == pytest.approx((216 + 1_080) / 2_160)
    assert total.lowest == pytest.approx(0.2)


def test_priorities_weigh_four_parts() -> None:
    """What is unknown is in the middle (S0-160)."""
    alone = [priority(*(float(part == place) for part in range(4))) for place in range(4)]
    assert [priority(), *alone] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1])


# --- texts at levels --------------------------------------------------------------------------------------------------
FILLER = "Gardens need water in the early morning hours. "
TEXT = (
    f"{FILLER * 12}\n\nVacuum prevents wraparound of transaction ids.\n\n{FILLER * 12}\nAutovacuum starts a vacuum.\n"
)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "a" * 60_000,
        "1234567890" * 800,
        "真空操作可以防止事务标识回卷。" * 200,
        "🙂" * 3_000,
        "",
        " \n\n",
        "one word",
    ],
    ids=["prose", "no blank", "digits", "chinese", "emoji", "nothing", "blanks", "short"],
)
def test_levels_are_made_of_the_words_of_the_text(text: str) -> None:
    """Each level has at least its share, no more than the level above, and every line is in the text (S0-151, S0-152)."""
    sizes = []
    for level in Level:
        shown = shortened(text, level, "How does vacuum prevent wraparound?")
        lines = [line.removesuffix(" […]").strip() for line in shown.splitlines()]
        assert all(line in text for line in lines if line not in ("", "[…]"))
        words = "".join(shown.replace("[…]", "").split())
        sizes.append(len(words))
        assert len(words) >= RATIOS[level] * 0.8 * len("".join(text.split())) or level is Level.TRUNCATED
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_the_sentences_about_the_question_stay() -> None:
    """A headline is the sentence with the rare words of the question; estimates add up."""
    headline = shortened(TEXT, Level.HEADLINE, "wraparound of transaction ids")
    assert headline.endswith("Vacuum prevents wraparound of transaction ids.")
    assert "[…]" in shortened(TEXT, Level.COMPRESSED, "wraparound")
    assert estimated_tokens(TEXT + "漢") == pytest.approx(estimated_tokens(TEXT) + estimated_tokens("漢"))
