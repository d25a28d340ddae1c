"""Claims in the HTML report: each sentence leads to what its check said, and a filter that needs no script."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from activities.reporting.judged_claims import PlacedClaim
from activities.reporting.markdown_layout import PREFIX, clean_characters, plain_text
from activities.reporting.report_words import ReportWords
from activities.reporting.verdict_words import VERDICT_SIGNS
from contracts.evidence import CheckMethod

OPEN, CLOSE = "\ue102", "\ue103"
SIGN: Final = "‖"
"""Around our marks: punctuation, so that emphasis beside them begins and ends as before."""
MARK: Final = re.compile(f"{SIGN}{OPEN}(\\d+)([be]){CLOSE}{SIGN}")
PIECES: Final = re.compile(f"{MARK.pattern}|(<[^<>]*+>)|([^<{SIGN}]++|.)", re.DOTALL)
"""Safe HTML has no angle brackets in attributes: addresses have them encoded, and our own labels have none."""
LINKED: Final = re.compile(r"<(?:a|span)[\s>]")
"""Where a link is, or one of our numbers, which is a span of links."""
UNLINKED: Final = ("</a>", "</span>")
MOST_RENDERINGS: Final = 64
MOST_RENDERED: Final = 2_000_000
"""Renderings and characters in all, while claims are sought whose marks would change what Markdown makes of a text."""
WORDS_SHOWN: Final = 240
"""Characters of a statement above its check; the text has all of it."""
UNKNOWN: Final = "unverified"


@dataclass(frozen=True)
class LinkedClaim:
    """A claim with its number among those of the report, and its place in the text that is rendered."""

    index: int
    claim: PlacedClaim
    start: int
    end: int


def place_claims(claims: Sequence[PlacedClaim], body: str, body_start: int) -> list[LinkedClaim]:
    """The claims that stand in the body of the report, in its order.

    Those of a table's row begin within its first cell; of two that share words, the second has the rest or only a sign.
    """
    placed = []
    last = 0
    for index, claim in enumerate(claims, start=1):
        start, end = claim.start - body_start, claim.end - body_start
        if start < 0 or end > len(body):
            continue
        row = body[start:end]
        if row.startswith("|"):
            start += len(row) - len(row.removeprefix("|").lstrip())
            end -= len(row) - len(row.removesuffix("|").rstrip())
        elif (sign := PREFIX.match(body, start, end)) is not None:
            start = sign.end()
        start = max(start, last)
        last = max(start, end)
        placed.append(LinkedClaim(index, claim, start, last))
    return placed


def marks_of_claims(claims: Sequence[LinkedClaim]) -> list[tuple[int, str]]:
    """What is to be put into the Markdown, by place: a sign where each claim begins and where it ends."""
    marks = []
    for item in claims:
        marks.append((item.start, f"{SIGN}{OPEN}{item.index}b{CLOSE}{SIGN}"))
        marks.append((item.end, f"{SIGN}{OPEN}{item.index}e{CLOSE}{SIGN}"))
    return marks


def keep_harmless(
    claims: Sequence[LinkedClaim], render: Callable[[Sequence[LinkedClaim]], str]
) -> tuple[str, list[LinkedClaim]]:
    """The rendered text with the marks of every claim that changes nothing else in it, and those claims.

    `render` makes safe HTML of the text with the marks of some claims. A claim whose marks would change it is left
    without them: its words stay as they are, and its check stands with its passage.
    """
    plain = render(())
    left = [max(1, min(MOST_RENDERINGS, MOST_RENDERED // (len(plain) + 1)))]

    def harmless(some: Sequence[LinkedClaim]) -> list[LinkedClaim]:
        left[0] -= 1
        if not some or left[0] < 0:
            return []
        if MARK.sub("", render(some)) == plain:
            return list(some)
        half = len(some) // 2
        return [*harmless(some[:half]), *harmless(some[half:])] if half else []

    kept = harmless(claims)
    return (render(kept) if kept else plain), kept


def link_sentences(html: str, claims: Sequence[LinkedClaim], say: ReportWords) -> tuple[str, set[int]]:
    """Safe HTML in which the words of each claim lead to its check, and the numbers of those claims.

    Every run of words is a link of its own, so that a claim may cross any markup; links that are there stay. A sign at
    the end of the claim does the same for keyboards and on paper. What Markdown left out of the text leads nowhere.
    """
    edges = {(int(index), edge) for index, edge in MARK.findall(html)}
    known = {item.index: item for item in claims if {(item.index, "b"), (item.index, "e")} <= edges}
    written: list[str] = []
    current: LinkedClaim | None = None
    depth, waiting = 0, ""
    for piece in PIECES.finditer(html):
        index, edge, tag, words = piece.groups()
        if tag:
            depth += 1 if LINKED.match(tag) else -1 if tag in UNLINKED else 0
            written.append(tag)
        elif index:
            item = known.get(int(index))
            current = item if edge == "b" else None
            waiting += _sign(item, say) if item is not None and edge == "e" else ""
        else:
            written.append(words if current is None or depth else _link(words, current))
        if waiting and not depth:
            written.append(waiting)
            waiting = ""
    return "".join([*written, waiting]), set(known)


def _shortened(words: str) -> str:
    return words if len(words) <= WORDS_SHOWN else words[:WORDS_SHOWN].rpartition(" ")[0] + " …"


def _verdict(claim: PlacedClaim) -> str:
    return claim.verdict if claim.verdict in VERDICT_SIGNS else UNKNOWN


def _link(text: str, item: LinkedClaim) -> str:
    words = text.strip()
    if not words:
        return text
    before, _, after = text.partition(words)
    opening = f'<a class="said v-{_verdict(item.claim)}" href="#claim-{item.index}" tabindex="-1">'
    return f"{before}{opening}{words}</a>{after}"


def _sign(item: LinkedClaim, say: ReportWords) -> str:
    verdict = _verdict(item.claim)
    label = f"{say[f'judged_{verdict}']}, {say.name('method', item.claim.method)}"
    return (
        f'<a class="sign v-{verdict}" id="said-{item.index}" href="#claim-{item.index}" aria-label="{escape(label)}">'
        f"{VERDICT_SIGNS[verdict]}</a>"
    )


def filter_by_verdict(claims: Sequence[PlacedClaim], say: ReportWords, language: str) -> str:
    """Radio buttons for the verdicts that the report has; the style sheet does the rest."""
    if not claims:
        return ""
    counts = Counter(_verdict(claim) for claim in claims)
    choices = [("all", f"{say['show_all']} {say.number(len(claims))}")]
    choices += [
        (name, f"{sign} {say[f'judged_{name}']} {say.number(counts[name])}")
        for name, sign in VERDICT_SIGNS.items()
        if counts[name]
    ]
    buttons = "".join(
        f'<label><input type="radio" name="verdict" id="show-{name}"{" checked" if name == "all" else ""}> '
        f"{escape(words)}</label>"
        for name, words in choices
    )
    legend = escape(say["show_statements"])
    return f'<fieldset class="verdicts"{language}><legend>{legend}</legend>{buttons}</fieldset>'


def check_of_claim(index: int, claim: PlacedClaim, proofs: str, say: ReportWords, *, in_text: bool) -> str:
    """What is shown of one claim: verdict, method, words, reason, and `proofs`, the HTML of its further passages.

    The words of a claim that is a passage are left out: the passage is shown with it.
    """
    verdict = _verdict(claim)
    method = say.name("method", claim.method)
    back = f'<a href="#said-{index}">↑ {escape(say["in_text"])}</a>' if in_text else ""
    words = "" if claim.method == CheckMethod.VERBATIM else (
        f'<p class="statement">{escape(_shortened(clean_characters(plain_text(claim.text))))}</p>'
    )  # fmt: skip
    return (
        f'<div class="check v-{verdict}" id="claim-{index}">'
        f'<p class="verdict"><strong>{VERDICT_SIGNS[verdict]} {escape(say[f"judged_{verdict}"])}</strong>'
        f' · {escape(method)} <span class="back">{back}</span></p>{words}'
        f'<p class="reason">{escape(clean_characters(say.told(claim.reason)))}</p>{proofs}</div>'
    )
