"""A finished report with one sentence changed by somebody who knows how reports are made."""

import copy
import re
from itertools import chain, zip_longest
from typing import Any, Final

from activities.reporting.claims import claim_id, find_claims
from activities.reporting.references import ReportMarks
from activities.reporting.tree import parse, write
from contracts.addresses import digest

PLACES: Final = ("start", "end")
NUMBERS: Final = re.compile(r"(?:\[[0-9]+\])+")
SIGN: Final = re.compile(r" \*\([^)]*\)\*\Z")


def forge(
    report: dict[str, Any], number: int, words: str, verdict: str, method: str, *, new_id: bool = False
) -> dict[str, Any]:
    """The report with the text of that claim replaced by `words`, all places and the hash of its text made to agree.

    With `new_id` the claim's id is made anew, too, as only who knows the rule for it can.
    """
    forged = copy.deepcopy(report)
    claim = forged["claims"][number]
    first, last, moved = claim["start"], claim["end"], len(words) - len(claim["text"])
    text = forged["report"]["markdown"]
    forged["report"]["markdown"] = text[:first] + words + text[last:]
    forged["report"]["draft"] = _in_draft(forged["report"]["draft"], claim["text"], words)
    for other in forged["claims"]:
        for place in PLACES:
            if other[place] >= last:
                other[place] += moved
    claim |= {"text": words, "verdict": verdict, "method": method}
    forged["forms"]["report.md"] = digest(forged["report"]["markdown"])
    if new_id:
        claim["id"] = _id_of(forged, claim)
    return forged


def _in_draft(draft: str, before: str, after: str) -> str:
    """The draft with a statement changed as in the report; its citations name passages where the report has numbers."""
    old, new = (NUMBERS.split(SIGN.sub("", text)) for text in (before, after))
    found = re.search(r"((?:\[ev-\w+\])+)".join(map(re.escape, old)), draft)
    if found is None:
        return draft
    words = "".join(chain.from_iterable(zip_longest(new, found.groups(), fillvalue="")))
    return draft[: found.start()] + words + draft[found.end() :]


def _id_of(report: dict[str, Any], claim: dict[str, Any]) -> str:
    blocks = parse(report["report"]["markdown"], ReportMarks())
    written = write(blocks)
    found = find_claims(blocks, report["language"])
    words = next((one.text for one in found if one.span(written)[0] == claim["start"]), claim["text"])
    return claim_id(words, claim["evidence_ids"])
