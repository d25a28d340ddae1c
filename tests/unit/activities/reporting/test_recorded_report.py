"""The three forms of one rich report against recorded ones: `python -m tests.unit.activities.reporting.test_recorded_report`."""

import re
from pathlib import Path

from activities.reporting.render import render
from contracts.vocabulary import Quality, SourceStatus
from tests.unit.activities.reporting.sample import SKIPPED, Sample, make_source

FOLDER = Path(__file__).parent / "recorded_report"
STYLE = re.compile(r"(?<=<style>).*?(?=</style>)", re.DOTALL)


def rendered() -> dict[str, str]:
    """A report that holds each thing that a report can hold, by file name."""
    sample = Sample()
    text = "# Of age\n\nRows grow old, says “Zoë”.\n"
    dated = {"authors": ["A. Writer", "Zoë B."], "published_at": "2025-03-04", "publisher": "First", "venue": "V"}
    page = make_source(
        "https://read.test/page?a=1&b=2", "Read & not cited", text, quality=Quality.LOW, doi="10.1000/182", **dated
    )
    refused = make_source("https://closed.test/", "Closed", "").model_copy(
        update={"status": SourceStatus.FAILED, "status_reason": "forbidden", "text": None}
    )
    sources = {source.id: source.model_copy(update=dated) for source in sample.sources.values()}
    state = sample.state(
        sources=sources | {page.id: page, refused.id: refused},
        degraded=["the model was not asked twice"],
        failed_branches=["analysis of “cost”: no answer"],
    )
    forms = render(state, sample.draft, sample.texts, SKIPPED, "0.1.0")
    return {"report.md": forms.markdown, "report.html": STYLE.sub("", forms.html), "report.json": forms.document}


def test_the_report_is_the_recorded_one() -> None:
    """Each form is, word for word, what it was when somebody read it."""
    for name, text in rendered().items():
        assert text.splitlines() == (FOLDER / name).read_text(encoding="utf-8").splitlines(), name


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file_name, content in rendered().items():
        (FOLDER / file_name).write_text(content, encoding="utf-8")
