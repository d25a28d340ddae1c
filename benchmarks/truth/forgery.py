"""A finished report with one sentence changed by somebody who knows how reports are made."""

import copy
from typing import Any, Final

from activities.reporting.citations import ReportMarks
from activities.reporting.claims import claim_id, claim_key, find_claims
from activities.reporting.markdown import write
from activities.reporting.tree import parse
from contracts.addresses import digest

PLACES: Final = ("start", "end")


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
    for other in forged["claims"]:
        for place in PLACES:
            if other[place] >= last:
                other[place] += moved
    claim |= {"text": words, "verdict": verdict, "method": method}
    forged["forms"]["report.md"] = digest(forged["report"]["markdown"])
    if new_id:
        claim["id"] = _id_of(forged, claim)
    return forged


def _id_of(report: dict[str, Any], claim: dict[str, Any]) -> str:
    blocks = parse(report["report"]["markdown"], ReportMarks())
    written = write(blocks)
    found = find_claims(blocks, report["language"])
    words = next((one.words for one in found if one.place(written)[0] == claim["start"]), claim["text"])
    return claim_id(claim_key(words, claim["evidence_ids"]), 0)
