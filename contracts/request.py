"""The request of a person. Only `query` is needed; None means: the preset of strategy × depth."""

import calendar
from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from contracts import names
from contracts.base import Contract, StrictContract
from contracts.texts import DOMAIN, LANGUAGE, NAME, PROVIDER, REPORT_LANGUAGE, TIMEFRAME, shorten
from contracts.vocabulary import GatePolicy, JudgeMode, ThinkMode

Name = Annotated[str, StringConstraints(pattern=NAME.pattern)]


class RequestPart(StrictContract):
    """A part of a request in which `null` means the default."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in data.items() if value is not None or name not in optional}


class Mode(StrEnum):
    """Effort spent on a question."""

    AUTO = "auto"
    DIRECT = "direct"
    QUICK = "quick"
    DEEP = "deep"


class Depth(StrEnum):
    """Depth of the research; `auto` is `medium`."""

    AUTO = "auto"
    LIGHT = "light"
    MEDIUM = "medium"
    EXTENDED = "extended"


class Clarify(StrEnum):
    """Questions to a person about the meaning of the question."""

    OFF = "off"
    AUTO = "auto"
    REQUIRED = "required"


class Approve(StrEnum):
    """Approval of the plan by a person."""

    NONE = "none"
    PLAN = "plan"
    PHRASE = "phrase"


class Verify(StrEnum):
    """Extent of the check of claims against their evidence."""

    OFF = "off"
    LIGHT = "light"
    FULL = "full"


class Models(RequestPart):
    """Model names by tier; None means: as configured."""

    simple: str | None = Field(default=None, min_length=1, max_length=200)
    analytical: str | None = Field(default=None, min_length=1, max_length=200)
    complex: str | None = Field(default=None, min_length=1, max_length=200)


class SearchPolicy(StrEnum):
    """Share of several providers in a query."""

    FAN_OUT = "fan_out"
    """All providers, with their hits interleaved."""
    FIRST_SUCCESS = "first_success"
    """One provider after another, per source type, until one has hits."""


class SourceType(StrEnum):
    """Kind of source to search for on the web."""

    WEB = "web"
    ACADEMIC = "academic"
    NEWS = "news"


ProviderName = Annotated[str, StringConstraints(pattern=PROVIDER.pattern)]
Domain = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=253, pattern=DOMAIN.pattern)]
"""A host name, with everything below it."""


ProtectedSource = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_048)]
Exclusion = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class SearchOptions(RequestPart):
    """Search providers and their use; None means: as configured."""

    providers: list[ProviderName] | None = Field(default=None, min_length=1, max_length=10)
    policy: SearchPolicy | None = None
    max_results_per_query: int | None = Field(default=None, ge=1, le=50)
    source_types: list[SourceType] | None = Field(default=None, min_length=1, max_length=3)
    domains_allow: list[Domain] | None = Field(default=None, max_length=50)
    domains_deny: list[Domain] | None = Field(default=None, max_length=50)


class Constraints(RequestPart):
    """Constraints on the answer."""

    language: str | None = Field(default=None, pattern=LANGUAGE.pattern)
    """ISO 639 code of the language for web searches."""
    audience: str | None = Field(default=None, min_length=1, max_length=200)
    """Audience that a model writes for."""
    region: str | None = Field(default=None, min_length=1, max_length=200)
    """Region of the world that the question is about; used by models."""
    timeframe: str | None = Field(default=None, pattern=TIMEFRAME.pattern)
    """The last `day`, `week`, `month` or `year`, or `FROM..TO` in ISO dates; without `TO`, until today."""


MAX_TOKENS: Final = 10_000_000_000
"""Most tokens that a request may name: more than the largest run can use."""
MAX_USD: Final = 1_000_000.0
"""Most US dollars that a request may name."""


class Limits(RequestPart):
    """Hard limits of a run; None means: the preset."""

    max_iterations: int | None = Field(default=None, ge=1, le=20)
    max_sub_queries: int | None = Field(default=None, ge=1, le=20)
    max_sources: int | None = Field(default=None, ge=1, le=500)
    max_sources_per_query: int | None = Field(default=None, ge=1, le=100)
    max_source_characters: int | None = Field(default=None, ge=200, le=60_000)
    """Longest text of each source that a model may be shown; by default, as much as its call has room for."""
    analysis_tokens: int | None = Field(default=None, ge=1_000, le=500_000)
    """Tokens of sources' texts that one analysis may be shown."""
    reading_tokens: int | None = Field(default=None, ge=1_000, le=5_000_000)
    """Tokens of sources' texts that all analyses of one iteration may be shown."""
    max_parallel: int | None = Field(default=None, ge=1, le=50)
    max_parallel_reads: int | None = Field(default=None, ge=1, le=200)
    deadline_seconds: float | None = Field(default=None, ge=1, le=86_400)
    max_model_calls: int | None = Field(default=None, ge=0, le=10_000)
    max_tokens: int | None = Field(default=None, ge=0, le=MAX_TOKENS)
    max_cost_usd: float | None = Field(default=None, ge=0, le=MAX_USD)
    max_searches: int | None = Field(default=None, ge=1, le=10_000)
    """Searches of all providers together; those of a thread's own sources do not count."""
    min_steps: int | None = Field(default=None, ge=1, le=50)
    max_steps: int | None = Field(default=None, ge=1, le=50)
    max_searches_per_step: int | None = Field(default=None, ge=1, le=20)
    max_reads_per_step: int | None = Field(default=None, ge=1, le=100)
    agent_seconds: float | None = Field(default=None, ge=1, le=86_400)
    """Time after which an agent stops working and reports its findings."""
    agent_wait_seconds: float | None = Field(default=None, ge=1, le=86_400)
    """Time after which the run continues without the agent."""
    max_update_characters: int | None = Field(default=None, ge=200, le=8_000)
    """Limit of inserted plus removed characters per update of a live report (elsewhere `max_report_update_size`,
    `max_update_size` or `patch_chunk_size`)."""
    max_nodes: int | None = Field(default=None, ge=1, le=40)
    """Executors of one query's tree, at all levels."""
    max_leaves: int | None = Field(default=None, ge=1, le=20)
    """Per executor, each time it plans its work."""
    max_corrections: int | None = Field(default=None, ge=0, le=5)
    """Per executor."""
    max_levels: int | None = Field(default=None, ge=1, le=3)
    """Longest path of executors in a tree."""
    max_wait_seconds: float | None = Field(default=None, ge=1, le=2_592_000)
    """Longest wait for a person, each time; it does not count against the run's deadline."""


class Gates(RequestPart):
    """Checks, and questions to a person."""

    policy: GatePolicy = GatePolicy.STRICT
    think: ThinkMode | None = None
    """None: `auto` if the run has a model, else only the gate's rules."""
    clarify: Clarify | None = None
    """None, here and in the next field: the strategy's preset; without one, no person is asked."""
    approve: Approve | None = None
    hook: Name | None = None

    @property
    def clarifies(self) -> bool:
        """Return true if a person may be asked to clarify the question."""
        return self.clarify not in (None, Clarify.OFF)

    @property
    def requires_approval(self) -> bool:
        """Return true if a person must approve the plan."""
        return self.approve not in (None, Approve.NONE)


class Checks(RequestPart):
    """Parts of a full verification besides judging; None means: by depth and engine."""

    correct: bool | None = None
    """True if failing citations and sentences are corrected and checked again."""
    review: JudgeMode | None = None
    """Reviewer of the first draft, which is revised once if it scores too low; rules count answered parts, citations,
    sources and sentence lengths."""


SAME_LANGUAGE: Final = "same as question"
MAX_QUERY_CHARACTERS: Final = 10_000
SectionTitle = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]


class Output(RequestPart):
    """The form of the report."""

    language: str = Field(default=SAME_LANGUAGE, pattern=REPORT_LANGUAGE.pattern)
    """ISO 639 code of the report's language, for models; the extractive engine quotes sources in their own."""
    target_words: int | None = Field(default=None, ge=100, le=100_000)
    sections: list[SectionTitle] | None = Field(default=None, min_length=1, max_length=20)
    """Headings for a model's report, in this order."""
    citation_style: Literal["numeric", "link"] = "numeric"


class Turn(RequestPart):
    """An earlier question with its answer."""

    question: str = Field(max_length=10_000)
    answer: str = Field(max_length=20_000)


class SharedSettings(RequestPart):
    """Settings that a run takes from its request unchanged."""

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY_CHARACTERS)]
    strategy: Name = "supervisor"
    """Name of a declared strategy (`contracts.strategies`)."""
    mode: Mode = Mode.AUTO
    constraints: Constraints = Constraints()
    output: Output = Output()
    on_deadline: Literal["report", "abort"] = "report"
    system_prompt: str | None = Field(default=None, max_length=20_000)
    context: list[Turn] = Field(default=[], max_length=5)
    exclude: list[Exclusion] = Field(default=[], max_length=50)
    """Words, names and domains barred from sources and passages."""
    metadata: dict[str, Any] | None = None
    tenant: Name = "default"
    priority: int = Field(default=3, ge=1, le=5)


class ResearchRequest(SharedSettings):
    """The one argument of the workflow `deep-research`."""

    depth: Depth = Depth.AUTO
    engine: Literal["auto", "model", "extractive"] = "auto"
    """`auto` is a model if one is configured."""
    models: Models = Models()
    search: SearchOptions = SearchOptions()
    corpus: Name | None = None
    web: bool | None = None
    protected_sources: list[ProtectedSource] = Field(default=[], max_length=50)
    """URLs of pages and paths of corpus documents that are read first and never dropped."""
    limits: Limits = Limits()
    gates: Gates = Gates()
    verify: Verify | None = None
    checks: Checks = Checks()
    follow_up_of: Name | None = None
    continue_from: Name | None = Field(
        default=None, description="a stored session to go on from; set by `research resume` and by continue-as-new"
    )
    refresh: bool = Field(
        default=False, description="read every source of the finished run again; set by `research refresh`"
    )


DAYS: Final = {"day": 1, "week": 7, "month": 31, "year": 366}


def published_between(timeframe: str | None, today: str) -> tuple[str | None, str | None]:
    """Return first and last day as ISO dates, None for no bound; `today` is the date of the run."""
    if timeframe is None:
        return None, None
    if timeframe in DAYS:
        return (date.fromisoformat(today) - timedelta(days=DAYS[timeframe])).isoformat(), None
    first, _, last = timeframe.partition("..")
    return _day(first, 1, 1), _day(last, 12, 31) if last else None


def _day(text: str, month: int, day: int) -> str:
    """Return the day, or the nearest valid one; `month` and `day` complete a year or a month."""
    parts = [int(part) for part in text.split("-")]
    year, month, day = [*parts, *(month, day)[len(parts) - 1 :]]
    year = min(9999, max(1, year))
    month = min(12, max(1, month))
    return date(year, month, min(max(1, day), calendar.monthrange(year, month)[1])).isoformat()


EARLIER_PROVIDER: Final = "earlier"
"""Name of the provider that offers the sources of the thread above a run."""
SUMMARY_CHARACTERS: Final = 4_000


class FollowUp(Contract):
    """The earlier run of a follow-up question, and the thread above it, which runs of earlier versions lack."""

    research_id: str
    query: str
    summary: str = ""
    """Summary of its report, for the planner."""
    thread: list[str] = []
    """Ids of the runs above it in the thread, the first question first."""
    turns: list[Turn] = []
    """Questions of these runs with what was found on each, oldest first, for the planner."""
    answered: int = 1
    """Number of runs of the thread whose evidence is offered."""
    entry: str = ""
    """Hash of the stored entry with the sources of these runs as hits; empty if this run can use none."""
    sources: int = 0
    """Number of sources offered."""


def run_memo(request: ResearchRequest) -> dict[str, Any]:
    """Return the memo that the server shows with a run's id, from its start."""
    question = shorten(request.query, names.MEMO_CHARACTERS)
    return {
        names.QUESTION_MEMO: question,
        names.STRATEGY_MEMO: request.strategy,
        names.TENANT_MEMO: request.tenant,
    }
