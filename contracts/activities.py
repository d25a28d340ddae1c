"""The activities that are no role, as data: name, type of the argument, type of the result.

Workflows call them, and `activities/` registers the implementations under the same names.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Any, Final, Generic, TypeVar

from contracts import messages
from contracts.agents import PrepareAgentRequest
from contracts.base import CompactModel
from contracts.evidence import ReportDraft
from contracts.report_updates import AppliedUpdates, DraftSteps, SplitRequest, UpdatesRequest, WithdrawRequest
from contracts.resolved import ResolvedResearch

I = TypeVar("I", bound=CompactModel)
O = TypeVar("O")


@dataclass(frozen=True)
class ActivitySpec(Generic[I, O]):
    """An activity: its name, argument and result."""

    name: str
    argument: type[I]
    result: type[O]


PREPARE_RESEARCH: Final = ActivitySpec("prepare_research", messages.PrepareRequest, messages.Prepared)
"""Resolve the request against the workers' configuration; load the session to go on from."""
PREVIEW_RESEARCH: Final = ActivitySpec("preview_research", messages.PrepareRequest, ResolvedResearch)
"""Resolve the request as `prepare_research` would, and store nothing."""
DESCRIBE_RESEARCH: Final = ActivitySpec("describe_research", messages.MetadataRequest, messages.ResearchMetadata)
"""Describe the settings of a strategy and the place of the sessions."""
PREPARE_AGENT: Final = ActivitySpec("prepare_agent", PrepareAgentRequest, str)
"""Store the resolution of an agent for its calls; the hash of its entry."""
CHECK_PROVIDERS: Final = ActivitySpec("check_providers", messages.CheckProvidersRequest, dict[str, str])
"""Find providers that the workers that search cannot use: name → reason, with the remedy."""
TAKE_TURN: Final = ActivitySpec("take_turn", messages.TurnRequest, messages.QueueTurn)
"""Ask whether a run may begin."""
SEARCH: Final = ActivitySpec("search", messages.SearchRequest, messages.SearchResponse)
"""Send one query to one provider."""
READ_SOURCE: Final = ActivitySpec("read_source", messages.ReadRequest, messages.ReadRecord)
"""Fetch, extract and archive one document."""
JOIN_REPORT: Final = ActivitySpec("join_report", messages.JoinRequest, ReportDraft)
"""Put sections that were written apart into their frame."""
APPLY_REPORT_UPDATES: Final = ActivitySpec("apply_report_updates", UpdatesRequest, AppliedUpdates)
"""Apply updates to a live report, one after the other."""
SPLIT_DRAFT: Final = ActivitySpec("split_draft", SplitRequest, DraftSteps)
"""Divide the way from one text of a live report to another into steps within the bound."""
WITHDRAW_EVIDENCE: Final = ActivitySpec("withdraw_evidence", WithdrawRequest, DraftSteps)
"""Take what cites some passages out of a live report, in steps within the bound."""
SAVE_SESSION: Final = ActivitySpec("save_session", messages.SaveRequest, NoneType)
"""Write a checkpoint."""
RENDER_REPORT: Final = ActivitySpec("render_report", messages.RenderRequest, messages.RenderedReport)
"""Number the citations and render Markdown, HTML and JSON."""
EXTRACT_CLAIMS: Final = ActivitySpec("extract_claims", messages.ExtractClaimsRequest, messages.ExtractedClaims)
"""Find the claims of a draft, and those among them for a checker."""
FINALIZE_VERIFICATION: Final = ActivitySpec(
    "finalize_verification", messages.FinalizeVerificationRequest, messages.FinalizedVerification
)
"""Put verdicts together, and choose the corrections that stay."""
APPLY_CORRECTIONS: Final = ActivitySpec("apply_corrections", messages.ApplyRequest, messages.ExtractedClaims)
"""Put proposals into a draft, and find its claims for a checker."""
READ_DOCUMENT: Final = ActivitySpec("read_document", messages.DocumentPieceRequest, messages.DocumentPiece)
"""Serve a stored document in pieces."""

ACTIVITIES: Final[tuple[ActivitySpec[Any, Any], ...]] = tuple(
    each for each in tuple(globals().values()) if isinstance(each, ActivitySpec)
)
