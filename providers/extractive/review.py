"""Reviewing a draft by rules: what can be counted of coverage, support, depth and readability. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from contracts.checking_roles import ReviewerAnswer, ReviewInput
from providers.sentences import sentence_spans

MARKER: Final = re.compile(r"\[ev-[0-9A-Za-z]{1,64}+\]")
HEADING: Final = re.compile(r"^#{1,6}[ \t]", re.MULTILINE)
FIGURE: Final = re.compile(r"\d")
LONG_SENTENCE: Final = 32
"""Words, on average, from which a text is hard to read."""
LONG_PARAGRAPH: Final = 200
"""Words of one paragraph from which it is hard to find anything in."""
SHORT_DRAFT: Final = 40
"""Words that no answer to a question of research does with."""
MOST_MISSING: Final = 5


def review(given: ReviewInput, documents: Mapping[str, str]) -> ReviewerAnswer:
    """The scores of a draft from what can be counted, each with its reason."""
    text = documents.get(given.draft.hash, "")
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip() and not HEADING.match(part.lstrip())]
    sentences = [_words(part[start:end]) for part in paragraphs for start, end in sentence_spans(part)]
    asserting = [sentence for sentence in sentences if len(MARKER.sub("", sentence).split()) >= 4]
    cited = [sentence for sentence in asserting if MARKER.search(sentence)]
    asked = len(given.sub_queries)
    answered = asked - len(given.unanswered)
    support = len(cited) / len(asserting) if asserting else 0.0
    passages = len(set(MARKER.findall(text)))
    figures = sum(bool(FIGURE.search(MARKER.sub("", sentence))) for sentence in cited)
    lengths = [len(MARKER.sub("", sentence).split()) for sentence in sentences]
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    longest = max((len(part.split()) for part in paragraphs), default=0)
    problems = [
        problem
        for problem, found in (
            ("it has no headings", not HEADING.search(text)),
            (f"its sentences have {mean:.0f} words on average", mean > LONG_SENTENCE),
            (f"a paragraph has {longest} words", longest > LONG_PARAGRAPH),
            ("it is too short to be an answer", sum(lengths) < SHORT_DRAFT),
        )
        if found
    ]
    notes = [f"Answer what was asked of “{text}”, or say that it was not found." for text in given.unanswered]
    notes += ["Give a citation for every assertion, or leave it out."] if support < 1 else []
    notes += [f"Mend the form: {problem}." for problem in problems]
    return ReviewerAnswer(
        coverage=round(10 * answered / asked, 1) if asked else 0.0,
        support=round(10 * support, 1),
        depth=round(min(10.0, 1.5 * min(given.sources_cited, 4) + 0.3 * min(passages, 8) + 0.4 * min(figures, 4)), 1),
        readability=round(max(0.0, 10.0 - 2.5 * len(problems)), 1),
        reasons=[
            f"{answered} of {asked} sub-queries have a finding",
            f"{len(cited)} of {len(asserting)} sentences carry a citation",
            f"{given.sources_cited} sources, {passages} passages, {figures} cited sentences with figures",
            "; ".join(problems) or "headings, sentences and paragraphs are of a usual length",
        ],
        missing=given.unanswered[:MOST_MISSING],
        notes=notes[:MOST_MISSING],
    )


def _words(text: str) -> str:
    return " ".join(text.split())
