"""Sizes of model calls: prompt limits, the expected size of a call, and the upper bound to reserve for it. Pure.

All figures err high. `worst_call` bounds one call with known input: its bill never exceeds the bound.
"""

import json
import math
from typing import Any, Final

from contracts import checking_roles, roles
from contracts.checking_roles import ClaimBatchInput, ReviewInput
from contracts.evidence import DocumentRef
from contracts.outcome import Usage
from contracts.recursive_roles import EXTRACTOR, MAX_SHOWN_LINKS, SCANNED_CHARACTERS, SCANNER, ExtractInput
from contracts.reflective_roles import ReflectOnStepInput
from contracts.report_updates import REPORTER, UpdateInput
from contracts.roles import AnalyzeInput, BriefedInput, FindingsInput, RoleInput, RoleSpec, WriteInput
from contracts.summaries import ORIGINAL_CHARACTERS, SummarizeInput
from contracts.supervisor_roles import REFINER, RefineInput, ReflectInput
from contracts.tool_turns import ToolTurnInput
from contracts.tools import ToolAnswer

# Limits of prompts.
MAX_SOURCES: Final = 20
"""Per analysis."""
FINDINGS_PER_SUB_QUERY: Final = 5
"""Per analysis."""
QUOTE_CHARACTERS: Final = 400
"""Of each passage in a synthesizer's prompt."""
DRAFT_CHARACTERS: Final = 6_000
"""Of the draft in a refiner's prompt."""
SHOWN_HEADINGS_CHARACTERS: Final = 6_000
"""Of headings and first sentences of a draft in a supervisor's prompt."""
MAX_GAP_PASSAGES: Final = 30
"""Of pages already read, in a refiner's prompt."""
GAP_PASSAGE_CHARACTERS: Final = 600
REVIEWED_CHARACTERS: Final = 24_000
"""Of the draft in a reviewer's prompt."""
REVIEWED_PASSAGE_TOKENS: Final = 260
"""A cited passage in a reviewer's prompt: title, beginning, id, and what the check said of its statement."""
SECTION_CHARACTERS: Final = 12_000
"""Of a section in a reporter's prompt, which shows only the end of a longer section."""
CLAIMS_PER_CALL: Final = 16
"""Of a checker or a corrector; larger batches are judged less well."""
LONG_REPORT_WORDS: Final = 2_500
"""From this length on, a report is written section by section, then its frame."""
MIN_REPORT_SECTIONS, MAX_REPORT_SECTIONS = 2, 12

# Tokens. One per character of outside text, which no script exceeds by much.
BYTES_PER_TOKEN: Final = 3
"""English has about four bytes per token, Chinese three."""
FIXED_INPUT_TOKENS: Final = 4_000
"""A role's prompt (at most about 3,200 characters), its answer schema (2,400), and the endpoint's overhead."""
REASONING_TOKENS: Final = 8_000
"""Allowance for hidden reasoning of a model without a configured one; billed as output."""
LINE_TOKENS: Final = 60
"""Ids, markers and labels of a source, finding, passage or answer."""
SNIPPET_TOKENS: Final = 300
PAGE_TOKENS: Final = 6_000
"""Of a typical page, shown whole."""
MIN_SHOWN_TOKENS: Final = 2_000
"""Of two short pages."""
OUTLINE_TOKENS: Final = 1_000
"""Of a source's hidden sections: at most 40 lines."""
MAX_TEXT_TOKENS: Final = 10_000_000
ESTIMATE_FACTOR: Final = 2
"""Most tokens for each estimated one (`providers.tokens.allotment`): dense text such as hashes takes up to that."""
FINDING_TOKENS: Final = 600
"""A finding with its passages, in a typical report."""
MATERIAL: Final = {
    "answers", "claims", "sources", "findings", "evidence", "term_documents", "summaries", "read_sources"
}  # fmt: skip
"""Fields that prompts show partially, or with stored text."""


def expected_call(
    role: RoleSpec[Any, Any],
    *,
    sources: int = 0,
    shown_tokens: int = 0,
    findings: int = 0,
    reasoning_tokens: int = 0,
) -> Usage:
    """Return the typical size of a role's call, with the texts of its sources or the findings of a report."""
    claims = min(findings, CLAIMS_PER_CALL)
    material = {
        checking_roles.CHECKER.name: claims * 250,
        checking_roles.CORRECTOR.name: claims * 450,
        checking_roles.REVIEWER.name: REVIEWED_CHARACTERS // BYTES_PER_TOKEN,
        roles.ANALYZER.name: shown_tokens + min(sources, MAX_SOURCES) * SNIPPET_TOKENS,
        EXTRACTOR.name: min(shown_tokens, PAGE_TOKENS) + SNIPPET_TOKENS,
        SCANNER.name: SCANNED_CHARACTERS // BYTES_PER_TOKEN + SNIPPET_TOKENS,
        roles.SYNTHESIZER.name: findings * FINDING_TOKENS,
        REFINER.name: DRAFT_CHARACTERS,
        REPORTER.name: SECTION_CHARACTERS // BYTES_PER_TOKEN,
    }
    conversation = 5_000 if role.tools else 0
    size = FIXED_INPUT_TOKENS + conversation + material.get(role.name, 0)
    return Usage(input_tokens=size, output_tokens=role.expected_output_tokens + reasoning_tokens)


def minimal_call(role: RoleSpec[Any, Any]) -> Usage:
    """Return the typical size of a role's call in a run that finds little: two short sources, two findings."""
    return expected_call(role, sources=2, findings=2, shown_tokens=MIN_SHOWN_TOKENS)


def worst_call(role: RoleSpec[Any, Any], request: RoleInput, reasoning_tokens: int | None = None) -> Usage:
    """Return an upper bound for one call with this input: its fields as text, and the stored text in its prompt."""
    fields = _tokens(request.model_dump_json(exclude=MATERIAL))
    tools = sum(_tokens(tool.description + json.dumps(tool.schema)) + LINE_TOKENS for tool in role.tools)
    size = FIXED_INPUT_TOKENS + fields + tools + _material_tokens(request)
    return Usage(input_tokens=size, output_tokens=worst_output(role, reasoning_tokens))


def worst_report(findings: int, reasoning_tokens: int | None) -> Usage:
    """Return an upper bound for writing a report, by the number of its findings."""
    extras = 8_000  # plan, gaps, advice and sources
    size = FIXED_INPUT_TOKENS + findings * FINDING_TOKENS + extras
    return Usage(input_tokens=size, output_tokens=worst_output(roles.SYNTHESIZER, reasoning_tokens))


def worst_output(role: RoleSpec[Any, Any], reasoning_tokens: int | None = None) -> int:
    """Return the most tokens that an endpoint may generate for a role: its output cap plus reasoning."""
    return role.output_tokens + (REASONING_TOKENS if reasoning_tokens is None else reasoning_tokens)


def max_sources(request: RoleInput) -> int:
    """Return the most sources that one analysis shows, never fewer than the protected ones."""
    return max(MAX_SOURCES, len(request.protected_source_ids))


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def _answer_tokens(answer: ToolAnswer) -> int:
    """Count the tokens of an answer; each line gets a three-token prefix, at most one per 80 characters."""
    lines = answer.text.count("\n") + len(answer.text) // 80 + 1
    return 2 * LINE_TOKENS + _tokens(answer.text) + lines * 3


def _shown_tokens(request: AnalyzeInput) -> int:
    """Return the most tokens of texts in a prompt: its room, or all of the protected sources, with signs of lines."""
    protected = [one for one in request.sources if one.id in request.protected_source_ids]
    whole = sum(_shown_characters(one.text, request.max_characters or MAX_TEXT_TOKENS) for one in protected)
    return ESTIMATE_FACTOR * request.shown_tokens + whole


def _shown_characters(text: DocumentRef | None, limit: int) -> int:
    return min(limit, text.size) if text and text.size else limit


def _material_tokens(request: RoleInput) -> int:
    """Count the tokens of the fields in `MATERIAL`, and of stored drafts and conversations, as prompts show them."""
    if isinstance(request, ToolTurnInput):
        transcript = request.transcript.size if request.transcript else 0
        return math.ceil(transcript / BYTES_PER_TOKEN) + sum(map(_answer_tokens, request.answers))
    if isinstance(request, AnalyzeInput):
        links = MAX_SHOWN_LINKS * LINE_TOKENS if isinstance(request, ExtractInput) else 0
        sources = request.sources[: max_sources(request)]
        frames = sum(
            _tokens(source.title + source.url)
            + (SNIPPET_TOKENS if source.entry else _tokens(source.snippet))
            + LINE_TOKENS
            + OUTLINE_TOKENS
            for source in sources
        )
        whole = sum(_shown_characters(source.text, request.max_characters or MAX_TEXT_TOKENS) for source in sources)
        return links + frames + min(whole, _shown_tokens(request))
    if isinstance(request, WriteInput):
        return _finding_tokens(request) + (700 * len(request.part.sections) if request.part else 0)
    if isinstance(request, UpdateInput):
        return _finding_tokens(request) + (_shown_characters(request.draft, SECTION_CHARACTERS) if request.draft else 0)
    if isinstance(request, BriefedInput):
        return len(request.hits) * SNIPPET_TOKENS
    if isinstance(request, RefineInput):
        passages = min(MAX_GAP_PASSAGES, 3 * len(request.gaps)) * (GAP_PASSAGE_CHARACTERS + LINE_TOKENS)
        return passages + _statement_tokens(request) + (DRAFT_CHARACTERS if request.draft else 0)
    if isinstance(request, ReflectOnStepInput):
        return _statement_tokens(request)
    if isinstance(request, ReflectInput):
        return _statement_tokens(request) + (SHOWN_HEADINGS_CHARACTERS if request.draft else 0)
    if isinstance(request, ClaimBatchInput):
        return math.ceil(request.bytes_shown / BYTES_PER_TOKEN)
    if isinstance(request, SummarizeInput):
        return _shown_characters(request.text, ORIGINAL_CHARACTERS)
    if isinstance(request, ReviewInput):
        return REVIEWED_CHARACTERS + request.passages_cited * REVIEWED_PASSAGE_TOKENS
    return 0


def _statement_tokens(request: FindingsInput) -> int:
    """Count the tokens of findings without their passages, one line each."""
    return sum(LINE_TOKENS + _tokens(finding.statement) for finding in request.findings)


def _finding_tokens(request: FindingsInput) -> int:
    """Count the tokens of findings with their passages, and of their sources' titles."""
    titles = sum(_tokens(source.title) + LINE_TOKENS for source in request.sources)
    findings = sum(
        LINE_TOKENS + _tokens(finding.statement) + len(finding.evidence_ids) * (QUOTE_CHARACTERS + LINE_TOKENS)
        for finding in request.findings
    )
    return titles + findings
