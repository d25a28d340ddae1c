"""The only mutable models: the state of a run and its parts, owned by its workflow."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Self

from pydantic import ConfigDict, Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer, model_validator

from contracts.addresses import sub_query_id
from contracts.agents import AgentRecord, AgentTask, Ledger
from contracts.base import CheckedModel
from contracts.call_sizes import CallSizes
from contracts.checking import Verification
from contracts.defects import MAX_DEFECTS, Defect
from contracts.evidence import Candidate, DocumentRef, Evidence, Finding, Gap, QueryRecord, ReportDraft, Source, keys_of
from contracts.exclusions import is_excluded
from contracts.names import SCHEMA_VERSION
from contracts.outcome import (
    AgentDecision,
    Citation,
    Counts,
    Ending,
    Event,
    GateResult,
    Guidance,
    Pause,
    ResearchResult,
    Usage,
)
from contracts.plan import WITHOUT_SEARCH, Clarification, Plan, PlanNode, Waiting
from contracts.resolved import ResolvedResearch
from contracts.sentences import AS_DATA, Text
from contracts.state_changes import pack_json, unpack_json
from contracts.supervisor_roles import ReflectInput, SupervisorAnswer
from contracts.tokens import MAX_SHORTENED_CALLS, CallFidelity, FidelityTotals
from contracts.vocabulary import GapStatus, NodeKind, NodeStatus, Quality, RunStatus, SourceStatus

PACKED_EVENTS = 400
"""Events of a run: all that its state has are saved when it ends or continues as new, and read when it is resumed."""


class Position(CheckedModel):
    """The progress of a strategy, persisted between units.

    Each strategy extends this model; no code outside the strategy uses its other fields.
    """

    model_config = ConfigDict(extra="allow")

    NAME: ClassVar[str]

    strategy: str
    """Name of the strategy; without a default, so no serialization drops it."""

    @classmethod
    def of(cls, state: "ResearchState") -> Self:
        """Return a state's position as this type and store it in the state, so changes to it change the state."""
        state.work.position = position = cls.read(state)
        return position

    @classmethod
    def read(cls, state: "ResearchState") -> Self:
        """Return a state's position as this type, without changing the state; the initial one if it has none."""
        current = state.work.position
        if isinstance(current, cls):
            return current
        return cls.model_validate(current.model_dump() if current else {"strategy": cls.NAME})


class Unit(CheckedModel):
    """A finished unit of work."""

    name: str
    can_change: bool = True
    """True if repeating it would have a different input."""
    iteration_ended: bool = False
    """True if continue-as-new is possible after it."""


class OpenPause(CheckedModel):
    """The open pause of a finished unit; a run that ends before it is concluded does not repeat the unit."""

    unit: Unit
    gate: GateResult | None = None
    question: ReflectInput | None = None
    """Request to the reflecting model; None if none reflects."""
    reflection: SupervisorAnswer | None = None
    """Its answer, which takes effect when the pause is concluded, or after the next unit."""
    beside: bool = False
    """True if the next unit need not wait for the answer: both are done at the same time."""


class Refresh(CheckedModel):
    """A refresh of a finished run: its sources are read again, and the report is compared with the previous one."""

    before: DocumentRef
    """`report.json` before the refresh."""
    draft: str = ""
    """Hash of the report's text at that time."""
    due: list[str] = []
    """Ids of sources still to be read again."""
    unwritten: list[str] = []
    """Ids of findings that the report did not cite before the refresh; they remain uncited."""
    lost: dict[str, str] = {}
    """Source id → reason why it could not be read again; its archived text remains valid."""


class StatePart(CheckedModel):
    """A part of the state of a run; changed in place by its workflow."""

    model_config = ConfigDict(extra="ignore", validate_assignment=False)


class WorkState(StatePart):
    """The work of a run: its request, its plan, how far it is, and what went wrong."""

    resolved: ResolvedResearch | None = None
    resolved_entry: str = ""
    """Hash of its notebook entry; empty if there is none."""
    status: RunStatus = RunStatus.CREATED
    phase: str | None = None
    iteration: int = 1
    position: SerializeAsAny[Position] | None = None
    """The strategy's position; None before its first unit."""
    open_pause: OpenPause | None = None
    pending_reflection: OpenPause | None = None
    """A concluded pause whose reflection is made beside the next unit; while it is set, an `open_pause` is that of this
    unit, not evaluated yet."""
    plan: Plan = Plan()
    task: AgentTask | None = None
    """Task, if this is the state of an agent; None for a top-level run."""
    agents: list[AgentRecord] = []
    """Every agent of this run, in task order."""
    analyzed_sub_queries: list[str] = []
    """Sub-queries whose sources were analyzed; a resumed run skips them."""
    hasty_analyses: list[str] = []
    """Sub-queries whose analysis failed or ran without the run's model; a resumed run repeats them."""
    pages_left: dict[str, list[str]] = {}
    """Of these, the ids of the pages to read again, by sub-query; absent: all that it found."""
    gaps_looked_at: list[str] = []
    """Gaps for which all pages were looked at once more, before a report."""
    lost_providers: dict[str, Text] = {}
    """Search providers that failed during the run, with the reason; they are no longer used."""
    gates: list[GateResult] = []
    pause: Pause | None = None
    refresh: Refresh | None = None
    """The latest refresh, until the run is resumed for another reason."""
    failed_branches: list[Text] = []
    degraded: list[Text] = []
    limitations: list[Text] = []
    last_failure: Text = ""
    defects: list[Defect] = []
    """Unforeseen errors of this run and its agents since it was last started or resumed, at most `MAX_DEFECTS`."""
    ending: Ending | None = None
    """None until the run ends."""
    result: ResearchResult | None = None

    def note_defects(self, defects: Sequence[Defect]) -> None:
        """Record unforeseen errors, each once."""
        self.defects = list({defect.place: defect for defect in [*self.defects, *defects]}.values())[:MAX_DEFECTS]

    def pending_sub_queries(self) -> list[PlanNode]:
        """Return the sub-queries that have not run yet or were interrupted."""
        waiting = (NodeStatus.PENDING, NodeStatus.EXECUTING)
        return [query for query in self.plan.sub_queries if query.status in waiting]


class EvidenceState(StatePart):
    """The evidence that a run found, and the report that it supports.

    Details of sources, findings and evidence are in notebook entries; quotes, drafts and page text are in separate
    documents. All of them are in the content store.
    """

    notebook: list[str] = []
    """Hashes of all stored entries of this run, in order of arrival."""
    ledger: Ledger = Ledger()
    """Queries and pages of the run before this agent started."""
    sources: dict[str, Source] = {}
    aliases: dict[str, str] = {}
    """Canonical URL → source id, for deduplication across iterations."""
    candidates: list[Candidate] = []
    """Every hit of this iteration's searches, read or not."""
    passed_over: list[Candidate] = []
    """Unread hits of earlier iterations and of agents."""
    query_ledger: list[QueryRecord] = []
    """Every query to every provider, answered or not."""
    duplicates: int = 0
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    spellings: dict[str, str] = {}
    passages: dict[str, Evidence] = {}
    """Quoted passages by evidence id; `evidence` in JSON."""
    findings: list[Finding] = []
    gaps: list[Gap] = []
    draft: ReportDraft | None = None
    revisions: list[str] = []
    """Hashes of the latest texts of a live report, oldest first (`contracts.report_updates.MAX_REVISIONS`)."""
    verification: Verification = Verification()
    report_improvements: list[str] = []
    citations: list[Citation] = []

    def unaddressed_gaps(self) -> list[Gap]:
        """Return the gaps not closed by later evidence."""
        return [gap for gap in self.gaps if gap.status is GapStatus.OPEN]

    def readable_sources(self) -> list[Source]:
        """Return the sources with quotable text."""
        return [source for source in self.sources.values() if source.status is SourceStatus.FULL]

    def fetched_sources(self) -> dict[str, Source]:
        """Return the sources that were read or failed: all but those with only title and snippet."""
        return {name: source for name, source in self.sources.items() if source.status is not SourceStatus.NOT_FETCHED}

    def high_quality_sources(self) -> list[Source]:
        """Return the readable sources of high quality."""
        return [source for source in self.readable_sources() if source.quality is Quality.HIGH]

    @property
    def draft_text(self) -> DocumentRef | None:
        """Return the stored text of the draft; None before there is one."""
        if not self.draft:
            return None
        return self.draft.document

    @property
    def draft_words(self) -> int:
        """Return the number of words of the draft; 0 before there is one."""
        if not self.draft:
            return 0
        return self.draft.word_count

    @property
    def draft_sections(self) -> dict[str, int]:
        """Return the number of words of each section of the draft; empty before there is one."""
        if not self.draft:
            return {}
        return self.draft.words_by_section

    @property
    def draft_citations(self) -> list[str]:
        """Return the ids of the evidence that the draft cites; empty before there is one."""
        if not self.draft:
            return []
        return self.draft.evidence_ids

    def note_entry(self, entry: str | None) -> None:
        """Add an entry to the notebook, once."""
        if entry and entry not in self.notebook:
            self.notebook.append(entry)


class AccountsState(StatePart):
    """The accounts of a run: calls, tokens and money, and the content that models were shown."""

    operations: dict[str, int] = {}
    """Number of uses of each logical operation, so that operation ids are unique and stable."""
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    """Usage by role (`gatherer` for searches and reads), without times; the sum is `usage`."""
    usage_by_phase: dict[str, Usage] = {}
    """Usage by phase, without times; the sum is `usage`."""
    call_sizes: dict[str, CallSizes] = {}
    """The sizes of model calls by role, from which later ones are reserved."""
    calls: dict[str, dict[str, int]] = {}
    """Number of calls by caller and called role; those of agents are added when they end."""
    paid_failures: list[str] = []
    """Unusable answers of unfinished operations already counted in `usage`, so that none is counted twice."""
    answers_counted: list[str] = []
    """Of an agent: names of its paid answers, those of its earlier starts included, which its run has counted."""
    repeated_by_role: dict[str, Usage] = {}
    """Of an agent: usage of answers that the journal gave it again and that its run has counted, by role."""
    fallbacks: dict[str, int] = {}
    """Number of fallbacks by role, caused by unusable answers."""
    rule_answers: dict[str, int] = {}
    """Number of answers without the model by role, in a run with a model."""
    engine_by_role: dict[str, str] = {}
    models_used: list[str] = []
    prompt_versions: dict[str, str] = {}
    fidelity: dict[str, FidelityTotals] = {}
    """Content shown to models, by phase."""
    shortened_calls: list[str] = []
    """Hashes of the stored entries of calls that shortened their content, at most `MAX_SHORTENED_CALLS`."""
    dropped_content_ids: list[str] = []
    content_archive_hashes: list[str] = []

    def add_content(self, phase: str, call: CallFidelity) -> None:
        """Add the content that a call was shown to the totals of its phase."""
        totals = self.fidelity.get(phase, FidelityTotals())
        self.fidelity = {**self.fidelity, phase: totals.plus(call)}
        if call.entry and call.entry not in self.shortened_calls:
            self.shortened_calls = [*self.shortened_calls, call.entry][-MAX_SHORTENED_CALLS:]
        self.dropped_content_ids = list(dict.fromkeys([*self.dropped_content_ids, *call.dropped]))
        self.content_archive_hashes = list(dict.fromkeys([*self.content_archive_hashes, *call.archived]))


class ClockState(StatePart):
    """When a run started, and when it must end."""

    started_at: str = ""
    clock_started_at: float = 0.0
    """Start of this run of the session, in seconds since the epoch (workflow clock)."""
    deadline_at: float = 0.0
    """Deadline for the report, in seconds since the epoch (workflow clock); unchanged by continue-as-new."""
    clock_stopped_at: float = 0.0
    """Time at which the run's clock was stopped to wait for a person, in seconds since the epoch; 0 while it runs."""
    limits_fixed: bool = False
    """True once the limits were fixed after the start."""
    active_seconds_before: float = 0.0
    """Active seconds of earlier runs of this session."""


class PeopleState(StatePart):
    """The questions to people with their answers, and the log that they read."""

    approved_version: int | None = None
    """Version of the plan that a person approved; None if none was approved."""
    approved_plan: Plan | None = None
    """The plan in force while a version that a person asked for later is made or waits; None otherwise."""
    clarification: Clarification = Clarification()
    waiting: Waiting | None = None
    """Open question to a person; remains set if the run ends unanswered."""
    guidance: list[Guidance] = []
    decisions: list[AgentDecision] = []
    decisions_dropped: int = 0
    """Number of decisions dropped because of the log's limit."""
    events: list[Event] = []
    event_count: int = 0


class ResearchState(CheckedModel):
    """The state of a run in five parts, of ids, offsets, labels and short statements.

    In JSON, and so in sessions and for clients, the fields of all parts are side by side.
    """

    model_config = ConfigDict(extra="ignore", validate_assignment=False)

    schema_version: int = SCHEMA_VERSION
    work: WorkState = Field(default_factory=WorkState)
    evidence: EvidenceState = Field(default_factory=EvidenceState)
    accounts: AccountsState = Field(default_factory=AccountsState)
    clock: ClockState = Field(default_factory=ClockState)
    people: PeopleState = Field(default_factory=PeopleState)

    @model_validator(mode="before")
    @classmethod
    def _divide(cls, data: Any) -> Any:
        """Sort the fields of the JSON form into their parts."""
        if not isinstance(data, dict) or any(isinstance(value, StatePart) for value in data.values()):
            return data
        divided: dict[str, Any] = {"schema_version": data.get("schema_version", SCHEMA_VERSION)}
        for part, fields in JSON_NAMES.items():
            divided[part] = {field: data[name] for field, name in fields.items() if name in data}
        return divided

    @model_serializer(mode="wrap")
    def _join(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the fields of all parts side by side."""
        divided = write(self)
        joined: dict[str, Any] = {}
        if "schema_version" in divided:
            joined["schema_version"] = divided["schema_version"]
        for part, fields in JSON_NAMES.items():
            values = divided.get(part, {})
            joined |= {fields[field]: value for field, value in values.items()}
        return joined

    @property
    def resolution(self) -> ResolvedResearch:
        """Return the resolved request. Raises ValueError before the request is resolved."""
        if self.work.resolved is None:
            raise ValueError("the request of this run is not resolved")
        return self.work.resolved

    @property
    def needs_approval(self) -> bool:
        """Return true if a person must still approve the plan, made or not; with an outline, each version needs it."""
        if not self.resolution.gates.requires_approval or (self.people.approved_version and not self.work.plan.outline):
            return False
        return self.people.approved_version is None or self.people.approved_version != self.work.plan.version

    @property
    def scope(self) -> str:
        """Return the agent's id, the prefix of its operation ids; empty for a top-level run."""
        if not self.work.task:
            return ""
        return self.work.task.id

    @property
    def level(self) -> int:
        """Return the agent's depth below the run; 0 for a top-level run."""
        if not self.work.task:
            return 0
        return self.work.task.level

    def searches(self) -> list[PlanNode]:
        """Return the distinct searches of the run: the sub-queries of the plan, then those of agents and others.

        Work that is not itself a search, such as an agent's task, is excluded.
        """
        planned = [
            query
            for query in self.work.plan.sub_queries
            if query.kind is NodeKind.QUERY and query.origin != WITHOUT_SEARCH and not query.sections
        ]
        planned_ids = {query.id for query in planned}
        by_text = dict[str, list[QueryRecord]]()
        for record in self.evidence.query_ledger:
            if record.sub_query_id not in planned_ids:
                by_text.setdefault(record.text, []).append(record)
        tasks = {node.id for node in self.work.plan.nodes}
        return planned + [
            PlanNode(
                id=sub_query_id(text),
                text=text,
                origin=f"task:{records[0].sub_query_id}" if records[0].sub_query_id in tasks else "background",
                iteration=records[0].iteration,
                status=NodeStatus.COMPLETED
                if any(record.outcome == "answered" for record in records)
                else NodeStatus.FAILED,
                provider="+".join(dict.fromkeys(record.provider for record in records)),
                # Agents that send a provider the same search get the same results.
                result_count=sum({(one.provider, one.source_type): one.found for one in records if one.found}.values()),
            )
            for text, records in by_text.items()
        ]

    def not_fetched(self) -> dict[str, Source]:
        """Return the unread hits as sources once the run has ended; empty before that.

        A resumed run may read them; in `sources` they would count as known.
        """
        unread: dict[str, Source] = {}
        if self.work.ending is None:
            return unread
        known = set(self.evidence.aliases)
        for source in self.evidence.sources.values():
            known.update(keys_of(source))
        for candidate in (*self.evidence.passed_over, *self.evidence.candidates):
            keys = set(keys_of(candidate.hit))
            if not keys & known and not is_excluded(candidate.hit.title, candidate.hit.url, self.resolution.exclude):
                source = Source.of_hit(candidate.hit, [candidate.sub_query_id])
                unread[source.id] = source
            known |= keys
        return unread

    def counts(self) -> Counts:
        """Count the current contents of the state."""
        readable = self.evidence.readable_sources()
        earlier = {source.id for source in readable if source.earlier}
        cited = set(self.evidence.draft_citations)
        offered = self.work.resolved.follow_up if self.work.resolved else None
        return Counts(
            iterations=self.work.iteration,
            sub_queries=len(self.work.plan.sub_queries),
            sources=len(readable),
            sources_cited=len({citation.source_id for citation in self.evidence.citations}),
            not_fetched=len(self.evidence.sources) - len(self.evidence.fetched_sources()) + len(self.not_fetched()),
            duplicates=self.evidence.duplicates,
            findings=len(self.evidence.findings),
            evidence=len(self.evidence.passages),
            passages_cited=len(cited),
            sources_offered=offered.sources if offered else 0,
            sources_earlier=len(earlier),
            passages_earlier=sum(
                item.source_id in earlier for key, item in self.evidence.passages.items() if key in cited
            ),
            gaps_open=len(self.evidence.unaddressed_gaps()),
            gaps=len(self.evidence.gaps),
            queries_failed=sum(query.status is NodeStatus.FAILED for query in self.searches()),
            documents_searched=self.evidence.documents_searched,
        )

    def note_content(self, call: CallFidelity) -> None:
        """Add a call's content to the totals of the current phase."""
        self.accounts.add_content(self.work.phase or "", call)
        self.evidence.note_entry(call.entry)

    def take_resolution(self, resolved: ResolvedResearch, entry: str) -> None:
        """Adopt the resolved request, stored as this notebook entry."""
        self.work.resolved = resolved
        self.work.resolved_entry = entry
        self.evidence.note_entry(entry)
        self.evidence.note_entry(resolved.follow_up.entry if resolved.follow_up else None)

    def snapshot(self, events: int = 0) -> dict[str, Any]:
        """Return the state as JSON for the store, without defaults and with the latest `events` events."""
        excluded: dict[str, Any] = {"people": {"events"}}
        result = self.work.result
        if result is not None and result.report_ref is not None:
            # The report's text is in its own document.
            excluded["work"] = {"result": {"report"}}
        state = self.model_dump(mode="json", exclude_defaults=True, exclude=excluded, context=AS_DATA)
        latest = self.people.events[-events:] if events else []
        if latest:
            state["events"] = [
                event.model_dump(mode="json", exclude_defaults=True, context=AS_DATA) for event in latest
            ]
        return {"schema_version": self.schema_version, **state}

    def pack(self) -> str:
        """Return the state as compressed JSON in base64, with the latest events only."""
        return pack_json(self.snapshot(PACKED_EVENTS))

    @classmethod
    def unpack(cls, packed: str) -> "ResearchState":
        """Invert `pack`. Raises ValueError if the text is not a packed state."""
        return cls.model_validate(unpack_json(packed))


PARTS: Final[dict[str, type[StatePart]]] = {
    "work": WorkState,
    "evidence": EvidenceState,
    "accounts": AccountsState,
    "clock": ClockState,
    "people": PeopleState,
}
JSON_NAMES: Final = {
    part: {field: "evidence" if field == "passages" else field for field in kind.model_fields}
    for part, kind in PARTS.items()
}
"""For each part of the state, the JSON name of each of its fields."""
