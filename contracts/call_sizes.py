"""Sizes of model calls: prompt limits, the expected size of a call, its likely size and its upper bound. Pure.

`worst_call` bounds one call with known input. What is reserved is mostly less: `likely_call`, by the sizes of the run's
own earlier calls. Both ends of a reservation are enforced: the activity refuses a prompt that is estimated larger, and
the call asks for no more output than is reserved.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from contracts import checking_roles, roles
from contracts.base import CompactModel
from contracts.checking_roles import ClaimBatchInput, ReviewInput
from contracts.evidence import DocumentRef, Evidence, Finding
from contracts.outcome import Usage
from contracts.recursive_roles import (
    EXTRACTOR,
    MAX_SHOWN_LINKS,
    SCANNED_CHARACTERS,
    SCANNED_TOGETHER,
    SCANNER,
    ExtractInput,
    SelfCheckInput,
)
from contracts.report_updates import REPORTER, ArrangeInput, UpdateInput
from contracts.resolved import ModelPrice
from contracts.roles import AnalyzeInput, BriefedInput, FindingsInput, GapsInput, RoleInput, RoleSpec, WriteInput
from contracts.summaries import ORIGINAL_CHARACTERS, SummarizeInput
from contracts.supervisor_roles import REFINER, RefineInput, ReflectInput
from contracts.tool_turns import ToolTurnInput
from contracts.tools import ToolAnswer

# Limits of prompts.
MAX_SOURCES: Final = 20
"""Per analysis."""
FINDINGS_PER_SUB_QUERY: Final = 5
"""Per analysis."""
QUOTE_CHARACTERS: Final = 800
"""Of each passage in a synthesizer's prompt."""
DRAFT_CHARACTERS: Final = 12_000
"""Of the draft in a refiner's prompt."""
SELF_CHECKED_CHARACTERS: Final = 12_000
"""Of the report in an executor's prompt."""
SHOWN_HEADINGS_CHARACTERS: Final = 6_000
"""Of headings and first sentences of a draft in a supervisor's prompt."""
MAX_GAP_PASSAGES: Final = 30
"""Of pages already read, in a refiner's prompt."""
GAP_PASSAGE_CHARACTERS: Final = 600
REVIEWED_CHARACTERS: Final = 40_000
"""Of the draft in a reviewer's prompt."""
USUAL_DRAFT_CHARACTERS: Final = 24_000
"""Of a draft of which nothing is known yet; those of real models had 20,000 to 35,000 with their markers."""
REVIEWED_STATEMENT_TOKENS: Final = 100
"""For each passage that a reviewed draft cites: what the check says of the statements in doubt, which are few."""
ARRANGED_CHARACTERS: Final = 24_000
"""Of the report in an arranger's prompt."""
SECTION_CHARACTERS: Final = 12_000
"""Of a section in a reporter's prompt, which shows only the end of a longer section."""
CLAIMS_PER_CALL: Final = 16
"""Of a checker or a corrector; larger batches are judged less well."""
TOKENS_PER_STATEMENT: Final = 35
"""Of a report, at least: one of 243 findings had 131 statements in 5,100 tokens, others 82 to 138 in 4,000 to 5,500."""
CLAIM_BYTES_PER_CALL: Final = 40_000
"""Of claims with their passages, for the same reason: about 16 with two or three passages each, or 8 that are shown
with further passages of the run."""
LONG_REPORT_WORDS: Final = 2_500
"""From this length on, a report is written section by section, then its frame."""
MIN_REPORT_SECTIONS = 2
MAX_REPORT_SECTIONS = 12

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
USUAL_READING: Final = Usage(input_tokens=7_500, output_tokens=2_000)
"""Of a page that one call reads: 141 readings by real models had 6,000 and 1,950 tokens in the mean, a fifth of them
with less than the whole page.
"""
PAGE_TOKENS: Final = 6_000
"""Of a typical page, shown whole."""
MIN_SHOWN_TOKENS: Final = 2_000
"""Of two short pages."""
OUTLINE_TOKENS: Final = 1_000
"""Of a source's hidden sections: at most 40 lines."""
MAX_TEXT_TOKENS: Final = 10_000_000
ESTIMATE_FACTOR: Final = 2
"""Most tokens for each estimated one (`providers.tokens.allotment`): dense text such as hashes takes up to that."""
FINDING_TOKENS: Final = 700
"""A finding with its passages, in a typical report."""
TOKENS_PER_CHARACTER: Final = 0.3
MARKER_TOKENS: Final = 30
"""Of a finding or a passage shown to a writer, beside its words: the prompt of 243 findings with 402 passages, together
159,000 characters, was estimated at 67,900 tokens, 46,600 of them for these words."""
REPORT_FRAME_TOKENS: Final = 6_000
"""Of a prompt for a report, beside its findings: instructions, plan, sub-queries and gaps."""
FIRST_INPUT_SHARE: Final = 0.5
"""Of the upper bound, for the first call of a role; a prompt that needs more is measured before it is paid."""
FIRST_INPUT_TOKENS: Final = 800
"""Beside that share: instructions and answer schema of a role are a larger part of a short prompt than of a long one.
A supervisor's first prompt has 2,800 tokens of a bound of 4,650; measuring it first takes an attempt of the call."""
INPUT_MARGIN: Final = 1.05
OUTPUT_MARGIN: Final = 0.5
"""Margins on the largest call so far: answers of a role differ more than prompts, whose size is measured. That of the
output is divided by the number of calls, down to a fifth."""
MIN_OUTPUT_TOKENS: Final = 400
LAST_UPDATES: Final = 3
"""Sections of a live report that get notes at its end, where it has no more of them."""
CORRECTED_SHARE: Final = 4
"""Calls that check a report, for each one that corrects it."""
RESERVE_MARGIN: Final = 0.1
"""Margin on the longest answer in what is reserved for a later call; one that needs more may use what is left."""
CLAIM_TOKENS: Final = 250
"""A statement with its passages, in a checker's prompt."""
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
        checking_roles.CHECKER.name: claims * CLAIM_TOKENS,
        checking_roles.CORRECTOR.name: claims * 450,
        checking_roles.REVIEWER.name: USUAL_DRAFT_CHARACTERS // BYTES_PER_TOKEN,
        roles.ANALYZER.name: shown_tokens + min(sources, MAX_SOURCES) * SNIPPET_TOKENS,
        EXTRACTOR.name: min(shown_tokens, PAGE_TOKENS) + SNIPPET_TOKENS,
        SCANNER.name: SCANNED_TOGETHER * (SCANNED_CHARACTERS // BYTES_PER_TOKEN + SNIPPET_TOKENS),
        roles.SYNTHESIZER.name: findings * FINDING_TOKENS,
        REFINER.name: DRAFT_CHARACTERS // BYTES_PER_TOKEN,
        REPORTER.name: SECTION_CHARACTERS // BYTES_PER_TOKEN,
    }
    conversation = 5_000 if role.tools else 0
    size = FIXED_INPUT_TOKENS + conversation + material.get(role.name, 0)
    return Usage(input_tokens=size, output_tokens=role.expected_output_tokens + reasoning_tokens)


def claims_per_call(sizes: Sequence[int]) -> int:
    """Return the number of claims for each call: claims of these sizes in bytes, divided evenly over a few calls."""
    calls = max(1, math.ceil(len(sizes) / CLAIMS_PER_CALL), math.ceil(sum(sizes) / CLAIM_BYTES_PER_CALL))
    return max(1, math.ceil(len(sizes) / calls))


def minimal_call(role: RoleSpec[Any, Any]) -> Usage:
    """Return the typical size of a role's call in a run that finds little: two short sources, two findings."""
    return expected_call(role, sources=2, findings=2, shown_tokens=MIN_SHOWN_TOKENS)


class CallSizes(CompactModel):
    """The sizes of a role's calls in a run so far."""

    calls: int = 0
    input_share: float = 0.0
    """Tokens of a prompt divided by its upper bound (`worst_call`): the largest share, which later ones halve."""
    output_share: float = 0.0
    """Tokens of the longest answer, including reasoning, divided by the role's expected output."""
    input_tokens: int = 0
    """Of the largest prompt."""
    excess_tokens: int = 0
    """Tokens of the longest answer beyond the role's expected output, as of a model that reasons first."""
    beyond_asked: int = 0
    """Tokens of an answer beyond the longest one that its request asked for: the most."""
    usd: float = 0.0
    """US dollars that the calls cost, all together."""
    most_usd: float = 0.0
    """US dollars that calls of these sizes cost at most: their input as estimated, at the price of written caches."""
    tokens: int = 0
    """Of prompts and answers, all together."""
    pages: int = 0
    """That the calls read for the first time."""

    def with_call(
        self,
        role: RoleSpec[Any, Any],
        bound: Usage,
        estimate: int,
        used: Usage,
        price: ModelPrice | None,
        asked: int = 0,
        pages: int = 0,
    ) -> "CallSizes":
        """Return the sizes with one more call.

        `estimate` are the tokens of its prompt as they are estimated, 0 for a call without an answer; `asked` those of
        the longest answer that it asked for, 0 if it named no size; `pages` are those that it read first.
        """
        input_tokens = estimate
        output_tokens = used.output_tokens
        most = Usage(input_tokens=estimate, output_tokens=output_tokens).max_usd(price)
        share = input_tokens / max(1, bound.input_tokens) or self.input_share
        return CallSizes(
            calls=self.calls + 1,
            input_share=round(max(share, (self.input_share + share) / 2), 4),
            output_share=max(self.output_share, round(output_tokens / role.expected_output_tokens, 4)),
            input_tokens=max(self.input_tokens, input_tokens),
            excess_tokens=max(self.excess_tokens, output_tokens - role.expected_output_tokens),
            beyond_asked=max(self.beyond_asked, output_tokens - asked if asked else 0),
            usd=round(self.usd + (used.known_cost_usd if most and estimate else 0.0), 6),
            most_usd=round(self.most_usd + (most or 0.0 if estimate else 0.0), 6),
            tokens=self.tokens + used.tokens,
            pages=self.pages + (pages if estimate else 0),
        )

    def merged(self, other: "CallSizes") -> "CallSizes":
        """Return the larger of each figure; an agent's sizes include those of its run when it was started."""
        return CallSizes(
            calls=max(self.calls, other.calls),
            input_share=max(self.input_share, other.input_share),
            output_share=max(self.output_share, other.output_share),
            input_tokens=max(self.input_tokens, other.input_tokens),
            excess_tokens=max(self.excess_tokens, other.excess_tokens),
            beyond_asked=max(self.beyond_asked, other.beyond_asked),
            usd=max(self.usd, other.usd),
            most_usd=max(self.most_usd, other.most_usd),
            tokens=max(self.tokens, other.tokens),
            pages=max(self.pages, other.pages),
        )


def likely_call(
    role: RoleSpec[Any, Any], bound: Usage, seen: Mapping[str, CallSizes], reasoning_tokens: int | None = None
) -> Usage:
    """Return a size that few calls exceed, from the sizes of the run's calls by role and a call's upper bound.

    The output of a role without calls follows that of the other roles.
    """
    own = seen.get(role.name)
    if own is None or not own.input_share:
        input_tokens = math.ceil(bound.input_tokens * FIRST_INPUT_SHARE) + FIRST_INPUT_TOKENS
    else:
        input_tokens = math.ceil(bound.input_tokens * (own.input_share * INPUT_MARGIN))
    return Usage(
        input_tokens=input_tokens,
        output_tokens=min(bound.output_tokens, likely_output(role, seen, reasoning_tokens)),
    )


def asked_output(request: RoleInput, seen: Mapping[str, CallSizes]) -> int:
    """Return the tokens of the longest answer that a request asks for, with what a model that reasons adds to each.

    Short answers of earlier calls say nothing of it: an answer with fewer tokens would be cut within its last part.
    """
    reasoning = min((sizes.excess_tokens for sizes in seen.values()), default=0)
    asked = request.asked_output_tokens
    return asked + reasoning if asked else 0


def reading_output(
    role: RoleSpec[Any, Any], request: AnalyzeInput, seen: Mapping[str, CallSizes], reasoning_tokens: int | None = None
) -> int:
    """Return the tokens of the longest answer that a reading asks for, and what its model may write before that.

    The length of a reading follows the number of findings that it asks for, not the longest one so far: that of a page
    with one paragraph is a fifth of that of a manual.
    """
    if not seen:
        before = REASONING_TOKENS if reasoning_tokens is None else reasoning_tokens
        return request.asked_output_tokens + before
    own = seen.get(role.name, CallSizes())
    return max(asked_output(request, seen), request.asked_output_tokens + own.beyond_asked)


def likely_output(role: RoleSpec[Any, Any], seen: Mapping[str, CallSizes], reasoning_tokens: int | None = None) -> int:
    """Return a number of output tokens that few answers of a role exceed."""
    own = seen.get(role.name)
    if own is None and not seen:
        reasoning = REASONING_TOKENS if reasoning_tokens is None else reasoning_tokens
        return 2 * role.expected_output_tokens + reasoning
    margin = OUTPUT_MARGIN / (1 if own is None else min(5, max(1, own.calls)))
    # Answers that were kept short by small reservations must not make the next ones smaller still.
    least = max(MIN_OUTPUT_TOKENS, role.expected_output_tokens // 2)
    return max(least, math.ceil(_usual_output(role, seen) * (1 + margin)))


def _usual_output(role: RoleSpec[Any, Any], seen: Mapping[str, CallSizes], excess: int | None = None) -> float:
    """Return the longest answer of a role so far; for a role without calls its expected one, as brief as others were.

    `excess` is added, what others wrote beyond what was expected of them; None: the most of any of them.
    """
    own = seen.get(role.name)
    if own is not None:
        return role.expected_output_tokens * own.output_share
    share = min(1.0, max(sizes.output_share for sizes in seen.values()))
    most = max(sizes.excess_tokens for sizes in seen.values())
    return role.expected_output_tokens * share + (most if excess is None else excess)


def likely_report(
    findings: Sequence[Finding],
    passages: Mapping[str, Evidence],
    further: int,
    seen: Mapping[str, CallSizes],
    reasoning_tokens: int | None,
) -> Usage:
    """Return the likely size of a call that will write a report from these findings and so many further ones."""
    most = worst_report(len(findings) + further, reasoning_tokens)
    size = _later_call(roles.SYNTHESIZER, most, seen, reasoning_tokens)
    if roles.SYNTHESIZER.name in seen:
        return size
    tokens = REPORT_FRAME_TOKENS + _writing_tokens(findings, passages) + math.ceil(further * FINDING_TOKENS / 2)
    return size.with_fields(input_tokens=min(size.input_tokens, tokens))


def _writing_tokens(findings: Sequence[Finding], passages: Mapping[str, Evidence]) -> int:
    """Return the tokens of findings with the words of their passages, each once, as a writer is likely shown them."""
    cited = {name for finding in findings for name in finding.evidence_ids if name in passages}
    characters = sum(len(finding.statement) for finding in findings)
    characters += sum(min(QUOTE_CHARACTERS, passages[name].end - passages[name].start) for name in cited)
    return math.ceil(characters * TOKENS_PER_CHARACTER) + MARKER_TOKENS * (len(findings) + len(cited))


def likely_updates(seen: Mapping[str, CallSizes], reasoning_tokens: int | None, sections: int) -> Usage:
    """Return the likely size of the calls that will put the last notes into the sections of a live report, together."""
    expected = expected_call(REPORTER, findings=FINDINGS_PER_SUB_QUERY)
    bound = Usage(input_tokens=expected.input_tokens, output_tokens=worst_output(REPORTER, reasoning_tokens))
    size = _later_call(REPORTER, bound, seen, reasoning_tokens)
    own = seen.get(REPORTER.name)
    tokens_in = own.input_tokens if own is not None and own.input_tokens else size.input_tokens
    updates = max(LAST_UPDATES, sections) + 1  # the call that assigns the notes to the sections is about as large
    return Usage(input_tokens=updates * tokens_in, output_tokens=updates * size.output_tokens)


def likely_check(seen: Mapping[str, CallSizes], reasoning_tokens: int | None) -> Usage:
    """Return the likely size of a later call of the checker."""
    claims = CLAIMS_PER_CALL * CLAIM_TOKENS
    bound = Usage(
        input_tokens=FIXED_INPUT_TOKENS + claims, output_tokens=worst_output(checking_roles.CHECKER, reasoning_tokens)
    )
    return _later_call(checking_roles.CHECKER, bound, seen, reasoning_tokens)


def likely_cost_share(seen: Mapping[str, CallSizes]) -> float:
    """Return what the run's calls cost, divided by what they could have cost at most; 1 before the first."""
    most = sum(sizes.most_usd for sizes in seen.values())
    if not most:
        return 1.0
    return min(1.0, sum(sizes.usd for sizes in seen.values()) / most)


def likely_statements(findings: int, report: Usage) -> int:
    """Return the most statements that a report likely has: one of each finding, as far as its words suffice."""
    return min(findings, report.output_tokens // TOKENS_PER_STATEMENT)


def likely_checks(statements: int) -> int:
    """Return the likely number of calls that check a report of so many statements.

    The last two look again at what is in doubt, and check what was corrected.
    """
    return -(-statements // CLAIMS_PER_CALL) + 2


def likely_correction(seen: Mapping[str, CallSizes], reasoning_tokens: int | None) -> Usage:
    """Return the likely size of a later call of the corrector."""
    role = checking_roles.CORRECTOR
    expected = expected_call(role, findings=CLAIMS_PER_CALL)
    bound = Usage(input_tokens=expected.input_tokens, output_tokens=worst_output(role, reasoning_tokens))
    return _later_call(role, bound, seen, reasoning_tokens)


def likely_corrections(statements: int) -> int:
    """Return the likely number of calls that correct a report: of real runs, one to four for 80 to 130 statements."""
    return -(-statements // (CORRECTED_SHARE * CLAIMS_PER_CALL))


def _later_call(
    role: RoleSpec[Any, Any], bound: Usage, seen: Mapping[str, CallSizes], reasoning_tokens: int | None
) -> Usage:
    """Return the likely size of a call to reserve for, with less margin than one that is made now."""
    likely = likely_call(role, bound, seen, reasoning_tokens)
    if not seen:
        return likely
    # A model that reasons does so for every role; an answer that was longer for its own reasons says nothing here.
    excess = min(sizes.excess_tokens for sizes in seen.values())
    output = math.ceil(_usual_output(role, seen, excess) * (1 + RESERVE_MARGIN))
    return likely.with_fields(output_tokens=min(likely.output_tokens, max(MIN_OUTPUT_TOKENS, output)))


def worst_call(role: RoleSpec[Any, Any], request: RoleInput, reasoning_tokens: int | None = None) -> Usage:
    """Return an upper bound for one call with this input: its fields as text, and the stored text in its prompt."""
    fields = _tokens(request.compact_json(exclude=MATERIAL))
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


def pages_read_first(request: RoleInput) -> int:
    """Return how many pages a call reads that no call has read; none if it is shown sections that were asked for."""
    if not isinstance(request, AnalyzeInput) or request.wanted or request.for_gaps:
        return 0
    return sum(not source.again for source in request.sources)


def max_sources(request: RoleInput) -> int:
    """Return the most sources that one analysis shows, never fewer than the protected ones; a last look at gaps
    chooses among all pages of the run.
    """
    if isinstance(request, AnalyzeInput) and request.for_gaps:
        return len(request.sources)
    return max(MAX_SOURCES, len(request.protected_source_ids))


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def _answer_tokens(answer: ToolAnswer) -> int:
    """Count the tokens of an answer; each line gets a three-token prefix, at most one per 80 characters."""
    text = answer.whole
    lines = text.count("\n") + len(text) // 80 + 1
    return 2 * LINE_TOKENS + _tokens(text) + lines * 3


def _shown_tokens(request: AnalyzeInput) -> int:
    """Return the most tokens of texts in a prompt: its room, or all of the protected sources, with signs of lines."""
    protected = [source for source in request.sources if source.id in request.protected_source_ids]
    whole = sum(_shown_characters(source.text, request.max_characters or MAX_TEXT_TOKENS) for source in protected)
    return ESTIMATE_FACTOR * request.shown_tokens + whole


def _shown_characters(text: DocumentRef | None, limit: int) -> int:
    if text and text.size:
        return min(limit, text.size)
    return limit


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
            + (0 if request.for_gaps else OUTLINE_TOKENS)
            for source in sources
        )
        whole = sum(_shown_characters(source.text, request.max_characters or MAX_TEXT_TOKENS) for source in sources)
        return links + frames + min(whole, _shown_tokens(request))
    if isinstance(request, WriteInput):
        return _finding_tokens(request) + (700 * len(request.part.sections) if request.part else 0)
    if isinstance(request, UpdateInput):
        return _finding_tokens(request) + (_shown_characters(request.draft, SECTION_CHARACTERS) if request.draft else 0)
    if isinstance(request, ArrangeInput):
        shown = _shown_characters(request.draft, ARRANGED_CHARACTERS) if request.draft else 0
        return _statement_tokens(request) + shown
    if isinstance(request, BriefedInput):
        return len(request.hits) * SNIPPET_TOKENS
    if isinstance(request, GapsInput):
        shown = _statement_tokens(request)
        if request.read_sources:
            shown += min(MAX_GAP_PASSAGES, 3 * len(request.gaps)) * (GAP_PASSAGE_CHARACTERS + LINE_TOKENS)
        if isinstance(request, RefineInput) and request.draft:
            shown += _shown_characters(request.draft, DRAFT_CHARACTERS)
        if isinstance(request, SelfCheckInput) and request.draft:
            shown += SELF_CHECKED_CHARACTERS
        return shown
    if isinstance(request, ReflectInput):
        return _statement_tokens(request) + (SHOWN_HEADINGS_CHARACTERS if request.draft else 0)
    if isinstance(request, ClaimBatchInput):
        return math.ceil(request.bytes_shown / BYTES_PER_TOKEN)
    if isinstance(request, SummarizeInput):
        return _shown_characters(request.text, ORIGINAL_CHARACTERS)
    if isinstance(request, ReviewInput):
        draft = _shown_characters(request.draft, REVIEWED_CHARACTERS)
        return draft + request.passages_cited * REVIEWED_STATEMENT_TOKENS
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
