"""The activities that are not roles, as data: name, argument type, result type.

Workflows call them; `activities/` documents the implementations and registers them under the same names.
"""

from dataclasses import dataclass
from types import NoneType
from typing import Final, Generic, TypeVar

from contracts import messages
from contracts.agents import PrepareAgentRequest
from contracts.base import CompactModel
from contracts.evidence import ReportDraft
from contracts.notices import NoticeRequest
from contracts.report_updates import (
    AppliedUpdates,
    DraftSteps,
    LiveReportRequest,
    SplitRequest,
    UpdatesRequest,
    WithdrawRequest,
)
from contracts.resolved import ResolvedResearch
from contracts.sentences import Text

I = TypeVar("I", bound=CompactModel)
O = TypeVar("O")


@dataclass(frozen=True)
class ActivitySpec(Generic[I, O]):
    """An activity: its name, argument type and result type."""

    name: str
    argument: type[I]
    result: type[O]


PREPARE_RESEARCH: Final = ActivitySpec("prepare_research", messages.PrepareRequest, messages.Prepared)
PREVIEW_RESEARCH: Final = ActivitySpec("preview_research", messages.PrepareRequest, ResolvedResearch)
DESCRIBE_RESEARCH: Final = ActivitySpec("describe_research", messages.MetadataRequest, messages.ResearchMetadata)
PREPARE_AGENT: Final = ActivitySpec("prepare_agent", PrepareAgentRequest, str)
"""Returns the hash of the stored entry."""
CHECK_PROVIDERS: Final = ActivitySpec("check_providers", messages.CheckProvidersRequest, dict[str, Text])
"""Returns the providers that search workers cannot use: name → reason with remedy."""
TAKE_TURN: Final = ActivitySpec("take_turn", messages.TurnRequest, messages.QueueTurn)
SEARCH: Final = ActivitySpec("search", messages.SearchRequest, messages.SearchResponse)
READ_SOURCE: Final = ActivitySpec("read_source", messages.ReadRequest, messages.ReadRecord)
JOIN_REPORT: Final = ActivitySpec("join_report", messages.JoinRequest, ReportDraft)
APPLY_REPORT_UPDATES: Final = ActivitySpec("apply_report_updates", UpdatesRequest, AppliedUpdates)
SPLIT_DRAFT: Final = ActivitySpec("split_draft", SplitRequest, DraftSteps)
CHANGE_OUTLINE: Final = ActivitySpec("change_outline", LiveReportRequest, DraftSteps)
WITHDRAW_EVIDENCE: Final = ActivitySpec("withdraw_evidence", WithdrawRequest, DraftSteps)
SAVE_SESSION: Final = ActivitySpec("save_session", messages.SaveRequest, NoneType)
RENDER_REPORT: Final = ActivitySpec("render_report", messages.RenderRequest, messages.RenderedReport)
EXTRACT_CLAIMS: Final = ActivitySpec("extract_claims", messages.ExtractClaimsRequest, messages.ExtractedClaims)
FINALIZE_VERIFICATION: Final = ActivitySpec(
    "finalize_verification", messages.FinalizeVerificationRequest, messages.FinalizedVerification
)
APPLY_CORRECTIONS: Final = ActivitySpec("apply_corrections", messages.ApplyRequest, messages.ExtractedClaims)
SEND_NOTICE: Final = ActivitySpec("send_notice", NoticeRequest, NoneType)
READ_DOCUMENT: Final = ActivitySpec("read_document", messages.DocumentPieceRequest, messages.DocumentPiece)
