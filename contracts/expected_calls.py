"""How large model calls are: the sizes that prompts keep to, and the estimate and the bound that follow. Pure.

All figures of the estimate err high. `expected_call` is what a role usually needs, for the estimate. `worst_call` is a
bound for one call whose input is known, for the ledger: nothing that is billed for the call exceeds it.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from contracts import checking_roles, roles
from contracts.checking_roles import CheckInput, CorrectInput, ReviewInput
from contracts.evidence import Finding
from contracts.resolved import ModelPrice
from contracts.roles import (
    AnalyzeInput,
    BriefedInput,
    RefineInput,
    RoleInput,
    RoleSpec,
    SourceExtract,
    WriteInput,
)
from contracts.tool_turns import ToolTurnInput
from contracts.tools import ANSWER_CHARACTERS, ToolAnswer

MILLION: Final = 1_000_000

FIXED_INPUT_TOKENS: Final = 4_000
"""A role's prompt (at most about 3,200 characters), the schema of its answer (2,400), and what an endpoint adds."""
BYTES_PER_TOKEN: Final = 3
"""Of what is sent as text: English has about four bytes per token, Chinese three."""
CONTENT_CHARACTERS: Final = 1_000
"""Characters of each source that the analyzer is shown; one token each, which no script exceeds by much."""
MOST_SOURCES: Final = 20
"""Sources that one analysis is shown."""
SOURCE_HEAD_TOKENS: Final = 300
"""Title, address and snippet of a source."""
SNIPPET_TOKENS: Final = 300
"""A snippet that is not known here: at most 300 characters are shown, one token each."""
QUOTE_CHARACTERS: Final = 400
"""Of each passage that the writer is shown; one token each."""
DRAFT_CHARACTERS: Final = 6_000
"""Of the draft that the refiner is shown; one token each."""
SECTION_TOKENS: Final = 700
"""The beginning of a section, as the writer of the frame is shown it."""
FINDING_TOKENS: Final = 600
"""A finding with its passages, as the writer is shown it."""
REPORT_EXTRAS_TOKENS: Final = 8_000
"""Plan, gaps, advice and sources beside the findings of a report."""
LINE_TOKENS: Final = 60
"""Ids, marks and labels of a source, a finding or a passage."""
FINDINGS_PER_SUB_QUERY: Final = 5
"""The most that one analysis may give."""
REASONING_TOKENS: Final = 8_000
"""Room for reasoning that the answer does not show, billed as output and added to a role's cap by the engine."""

LONG_REPORT_WORDS: Final = 2_500
"""From this length on a model writes a report section by section, and then its frame."""
FEWEST_REPORT_SECTIONS: Final = 2
MOST_REPORT_SECTIONS: Final = 12
CONVERSATION_TOKENS: Final = 5_000
"""What a role with tools has said and heard in the middle of its work."""
SIGNED_CHARACTERS: Final = 80
"""Of a line of data, at least, where a longer one is broken."""
SIGN_TOKENS: Final = 3
SIGNS_SHARE: Final = 0.25
"""Of a stored answer, for the signs before its lines."""

CLAIMS_PER_CALL: Final = 16
"""Of a checker or a corrector, at most: more at once are judged less well."""
CLAIM_TOKENS: Final = 250
"""A statement with its passages and their context, as a checker is usually shown it."""
DOUBTFUL_TOKENS: Final = 450
"""The same for a corrector, with passages that may be cited instead."""
REVIEWED_CHARACTERS: Final = 24_000
"""Of the draft that a reviewer is shown."""

COUNTED_APART: Final = {"claims", "sources", "findings", "evidence", "draft", "term_documents"}
"""Fields of a role's input that its prompt shows otherwise than they are written, or not at all."""


@dataclass(frozen=True)
class CallSize:
    """Tokens of one call."""

    input_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """Both together."""
        return self.input_tokens + self.output_tokens

    def most_usd(self, price: ModelPrice | None) -> float | None:
        """The most that the call can cost, by the highest price of its tier's tokens; None without a known price."""
        if price is None:
            return None
        return (self.input_tokens * price.input + self.output_tokens * price.output) / MILLION


def expected_input(role: str, *, sources: int = 0, findings: int = 0, claims: int = 0) -> int:
    """Tokens that a role is usually sent.

    `sources` are those of one sub-query, of which an analysis sees `MOST_SOURCES`; `findings` are those of a report,
    `claims` those of one call of a checker.
    """
    if role == checking_roles.CHECKER.name:
        return FIXED_INPUT_TOKENS + claims * CLAIM_TOKENS
    if role == checking_roles.CORRECTOR.name:
        return FIXED_INPUT_TOKENS + claims * DOUBTFUL_TOKENS
    if role == checking_roles.REVIEWER.name:
        return FIXED_INPUT_TOKENS + REVIEWED_CHARACTERS // BYTES_PER_TOKEN
    if role == roles.ANALYZER.name:
        return FIXED_INPUT_TOKENS + min(sources, MOST_SOURCES) * (CONTENT_CHARACTERS + SOURCE_HEAD_TOKENS)
    if role == roles.SYNTHESIZER.name:
        return FIXED_INPUT_TOKENS + findings * FINDING_TOKENS
    if role == roles.REFINER.name:
        return FIXED_INPUT_TOKENS + DRAFT_CHARACTERS
    return FIXED_INPUT_TOKENS


def expected_call(
    role: RoleSpec[Any, Any], *, sources: int = 0, findings: int = 0, reasoning_tokens: int = 0
) -> CallSize:
    """What one call of a role usually needs, with a model that generates so many tokens unseen."""
    output = role.expected_output_tokens + reasoning_tokens
    claims = min(findings, CLAIMS_PER_CALL)
    said = CONVERSATION_TOKENS if role.tools else 0
    return CallSize(expected_input(role.name, sources=sources, findings=findings, claims=claims) + said, output)


def reasoning_room(known: int | None) -> int:
    """Most tokens that a model may generate unseen in one call, as far as it is known."""
    return REASONING_TOKENS if known is None else known


def worst_output(role: RoleSpec[Any, Any], reasoning_tokens: int | None = None) -> int:
    """Most tokens that an endpoint may generate for a role: the role's cap and the room for reasoning."""
    return role.output_tokens + reasoning_room(reasoning_tokens)


def worst_call(role: RoleSpec[Any, Any], request: RoleInput, reasoning_tokens: int | None = None) -> CallSize:
    """The bound for one call with this input: its fields as text, and the stored text that its prompt will hold."""
    if isinstance(request, ToolTurnInput):
        return CallSize(_turn(role, request), worst_output(role, reasoning_tokens))
    fields = request.model_dump_json(exclude=COUNTED_APART)
    return CallSize(FIXED_INPUT_TOKENS + _tokens(fields) + _material(request), worst_output(role, reasoning_tokens))


def _turn(role: RoleSpec[Any, Any], request: ToolTurnInput) -> int:
    """Most tokens that a tool turn is sent: what was said so far, the new answers with their marks, and the tools."""
    said = request.transcript.size if request.transcript else 0
    tools = sum(_tokens(tool.description + json.dumps(tool.schema())) + LINE_TOKENS for tool in role.tools)
    answers = sum(_answer(answer) for answer in request.answers)
    fields = request.model_dump_json(exclude={"answers"})
    return FIXED_INPUT_TOKENS + tools + _tokens(fields) + math.ceil(said / BYTES_PER_TOKEN) + answers


def _answer(answer: ToolAnswer) -> int:
    """Each line of an answer begins with a sign; of a stored one the lines are not known, only how long they are."""
    size = answer.size or ANSWER_CHARACTERS
    stored = math.ceil(size / BYTES_PER_TOKEN * (1 + SIGNS_SHARE)) if answer.entry else 0
    lines = answer.text.count("\n") + len(answer.text) // SIGNED_CHARACTERS + 1
    return 2 * LINE_TOKENS + stored + _tokens(answer.text) + lines * SIGN_TOKENS


def worst_report(findings: int, reasoning_tokens: int | None = None) -> CallSize:
    """The bound for writing a report that is still to come, from how many findings it will be written."""
    known = expected_input(roles.SYNTHESIZER.name, findings=findings)
    return CallSize(known + REPORT_EXTRAS_TOKENS, worst_output(roles.SYNTHESIZER, reasoning_tokens))


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def _material(request: RoleInput) -> int:
    """Tokens of sources, findings, passages and drafts as prompts show them."""
    if isinstance(request, AnalyzeInput):
        return sum(_source(source) for source in request.sources[:MOST_SOURCES])
    if isinstance(request, WriteInput):
        titles = sum(_tokens(source.title) + LINE_TOKENS for source in request.sources)
        sections = len(request.part.sections) if request.part else 0
        return titles + sections * SECTION_TOKENS + sum(_finding(finding) for finding in request.findings)
    if isinstance(request, BriefedInput):
        return len(request.hits) * SNIPPET_TOKENS
    if isinstance(request, RefineInput) and request.draft is not None:
        return DRAFT_CHARACTERS
    if isinstance(request, CheckInput | CorrectInput):
        return math.ceil(request.bytes_shown / BYTES_PER_TOKEN)
    if isinstance(request, ReviewInput):
        return REVIEWED_CHARACTERS
    return 0


def _source(source: SourceExtract) -> int:
    snippet = SNIPPET_TOKENS if source.entry else _tokens(source.snippet)
    return _tokens(source.title + source.url) + snippet + LINE_TOKENS + CONTENT_CHARACTERS


def _finding(finding: Finding) -> int:
    """The statement is repeated for each of its passages."""
    passages = len(finding.evidence_ids)
    return LINE_TOKENS + passages * (_tokens(finding.statement) + QUOTE_CHARACTERS + LINE_TOKENS)
