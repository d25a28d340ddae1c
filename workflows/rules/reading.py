"""Distribution of pages among the analyses of an iteration: each page in one call, best first. Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from contracts.call_sizes import MAX_SOURCES

T = TypeVar("T")

CHARACTERS_PER_TOKEN: Final = 3.5  # of a stored page, with the signs that begin its lines in a prompt
WHOLE_TOKENS: Final = 12_000  # a page up to this size is shown whole (`providers.tokens.showing`)
LONG_PAGE_TOKENS: Final = 6_000  # of a longer page: its best sections
AGAIN_TOKENS: Final = 2_000  # of a page that an earlier analysis has read
LEAST_TOKENS: Final = 1_200  # of a page beyond the limit of the iteration: its best section


@dataclass(frozen=True)
class PageToRead:
    """A page with its place among the hits: its sub-query's number in the plan, and its rank there, from 1."""

    id: str
    characters: int
    query: int
    rank: int
    found_by: int = 1
    """Number of sub-queries that found it."""
    again: bool = False
    protected: bool = False

    @property
    def tokens(self) -> int:
        """Return the tokens that it takes of a call; those of a long page if its size is unknown."""
        size = math.ceil(self.characters / CHARACTERS_PER_TOKEN) or LONG_PAGE_TOKENS
        if self.again:
            return min(size, AGAIN_TOKENS)
        if size <= WHOLE_TOKENS or self.protected:
            return size
        return LONG_PAGE_TOKENS


@dataclass(frozen=True)
class PageBatch:
    """The pages of one analysis, and the tokens of text that it may be shown."""

    ids: list[str]
    tokens: int


def distribute_pages(pages: Sequence[PageToRead], analysis_tokens: int, reading_tokens: int) -> list[PageBatch]:
    """Distribute pages among calls of at most `analysis_tokens`, with at most `reading_tokens` for all of them.

    The best pages get their room first: those that several sub-queries found, then by rank. Each other page keeps room
    for its best section. Pages of one sub-query stay together, and calls are about equally long, since the last one to
    end is waited for. What no page needs is divided among the calls that are not full.
    """
    best_first = sorted(pages, key=lambda page: (not page.protected, page.again, -page.found_by, page.rank, page.id))
    room = reading_tokens
    needs = dict[str, int]()
    for page in best_first:
        needs[page.id] = min(page.tokens, analysis_tokens, max(room, LEAST_TOKENS))
        room -= needs[page.id]
    if not pages:
        return []
    total = sum(needs.values())
    share = total / math.ceil(total / analysis_tokens)
    batches = list[PageBatch]()
    ids = list[str]()
    used = 0
    for page in sorted(pages, key=lambda page: (page.query, page.rank, page.id)):
        need = needs[page.id]
        # A page goes where more than half of it lies within the share.
        is_full = ids and (used + need / 2 > share or used + need > analysis_tokens or len(ids) >= MAX_SOURCES)
        if is_full:
            batches.append(PageBatch(ids, used))
            ids = []
            used = 0
        ids.append(page.id)
        used += need
    batches.append(PageBatch(ids, used))
    vacant = [max(0, analysis_tokens - batch.tokens) for batch in batches]
    part = min(1.0, max(0, reading_tokens - total) / max(1, sum(vacant)))
    return [replace(one, tokens=one.tokens + int(part * room)) for one, room in zip(batches, vacant, strict=True)]


def group_by_size(items: Sequence[T], size_of: Callable[[T], int], room: int) -> list[list[T]]:
    """Return the items in groups of neighbours, each with at most `room` in all; a larger item is its own group."""
    groups = list[list[T]]()
    left = 0
    for item in items:
        size = size_of(item)
        if not groups or size > left:
            groups.append([])
            left = room
        groups[-1].append(item)
        left -= size
    return groups
