"""What an audit says: counts, and each difference with what it is and what to do about it."""

from dataclasses import dataclass, field
from typing import Final

ARCHIVE: Final = "compare the archive with a backup; `research run` with the same question reads the source again"
EDITED: Final = "take the report from the store again: `research report ID --format json --out report.json`"
WRONG_REPORT: Final = "do not rely on the report: it was changed, or written by something else; ask for it again"
TRANSFER: Final = "ask the sender for the bundle again: it was changed after it was made"
REMEDIES: Final[dict[str, str]] = {
    "text_differs": ARCHIVE,
    "original_differs": ARCHIVE,
    "text_missing": f"the archive may have been cleaned up: {ARCHIVE}",
    "original_missing": f"the archive may have been cleaned up: {ARCHIVE}",
    "offset_differs": f"the words are right and their place is wrong; {EDITED}",
    "quote_differs": f"take no quote from this source without looking it up: `research sources ID SOURCE`; {EDITED}",
    "context_differs": EDITED,
    "quotation_differs": f"look the words up in the source (`research sources ID NUMBER`); {EDITED}",
    "evidence_without_source": f"the source was taken out of the report; {EDITED}",
    "citation_without_source": f"the source was taken out of the report; {EDITED}",
    "evidence_without_text": f"nothing of this source is archived, so nothing of it can be quoted; {EDITED}",
    "claim_moved": f"the text was changed after its claims were placed; {EDITED}",
    "claim_unlisted": f"read the statement as unverified; {WRONG_REPORT}",
    "claim_altered": f"its verdict was given for other words; {WRONG_REPORT}",
    "claim_without_evidence": f"the statement cites nothing that is listed; {EDITED}",
    "claim_numbers_differ": EDITED,
    "claim_not_the_quote": f"read the statement as a paraphrase; {EDITED}",
    "verdict_differs": f"believe the verdict that is given here; {EDITED}",
    "verdict_without_method": f"read the statement as unverified; {EDITED}",
    "markdown_differs": "write the file again: `research report ID --format md --out report.md`",
    "html_differs": "write the file again: `research report ID --format html --out report.html`",
    "text_altered": f"the text is not the one that was rendered; {EDITED}",
    "report_differs": f"the file was changed, or the run went on since it was written; {EDITED}",
    "report_missing": "write the report again: `research resume ID`",
    "report_damaged": "compare the store with a backup, or ask again: `research resume ID`",
    "malformed": f"the file is no report of this product's version; {EDITED}",
    "file_differs": TRANSFER,
    "file_missing": TRANSFER,
    "file_unlisted": f"do not use the file; {TRANSFER}",
}
"""By kind of difference; what is not named here contradicts itself within the report."""


@dataclass(frozen=True)
class AuditProblem:
    """One difference between the report and what it rests on."""

    kind: str
    id: str
    message: str
    """What it is."""
    remedy: str = ""
    """What to do."""


@dataclass
class AuditResult:
    """What was compared, what could not be, and every difference found."""

    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, int] = field(default_factory=dict)
    problems: list[AuditProblem] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether everything that was compared agreed."""
        return not self.problems

    def count(self, what: str) -> None:
        """One more item compared."""
        self.checked[what] = self.checked.get(what, 0) + 1

    def skip(self, what: str) -> None:
        """One more item that could not be compared."""
        self.unchecked[what] = self.unchecked.get(what, 0) + 1

    def problem(self, kind: str, identity: str, message: str) -> None:
        """One more difference."""
        self.problems.append(AuditProblem(kind, identity, message, REMEDIES.get(kind, WRONG_REPORT)))
