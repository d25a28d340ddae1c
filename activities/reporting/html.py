"""The report as one HTML file: every citation opens its passage, every sentence its check, and nothing is loaded."""

import base64
import hashlib
import re
from collections import Counter, defaultdict
from functools import lru_cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from activities.reporting.inputs import JudgedClaim, ReportInputs
from activities.reporting.passages import words_around
from activities.reporting.report_text import RenderedText, pages_of, quality_words
from activities.reporting.tree import CitationPlace, Sentence, clean_characters, sentences
from contracts.report_changes import VERDICT_SIGNS
from contracts.texts import shorten


def compose_html(inputs: ReportInputs, report: RenderedText) -> str:
    """Render the page."""
    checks: defaultdict[Sentence, JudgedClaim | None] = defaultdict(lambda: None)
    by_passage: defaultdict[str, list[JudgedClaim]] = defaultdict(list)
    for claim in inputs.claims:
        checks |= dict.fromkeys(claim.claim.sentences, claim)
        by_passage[next(iter(claim.claim.evidence_ids), "")].append(claim)
    anchors: dict[tuple[Sentence, int], str] = {}
    places: defaultdict[str, list[str]] = defaultdict(list)
    for sentence in sentences(report.body):
        for place, inline in enumerate(sentence.inlines):
            if isinstance(inline, CitationPlace) and not inline.sign:
                anchor = anchors[sentence, place] = f"cite-{len(anchors) + 1}"
                for key in inline.evidence_ids:
                    places[key].append(anchor)
    headings = [block for block in report.body if block.kind == "heading" and block.level == 2]
    language = inputs.words.language
    template, style, style_hash = _load_template()
    page: str = template.render(
        inputs=inputs,
        report=report,
        corpus=inputs.resolved.corpus,
        language=language if re.fullmatch(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}", language) else "en",
        sections={block: f"section-{number}" for number, block in enumerate(headings, start=1)},
        checks=checks,
        by_passage=by_passage,
        anchors=anchors,
        places=places,
        signs=VERDICT_SIGNS,
        counts=Counter(claim.judged.verdict.value for claim in inputs.claims),
        say=inputs.words,
        rel="noopener noreferrer nofollow ugc",
        style=style,
        style_hash=style_hash,
        pages_of=pages_of,
        quality_words=quality_words,
        shorten=shorten,
        words_around=words_around,
    )
    return page + "\n"


@lru_cache(maxsize=1)
def _load_template() -> tuple[Template, Markup, str]:
    """Load the template, the style sheet, and the style's hash for the Content-Security-Policy."""
    folder = resources.files("activities.reporting")
    style = (folder / "report_style.css").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_finalize)
    template = environment.from_string((folder / "report.html.j2").read_text("utf-8"))
    return template, Markup(style), base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()  # noqa: S704


def _finalize(value: object) -> object:
    """Clean the characters of every text that is printed; the template then escapes it."""
    return clean_characters(value) if isinstance(value, str) and not isinstance(value, Markup) else value
