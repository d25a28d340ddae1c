"""A report as a PDF, set by Typst with the fonts in its wheel: no program, no network, no file.

The text reaches the template as JSON and is shown as strings: nothing in it is ever read as Typst's markup.
"""

import json
import re
from dataclasses import asdict
from importlib import resources
from typing import Final

import typst

from client.exchange.exported_report import ExportedReport, safe_line
from client.exchange.report_blocks import blocks_of, title_of

LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?=-|\Z)")
TEMPLATE: Final = "report.typ"


def to_pdf(report: ExportedReport) -> bytes:
    """The PDF as bytes; equal reports give equal bytes where the same fonts are installed."""
    language = LANGUAGE.match(report.language.lower())
    data = {
        "title": title_of(report),
        "language": language[0] if language else "en",
        "footer": f"{safe_line(report.research_id)} · durable-research {safe_line(report.product_version)}".strip(),
        "blocks": [asdict(block) for block in blocks_of(report)],
    }
    template = (resources.files("client.exchange") / TEMPLATE).read_bytes()
    made = typst.compile(template, format="pdf", sys_inputs={"report": json.dumps(data)})
    assert isinstance(made, bytes)
    return made
