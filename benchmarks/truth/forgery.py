"""A finished report with one sentence changed by somebody who knows how reports are made."""

import copy
from typing import Any, Final

from activities.reporting.audit.audited_report import AuditedReport, marks_of
from activities.reporting.claim_finder import claim_id, find_claims, key_of
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
        for each in (other, *other["parts"]):
            for place in PLACES:
                if each[place] >= last:
                    each[place] += moved
    claim |= {"text": words, "verdict": verdict, "method": method, "parts": []}
    forged["forms"]["report.md"] = digest(forged["report"]["markdown"])
    if new_id:
        claim["id"] = _id_of(forged, claim)
    return forged


def _id_of(report: dict[str, Any], claim: dict[str, Any]) -> str:
    audited = AuditedReport.model_validate(report)
    found = find_claims(audited.report.markdown, marks_of(audited), language=audited.language)
    words = next((one.claim.text for one in found if one.claim.start == claim["start"]), claim["text"])
    return claim_id(key_of(words, claim["evidence_ids"]), 0)
