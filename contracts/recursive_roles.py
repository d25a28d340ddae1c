"""The roles of the `recursive` strategy, from the scope to the leaves of a tree, and the calls allowed between them.

The scanner is the extractor with the task `ASSESS_SOURCE`; the extractor gets one stored source and one task, and
fetches nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from contracts.addresses import canonical_url, normalized_text
from contracts.base import Contract
from contracts.evidence import DocumentRef
from contracts.gaps import GapReading
from contracts.lenient import Query, Sentence, UnfitAnswer, distinct, member_or, one_line, take_first
from contracts.research_trees import (
    DETAIL_CHARACTERS,
    GOAL_CHARACTERS,
    MAX_LEVELS,
    ResearchTree,
    TaskType,
    TreeBounds,
    TreeLeaf,
    TreeNode,
    find_problems,
    leaf_id,
    node_id,
)
from contracts.resolved import CorpusSnapshot
from contracts.roles import (
    AnalyzeInput,
    AnalyzerAnswer,
    AnalyzerResult,
    BriefedInput,
    GapsInput,
    ProposedGap,
    QualityUpdate,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SourceExtract,
)
from contracts.tokens import TokenShare
from contracts.vocabulary import GapKind, Quality, Severity, Tier

QUERY_CHARACTERS: Final = 500
"""Per query of the scope."""
MAX_SPLITS: Final = 4
"""Narrower queries that replace one too broad."""
MAX_SEARCHES: Final = 4
"""Of the librarian, per need."""
SCANNED_CHARACTERS: Final = 3_000
"""Of a candidate, as shown to the scanner."""
SCANNED_TOGETHER: Final = 5
"""Candidates of one scan."""
SCAN_OUTPUT_TOKENS: Final = 90
"""Of the assessment of one candidate with its reason, in one sentence."""
MAX_FOLLOW_UP_QUESTIONS = 3
MAX_IDENTIFIED_GAPS = 3
MAX_WORKS = 5
"""Per leaf."""
MAX_OWN_GAPS: Final = 2
"""Gaps that an executor may name itself, per check."""
WORK_CHARACTERS: Final = 200
MAX_SHOWN_LINKS: Final = 20
"""Links of a page, as shown to an extractor."""


class ScopeInput(BriefedInput):
    """Hand-off to the manager: the question, or queries edited by a person."""

    most_queries: int = 4
    edited: list[str] = []
    """Queries written by a person, to be judged unchanged; empty: the manager proposes the queries."""


class JudgedQuery(Contract):
    """A query with an expert's verdict."""

    query: Annotated[str, one_line(QUERY_CHARACTERS)] = Field(
        description="a question that makes sense on its own; copy an edited one word for word"
    )
    feasible: bool = Field(description="whether an expert could answer it well with a few sources")
    reason: Sentence = Field(default="", description="reason for the verdict, in one sentence")
    splits: list[Annotated[str, one_line(QUERY_CHARACTERS)]] = Field(
        default=[], description="two to four narrower queries if it is not feasible; otherwise none"
    )


class ManagerAnswer(RoleAnswer):
    """The scope: one or more feasible queries, or queries that are too broad, with reasons."""

    queries: list[JudgedQuery]

    def fitted(self, request: ScopeInput, notes: list[str]) -> Self:
        """Keep distinct queries within the limit, or the edited ones. Raises `UnfitAnswer` without usable verdicts."""
        judgements = distinct(self.queries, lambda judgement: judgement.query)
        if request.edited:
            judgements = _order_judgements(request.edited, judgements, notes)
        if not judgements:
            raise UnfitAnswer("queries: at least one query with words is needed")
        for index, judgement in enumerate(judgements):
            if not judgement.feasible and not (judgement.reason and distinct(judgement.splits, str, [judgement.query])):
                raise UnfitAnswer(f"queries.{index}: not feasible, so a reason and narrower queries are needed")
        if not request.edited:
            judgements = take_first(judgements, request.most_queries, notes, "queries")
        return self.with_fields(queries=[_clean_splits(judgement) for judgement in judgements])


def _order_judgements(edited: Sequence[str], judgements: Sequence[JudgedQuery], notes: list[str]) -> list[JudgedQuery]:
    """Return the verdict on each edited query, in order. Raises `UnfitAnswer` if one is missing."""
    by_query = {normalized_text(judgement.query): judgement for judgement in judgements}
    missing = [index for index, query in enumerate(edited) if normalized_text(query) not in by_query]
    if missing:
        raise UnfitAnswer(f"queries: query {missing[0] + 1} of those to be judged is missing; copy each word for word")
    if len(judgements) > len(edited):
        notes.append("verdicts of other queries were dropped")
    return [by_query[normalized_text(query)].with_fields(query=query) for query in edited]


def _clean_splits(judgement: JudgedQuery) -> JudgedQuery:
    """Return a verdict with distinct narrower queries, or none if the query is feasible."""
    splits = []
    if not judgement.feasible:
        splits = distinct(judgement.splits, str, [judgement.query])[:MAX_SPLITS]
    return judgement.with_fields(splits=splits)


class LibrarianInput(RoleInput):
    """Hand-off to the librarian: one need, earlier searches for it, and works mentioned by sources."""

    SUBJECT = "need"

    need: str
    corpus: CorpusSnapshot | None = None
    web: bool = False
    asked: list[str] = []
    """Earlier searches for the need."""
    asked_elsewhere: list[str] = []
    """Earlier searches of the run for other needs."""
    works: list[str] = []
    """Works mentioned by sources; they may become searches but are never opened."""


class LibrarianAnswer(RoleAnswer):
    """Searches for one need, in different words."""

    searches: list[Query] = Field(description="at most four searches in different words; each makes sense on its own")

    def fitted(self, request: LibrarianInput, notes: list[str]) -> Self:
        """Keep new searches. Raises `UnfitAnswer` if the first answer for a need has none."""
        fresh = distinct(self.searches, str, request.asked)
        if not fresh and not request.asked:
            raise UnfitAnswer("searches: at least one search with words is needed")
        if len(fresh) < len(self.searches):
            notes.append("searches that were empty or repeated were dropped")
        return self.with_fields(searches=take_first(fresh, MAX_SEARCHES, notes, "searches"))


class ScanInput(AnalyzeInput):
    """Hand-off to the scanner: excerpts of some candidates; the sub-query is the need."""

    sources: list[SourceExtract] = Field(min_length=1, max_length=SCANNED_TOGETHER)
    MAX_CHARACTERS: ClassVar[int | None] = SCANNED_CHARACTERS
    SHOWS_ALL: ClassVar[bool] = True

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of an assessment of each source."""
        return len(self.sources) * SCAN_OUTPUT_TOKENS

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the credibility if all sources are of one collection: the operator has vouched for it."""
        if not self.one_collection:
            return ()
        return ("credibility",)


def _decision(word: Any) -> str:
    if str(word).strip().casefold() == "reject":
        return "reject"
    return "use"


class ScannedSource(Contract):
    """Assessment of one source."""

    source_id: str = ""
    credibility: Annotated[Quality, member_or(Quality, Quality.UNKNOWN)] = Field(
        default=Quality.UNKNOWN,
        description="high, medium or low: how far to trust its author and publisher in this matter",
    )
    relevance: Annotated[Quality, member_or(Quality, Quality.UNKNOWN)] = Field(
        description="high, medium or low: how well it addresses the need"
    )
    reason: Sentence = Field(default="", description="what decided, in one sentence")
    decision: Annotated[Literal["use", "reject"], BeforeValidator(_decision)] = Field(description="use or reject")

    def accepts(self, quality: Quality) -> bool:
        """Return whether the source is accepted; `quality` is the rules' label, moved by at most one step.

        A rejection for any reason but low credibility means that the source is off topic, so it is final.
        """
        is_off_topic = self.relevance is Quality.LOW or (
            self.decision == "reject" and self.credibility is not Quality.LOW
        )
        return quality is not Quality.LOW and not is_off_topic


class ScannerAnswer(RoleAnswer):
    """Assessments of the sources of one call; one that is missing is assessed by rules."""

    assessments: list[ScannedSource] = Field(description="one for each source")

    def fitted(self, request: ScanInput, notes: list[str]) -> Self:
        """Keep one assessment for each source of the request. Raises `UnfitAnswer` if there is none."""
        source_ids = {source.id for source in request.sources}
        known = distinct(
            (assessment for assessment in self.assessments if assessment.source_id in source_ids),
            lambda one: one.source_id,
        )
        if not known:
            raise UnfitAnswer("assessments: at least one with the id of a shown source is needed")
        if len(known) < len(self.assessments):
            notes.append("assessments of other sources, and repeated ones, were dropped")
        return self.with_fields(assessments=known)

    def of(self, source_id: str) -> ScannedSource | None:
        """Return the assessment of a source; None if it is missing."""
        return next((assessment for assessment in self.assessments if assessment.source_id == source_id), None)


class VettedSource(Contract):
    """A vetted source, as shown to the tree planner."""

    id: str
    title: str = ""
    quality: Quality = Quality.UNKNOWN
    reason: str = ""


class TreeInput(RoleInput):
    """Hand-off to the tree planner: an executor's goal, its level, and vetted sources."""

    SUBJECT = "goal"

    goal: str
    node_id: str = ""
    """Id of the executor; empty: derived from the goal."""
    level: int = 1
    """Level of the executor, the root of the answer."""
    vetted: list[VettedSource] = []
    most_nodes: int = 1
    """Executors in total, including this one."""
    most_leaves: int = 5
    """Per executor."""
    most_levels: int = MAX_LEVELS
    done: list[str] = []
    """Tasks of earlier rounds."""

    @property
    def levels_below(self) -> int:
        """Return the number of executor levels allowed below this one."""
        return max(0, min(self.most_levels, MAX_LEVELS) - self.level)

    @property
    def bounds(self) -> TreeBounds:
        """Return the limits of the answer."""
        source_ids = frozenset(source.id for source in self.vetted)
        return TreeBounds(self.most_nodes, self.most_leaves, source_ids, self.most_levels)


Task = Annotated[TaskType, BeforeValidator(lambda word: word.strip().upper() if isinstance(word, str) else word)]


class ProposedLeaf(Contract):
    """One task for one source, proposed by a planner."""

    source: str = Field(description="label of a listed source")
    task_type: Task
    task_detail: Annotated[str, one_line(DETAIL_CHARACTERS)] | None = Field(
        default=None, description="the question for ANSWER_QUESTION; otherwise what to look at, or null"
    )


class ProposedNode(Contract):
    """An executor two levels below the root of an answer, proposed by a planner."""

    goal: Annotated[str, one_line(GOAL_CHARACTERS)] = Field(description="its part of the goal above it")
    leaves: list[ProposedLeaf] = []
    nodes: SkipJsonSchema[list[Any]] = []
    """Always invalid here; read so that a tree that is too deep is rejected instead of cut."""


class ProposedBranch(ProposedNode):
    """An executor directly below the root of an answer."""

    nodes: list[ProposedNode] = []


class TreeAnswer(RoleAnswer):
    """A tree: the leaves of one executor, and the executors below it."""

    leaves: list[ProposedLeaf] = []
    nodes: list[ProposedBranch] = []

    def fitted(self, request: TreeInput, notes: list[str]) -> Self:
        """Return the answer unchanged. Raises `UnfitAnswer` for a tree that is not feasible."""
        del notes
        if problems := find_problems(self.tree(request), request.bounds):
            raise UnfitAnswer("; ".join(problems[:5]))
        return self

    def tree(self, request: TreeInput) -> ResearchTree:
        """Return the tree, rooted at the request's executor; duplicate leaves count once."""
        root = TreeNode(id=request.node_id or node_id("", request.goal), goal=request.goal, level=request.level)
        nodes: list[TreeNode] = []
        queue: list[tuple[TreeNode, list[ProposedLeaf], list[Any]]] = [(root, self.leaves, [*self.nodes])]
        while queue:
            node, leaves, branches = queue.pop(0)
            tree_leaves = [_leaf(node.id, leaf) for leaf in leaves]
            nodes.append(node.with_fields(leaves=list({leaf.id: leaf for leaf in tree_leaves}.values())))
            for branch in branches:
                # Anything below the levels of the schema is too deep, whatever its content.
                if isinstance(branch, ProposedNode):
                    item = branch
                else:
                    item = ProposedNode(goal="too deep")
                child = TreeNode(id=node_id(node.id, item.goal), goal=item.goal, level=node.level + 1, parent=node.id)
                queue.append((child, item.leaves, item.nodes))
        return ResearchTree(nodes=nodes)


def _leaf(node: str, proposed: ProposedLeaf) -> TreeLeaf:
    detail = (proposed.task_detail or "").strip()
    task = proposed.task_type
    identity = leaf_id(node, proposed.source, task, detail)
    return TreeLeaf(id=identity, source_id=proposed.source, task_type=task, task_detail=detail)


class ExtractInput(AnalyzeInput):
    """Hand-off to the extractor: one source and one task; the sub-query is the leaf."""

    sources: list[SourceExtract] = Field(min_length=1, max_length=1)
    task_type: TaskType
    task_detail: str = ""

    @property
    def fields_left_out(self) -> tuple[str, ...]:
        """Return the fields of an analysis that one task on one source has no use for."""
        return (*super().fields_left_out, "answers")


class MentionedWork(Contract):
    """A work that a source mentions; it may be searched for, but a mention never opens it."""

    words: Annotated[str, one_line(WORK_CHARACTERS)] = Field(
        default="", description="its title or author, copied verbatim from the source"
    )
    address: Annotated[str, one_line(500)] = Field(default="", description="its address, if the source gives one")

    @property
    def search_words(self) -> str:
        """Return the search query for it."""
        return self.words or self.address.partition("://")[2].rstrip("/")

    def is_at(self, url: str, title: str) -> bool:
        """Return whether a hit is this work, by URL or title."""
        is_same_url = bool(self.address) and canonical_url(self.address) == canonical_url(url)
        return is_same_url or (bool(self.words) and self.words.casefold() in " ".join(title.casefold().split()))


class ExtractorAnswer(AnalyzerAnswer):
    """Result of a leaf: statements with quotes, and what the source leaves open."""

    follow_up_questions: list[Sentence] = Field(
        default=[], description="at most three questions that the source raises but does not answer"
    )
    identified_gaps: list[Sentence] = Field(
        default=[], description="at most three topics that the source itself says it does not cover"
    )
    mentioned_works: list[MentionedWork] = Field(
        default=[], description="at most five further works on the task that the source mentions"
    )
    gaps: SkipJsonSchema[list[ProposedGap]] = []
    """Derived from the questions and gaps above; never set by a model."""
    quality_updates: SkipJsonSchema[list[QualityUpdate]] = []
    nothing_on: SkipJsonSchema[list[int]] = []
    """Of one task on one source an answer without findings says as much."""

    def fitted(self, request: AnalyzeInput, notes: list[str]) -> Self:
        """Keep the first distinct questions, gaps and works, and derive the gaps of an analysis from them."""
        del request
        questions = take_first(distinct(self.follow_up_questions, str), MAX_FOLLOW_UP_QUESTIONS, notes, "questions")
        missing = take_first(distinct(self.identified_gaps, str, questions), MAX_IDENTIFIED_GAPS, notes, "gaps")
        works = distinct(self.mentioned_works, lambda work: f"{work.words} {work.address}")
        gaps = [ProposedGap(description=text, kind=GapKind.QUESTION, suggested_queries=[text]) for text in questions]
        gaps += [ProposedGap(description=text, kind=GapKind.LIMITATION, suggested_queries=[text]) for text in missing]
        return self.with_fields(
            gaps=gaps, quality_updates=[], mentioned_works=take_first(works, MAX_WORKS, notes, "works")
        )


class ExtractorResult(AnalyzerResult):
    """The grounded result of a leaf; its questions and gaps are two kinds of `gaps`."""

    mentioned_works: list[MentionedWork] = []
    """Works whose words are in the stored text, or whose address is among the page's links."""


class SelfCheckInput(GapsInput):
    """Hand-off to the executor, which checks its node's report against the goal: with open questions and gaps."""

    SUBJECT = "goal"

    goal: str
    draft: DocumentRef | None = None
    """The report; None if nothing was found or there was only one input."""
    statements: list[str] = []
    """Findings, if no report was written."""
    corrections_left: int = 0


class JudgedGap(Contract):
    """The executor's judgement of a question or gap."""

    gap_id: str = Field(description="label of the gap in the list")
    answered: bool = Field(default=False, description="whether the report answers it already")
    in_scope: bool = Field(default=True, description="whether the goal needs it")
    addressable: bool = Field(default=True, description="whether other sources may answer it")
    severity: Annotated[Severity, member_or(Severity, Severity.MODERATE)] = Severity.MODERATE
    read_further: list[int] = Field(
        default=[], description="numbers of the listed passages that answer it, to be read in their sections"
    )

    @property
    def is_closable(self) -> bool:
        """Return true if other sources, or those already read, may answer it."""
        return self.addressable or bool(self.read_further)


class SelfCheckAnswer(RoleAnswer):
    """Verdict on a report: whether it is sufficient for its goal, and which gaps matter."""

    sufficient: bool = Field(description="whether the report answers the goal")
    reason: Annotated[str, one_line(400)] = Field(default="", description="reason for the verdict, in one sentence")
    gaps: list[JudgedGap] = []
    missing: list[Sentence] = Field(
        default=[],
        description="at most two things that the goal needs and that neither the report nor the list has; usually none",
    )

    def fitted(self, request: SelfCheckInput, notes: list[str]) -> Self:
        """Keep one judgement per gap of the request, and gaps of its own that are not in the list."""
        gap_ids = {gap.id for gap in request.gaps}
        judged = distinct((gap for gap in self.gaps if gap.gap_id in gap_ids), lambda gap: gap.gap_id)
        known = [gap.description for gap in request.gaps]
        missing = take_first(distinct(self.missing, str, known), MAX_OWN_GAPS, notes, "gaps")
        return self.with_fields(gaps=judged, missing=missing)

    @property
    def passages(self) -> dict[str, list[int]]:
        """Return the numbers of the passages to read further, by gap: of those that need a correction."""
        wanted = set(self.material)
        return {gap.gap_id: gap.read_further for gap in self.gaps if gap.gap_id in wanted}

    @property
    def answered(self) -> list[str]:
        """Return the ids of the gaps that the report answers."""
        return [gap.gap_id for gap in self.gaps if gap.answered]

    @property
    def material(self) -> list[str]:
        """Return the ids of gaps that need a correction: not answered, in scope, addressable, not minor.

        None if the report is sufficient.
        """
        gaps = []
        if not self.sufficient:
            gaps = [gap for gap in self.gaps if gap.in_scope and gap.is_closable]
        return [gap.gap_id for gap in gaps if not gap.answered and gap.severity is not Severity.MINOR]


class SelfCheckResult(SelfCheckAnswer):
    """A verdict whose passages to read further are given as sections of sources."""

    readings: list[GapReading] = []


MANAGER: Final = RoleSpec(
    "manager", "judge_scope", Tier.COMPLEX, ScopeInput, ManagerAnswer, ManagerAnswer,
    share=TokenShare.PLANNING, output_tokens=2_500, expected_output_tokens=600, work="scope",
)  # fmt: skip
LIBRARIAN: Final = RoleSpec(
    "librarian", "propose_searches", Tier.SIMPLE, LibrarianInput, LibrarianAnswer, LibrarianAnswer,
    output_tokens=800, expected_output_tokens=200, work="vetting",
)  # fmt: skip
SCANNER: Final = RoleSpec(
    "scanner", "scan_source", Tier.SIMPLE, ScanInput, ScannerAnswer, ScannerAnswer,
    output_tokens=1_500, expected_output_tokens=400, work="vetting", has_fallback=False,
)  # fmt: skip
"""Without it, rules alone assess a candidate."""
TREE_PLANNER: Final = RoleSpec(
    "tree_planner", "plan_tree", Tier.ANALYTICAL, TreeInput, TreeAnswer, TreeAnswer,
    share=TokenShare.PLANNING, output_tokens=6_000, expected_output_tokens=1_500, work="planning",
)  # fmt: skip
EXTRACTOR: Final = RoleSpec(
    "extractor", "extract_source", Tier.ANALYTICAL, ExtractInput, ExtractorAnswer, ExtractorResult,
    output_tokens=4_000, expected_output_tokens=1_200, work="extraction",
)  # fmt: skip

EXECUTOR: Final = RoleSpec(
    "executor", "check_node", Tier.ANALYTICAL, SelfCheckInput, SelfCheckAnswer, SelfCheckResult,
    share=TokenShare.REFINEMENT, output_tokens=1_500, expected_output_tokens=400, work="self-check",
)  # fmt: skip
TREE_ROLES: Final = (LIBRARIAN, SCANNER, TREE_PLANNER, EXTRACTOR, EXECUTOR)

# --- allowed calls between roles -----------------------------------------------------------------------------------
ACTS_AS: Final[Mapping[str, str]] = {SCANNER.name: EXTRACTOR.name, TREE_PLANNER.name: "planner"}
"""Role of the table below as which another one acts: a scan is a task of the extractor."""
MAY_CALL: Final[Mapping[str, frozenset[str]]] = {
    "manager": frozenset(("planner", "executor", "synthesizer")),
    "planner": frozenset(("librarian",)),
    "librarian": frozenset(("extractor",)),
    "executor": frozenset(("executor", "extractor", "synthesizer", "librarian", "planner")),
    "extractor": frozenset(),
    "synthesizer": frozenset(),
}
"""Caller → roles that it may call; no other calls are made."""


def may_call(caller: str, role: str) -> bool:
    """Return whether one role may call another; either may act as another of the table."""
    return ACTS_AS.get(role, role) in MAY_CALL.get(ACTS_AS.get(caller, caller), frozenset())
