"""What pure parts of activities make of many values side by side, against recorded tables, one for each group.

`python -m tests.unit.activities.test_recorded_values` records. Read the difference before you record.
"""

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from activities.earlier_run import offer, sources_to_offer
from activities.preparation import resolve, resolve_again
from activities.reporting.claim_finder import without_uncited
from activities.reporting.links import Registry
from activities.reporting.markdown_layout import MASK, layout
from activities.reporting.quotations import Page, unquoted_where_other
from activities.reporting.readable_passage import passage_parts
from activities.roles.evidence_markers import MARKER
from activities.roles.excerpts import allot, findings_shown, part_of
from activities.roles.report_shape import shape_of
from activities.roles.turn_taking import shorten_answers
from activities.roles.untrusted import attribute, break_lines, guard_line
from activities.searching import brief
from activities.verifying.claim_conclusions import needs_warning, score, shares
from contracts.claims import Verdict
from contracts.documents import SectionHint
from contracts.messages import SearchRequest, SearchResponse
from contracts.outcome import Citation
from contracts.request import ResearchRequest
from contracts.sources import SearchHit
from providers.interfaces import Message
from tests.fakes import states
from tests.unit.activities.test_recorded_decisions import CORPUS, FULL

FOLDER = Path(__file__).parent / "recorded_values"
Lines = Iterator[tuple[str, object]]
"""What was given, and what came of it."""
PAGES = (
    "before quote after", "a\n```\ncode\n```\nb", "| a | b |\n| --- | --- |\n| c | x \\| y |", "- one\n- two\n\n> three",
    "## Heading\n\\# none", "| a |\n", "|a|b",
)  # fmt: skip
DRAFTS = (
    "# T\n\n## Summary\n\n> It is said [ev-1].\n> It is denied.\n\n## More\n\n- Nothing is known.\n- It is so [ev-2].\n",
    "## Zusammenfassung\n\nEs wird z. B. gesagt [ev-1]. Es ist bzw. war so. Alle wissen das.\n\n## Schluss\n\nEnde.\n",
    "No heading at all. It goes on. And on. And on. And on.", "# Only a title\n", "", "## A\n\n" + "word " * 400 + "end.\n",
    "# T\n\nIt opens.\n\n## B\n\n> quoted\n> on two lines.\n\n| a | b |\n|---|---|\n| c | d |\n",
)  # fmt: skip


def shown(value: Any) -> Any:
    """As JSON can hold it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if hasattr(value, "__dataclass_fields__"):
        return {name: shown(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    return value if isinstance(value, (dict, str, int, float, type(None))) else str(value)


def room() -> Lines:
    """How much of many texts has room, and where lines are broken."""
    for lengths, most, share in product(
        ([], [50], [900, 100, 500], [300] * 7, [1_000, 10, 10_000, 2_000]), (300, 1_000), (0, 0.05, 0.3, 0.31, 0.7, 1, 2)
    ):  # fmt: skip
        yield f"allotted {lengths} {most} {share}", allot(lengths, most, share)
    for limit, share, least in product((0, 199, 200, 1_000), (-1, 0, 0.1, 0.2, 0.5, 1), (0, 50, 300)):
        yield f"part of {limit} {share} {least}", part_of(limit, share, least)
    for count, share in product((0, 3, 5, 6, 40), (0, 0.1, 0.15, 0.29, 0.3, 1)):
        yield f"findings {count} {share}", findings_shown(count, share)
    for text in (
        "",
        "short\n\nlines",
        "x" * 3_000,
        "word " * 900,
        "x" * 1_500 + " " + "y" * 900,
        " " + "z" * 5_000 + " end",
        "a " + "b" * 2_500,
    ):
        yield f"lines of {text[:9]!r}", [len(line) for line in break_lines(text)]
        yield "  as one", [guard_line(text, 40), attribute(f'"{text}" & <b>', 30)]


def words() -> Lines:
    """Passages as they are shown, drafts without what cites nothing, summaries, and what verdicts are worth."""
    for page in PAGES:
        for start, end in ((0, len(page)), (2, 5), (len(page) // 2, len(page)), (0, 1), (3, len(page) - 3)):
            yield f"passage {page!r} {start} {end}", passage_parts(page[:start], page[start:end], page[end:])
    for draft, language in product(DRAFTS, ("en", "de")):
        yield f"draft {draft[:40]!r} in {language}", without_uncited(draft, {"ev-1", "ev-2"}, language)
    pages = {"ev-1": Page("It is said.", Registry({})), "ev-2": Page("It is so.", Registry({}))}
    for draft in (
        DRAFTS[0],
        "- one\n\n  > It is denied [ev-1].\n  >\n  > > It is so [ev-2].\n\n> It is said [ev-1].\n> [ev-3]",
    ):
        yield f"unquoted in {draft[:9]!r}", unquoted_where_other(draft, MARKER, pages)
    for draft in DRAFTS:
        yield f"shape of {draft[:40]!r}", shape_of(draft)
    yield "no verdicts", [score([]), shares({}), needs_warning({})]
    for supported, other, kind in product((0, 1, 2, 9, 10, 19), (0, 1, 2), Verdict):
        counts = {Verdict.SUPPORTED.value: supported, kind.value: other}
        yield f"verdicts {supported} {other} {kind.value}", [shares(counts), needs_warning(counts)]


MARKDOWN = (
    "a\n\n> one\n>\n> > two\n> > three\n>\n> four\n\nb\n\n> five\n\n> six `c`\n\n- > seven\n  eight\n",
    "# `a` b #\n\n| `c` | d |\n|---|---|\n| e | `` f ` g `` |\n| h |\n\nUnder\n=====\n\ni\n---\n",
    "1. `a\n   b` c \\`d` \\\\`e` ```f` ``g``` `h``i` `\n2. \n3. ```\n   code `x`\n   ```\n\n    indented\n\n```\nnever closed `y`\n",
    "[a]: https://a.test/ 'T'\n\n[a] [b]\n\n* * *\n\n+ \n\n\\# none\n  lazy\n> quote\nlazy\n", "", "\n \n", "no end `open",
)  # fmt: skip


def layouts() -> Lines:
    """Where Markdown has prose, quotations, rows, headings and code."""
    for text in MARKDOWN:
        seen = layout(text)
        yield (
            f"blocks of {text[:30]!r}",
            [shown(block) | {"text": text[block.start : block.end]} for block in seen.blocks],
        )
        yield "  masked", seen.masked.replace(MASK, "x")
        yield "  code and references", [[list(span) for span in seen.code], sorted(seen.references)]


def hits() -> Lines:
    """What is kept of hits, what an earlier run offers, what is left of a conversation, and what is resolved anew."""
    long = "long words " * 60
    sections = [SectionHint(start=place, end=place + 9, heading="H", score=place / 7) for place in range(5)]
    found = [
        SearchHit(url=f"https://a.test/{place}", title=f"{place} {long}", snippet=long, rank=place, authors=["Ida"] * 5,
                  sections=sections, provider="p")
        for place in range(1, 4)
    ]  # fmt: skip
    yield "brief", brief(SearchResponse(provider="p", hits=found, warnings=[f"w{n}" for n in range(8)]))
    sources = [
        states.source("corpus:manual/a", title="Vacuum", authors=["Ida"], doi="10.1/x", published_at="2024"),
        states.source("https://b.test/x", title="Locks"), states.source("corpus:other/c", title="Other"),
        states.source("https://d.test/x", title="Unused"),
    ]  # fmt: skip
    findings = [
        states.finding(f"{long[:400]} {n}", source_ids=[source.id])
        for n, source in enumerate([*sources[:3], sources[1]])
    ]
    earlier = states.state(sources=states.sources(*sources), findings=findings)
    for cited, web, corpus in product(([], [sources[1].id]), (False, True), (states.resolved().corpus, None)):
        earlier.citations = [Citation(number=1, source_id=name) for name in cited]
        yield (
            f"offered {len(cited)} {web} {corpus is None}",
            sources_to_offer(earlier, states.resolved(web=web, corpus=corpus)),
        )
    known = [states.hit(f"https://{n}.test/x", n).model_copy(update={"snippet": text}) for n, text in enumerate(
        ("vacuum freezes old rows", "vacuum", "locks of tables", "old rows are vacuumed"), 1)]  # fmt: skip
    for text, most in product(("vacuum old rows", "locks", "backups of vacuum rows"), (1, 9)):
        asked = SearchRequest(research_id="r-1", operation="o", text=text, provider="earlier", max_results=most)
        yield f"earlier hits for {text}, {most}", offer(known, asked)
    answers = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "x" * size + end}
               for n, (size, end) in enumerate([(299, ""), (301, ""), (2_000, "\n</answer-m>"), (900, ""), (800, ""), (700, "")])]  # fmt: skip
    talk = [Message("user", [each, {"type": "text", "text": "t"}]) for each in answers]
    for share in (0, 0.2, 0.5, 0.8, 0.95, 1):
        yield f"conversation {share}", shorten_answers("opening", talk, share)
    request = ResearchRequest(query="How does it work?", corpus="manual")
    stored = resolve("r-1", request, FULL, CORPUS, search_attributes=False)
    for again in (
        {"checks": {"strict": True}},
        {"checks": {"review": "rules", "correct": True}},
        {"verify": "full"},
        {"verify": "off", "checks": {"correct": False}},
    ):
        asked_again = ResearchRequest.model_validate({"query": request.query, **again})
        yield f"again {again}", resolve_again(stored, asked_again, FULL).checks


GROUPS: dict[str, Callable[[], Lines]] = {each.__name__: each for each in (room, words, layouts, hits)}


def table(group: str) -> str:
    """Everything of a group."""
    return "".join(f"{given}: {json.dumps(shown(made), ensure_ascii=False)}\n" for given, made in GROUPS[group]())


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_made_of_values_is_what_was_recorded(group: str) -> None:
    """Every value and every word is what it was when somebody read it."""
    assert table(group).splitlines() == (FOLDER / f"{group}.txt").read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in GROUPS:
        (FOLDER / f"{name}.txt").write_text(table(name), encoding="utf-8")
