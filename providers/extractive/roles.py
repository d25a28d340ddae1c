"""Roles without a model that judge no findings: they search in other forms, and give counts as reasons. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from contracts import living_roles as living
from contracts import orchestrator_roles as orchestrator
from contracts import recursive_roles as recursive
from contracts import reflective_roles as reflective
from contracts import roles, supervisor_roles
from contracts.addresses import normalized_text
from contracts.base import Contract
from contracts.checking_roles import ReviewerAnswer, ReviewInput
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.plan import OTHER_FORM
from contracts.research_trees import DETAIL_CHARACTERS, TaskType
from contracts.texts import plural
from contracts.tool_turns import Transcript, TurnAnswer, scripted_turn
from contracts.tools import MAX_CALLS, NoArguments, SearchArguments, ToolSpec
from contracts.vocabulary import Action, NodeStatus, Phase, Severity
from providers.text import language_data, meaning_words, sentence_spans

QUERY_CHARACTERS: Final = 400
MIN_QUERY_CHARACTERS: Final = 10  # the gate after planning requires them of all but the question itself
GUIDED: Final = "guidance"  # facet of a query requested by a person or the operator
SUBJECT_WORDS: Final = 8
FEW_WORDS: Final = 4  # content words up to which a question is simple
MANY_WORDS: Final = 14  # content words above which a question is complex
LONG_SENTENCE: Final = 32  # average words per sentence above which a text is hard to read


# --- plan ------------------------------------------------------------------------------------------------------------
def plan(task: roles.PlanInput) -> roles.PlannerAnswer:
    """Propose the question as given, requests of people, and the question's words in other forms."""
    queries = _queries(task, task.max_sub_queries)
    return roles.PlannerAnswer(
        research_brief="The question as it was asked, then its words in other forms: the best passages are shown.",
        sub_queries=[
            roles.SubQuery(query=query, rationale=rationale, priority=number, facet=facet)
            for number, (query, rationale, facet) in enumerate(queries, start=1)
        ],
    )


def _queries(task: roles.BriefedInput, limit: int, tried: Iterable[str] = ()) -> list[tuple[str, str, str]]:
    """Return queries with reasons and facets, without duplicates and queries already tried."""
    seen = set(map(normalized_text, tried))
    question = " ".join(task.query.split())[:QUERY_CHARACTERS]
    subject = " ".join(meaning_words(question, task.language)[:SUBJECT_WORDS]) or question
    data = language_data(task.language)
    forms = data.forms if task.language.casefold().startswith(data.code) else ()  # not English words for any language
    guided = [item.text for item in task.guidance if item.origin != "rules"]
    proposed = [
        (question, "The question in its own words.", "question"),
        *((text, "A person or the operator wants it looked at.", GUIDED) for text in guided),
        *((f"{subject} {form}", "The words of the question in another form.", OTHER_FORM)
          for form in forms),
    ]  # fmt: skip
    queries: list[tuple[str, str, str]] = []
    for text, rationale, facet in proposed:
        query = text.strip()[:QUERY_CHARACTERS]
        if (words := normalized_text(query)) not in seen:
            seen.add(words)
            queries.append((query, rationale, facet))
    return queries[: max(1, limit)]


def decompose(task: living.DecomposeInput) -> living.DecomposerAnswer:
    """Propose the question, its words in other forms, and a heading for each; ask only if there is no subject."""
    queries = _queries(task, task.most_queries)
    headings = iter(language_data(task.language).headings)
    asked = clarify(roles.ClarifyInput(query=task.query, language=task.language, rounds=task.rounds))
    return living.DecomposerAnswer(
        brief="Passages about the question as it was asked, then about its words in other forms.",
        clarifying_questions=asked.questions,
        expanded_queries=[query for query, _, _ in queries],
        outline=[query if facet == GUIDED else next(headings) for query, _, facet in queries],
    )


def clarify(task: roles.ClarifyInput) -> roles.ClarifierAnswer:
    """Ask only if the question has no content words, or if the request requires a clarification."""
    words = meaning_words(task.query, task.language)
    subject = " ".join(words[:SUBJECT_WORDS]) or task.query.strip()[:100]
    reason = "the question names a subject"
    question = ""
    if task.rounds:
        reason = "the person has answered"
    elif not words and not task.context:
        reason = "no subject"
        question = f"What do you want to know about “{subject}”?"
    elif task.required:
        reason = "the request requires a clarification"
        question = f"The research is about “{subject}”: is there anything that must be in it?"
    return roles.ClarifierAnswer(clear=not question, questions=[question] if question else [], reason=reason)


# --- gates and gaps --------------------------------------------------------------------------------------------------
def reflect(task: supervisor_roles.ReflectInput) -> supervisor_roles.SupervisorAnswer:
    """Follow the gate; never loosen it, settle no gap and instruct no role."""
    if not task.gate_valid:
        action = Action.RETRY
    elif task.phase == Phase.SYNTHESIS:
        if task.gaps and task.iteration < task.max_iterations:
            action = Action.ITERATE
        else:
            action = Action.COMPLETE
    else:
        action = Action.PROCEED
    problems = [issue.message for issue in task.issues]
    state = "satisfied" if task.gate_valid else "not satisfied"
    return supervisor_roles.SupervisorAnswer(
        action=action,
        rationale=f"The gate after {task.phase} is {state} ({task.gate_score:g} of 10).",
        quality_assessment=supervisor_roles.QualityAssessment(
            score=min(10.0, max(1.0, task.gate_score)), weaknesses=problems
        ),
    )


def refine(task: supervisor_roles.RefineInput) -> supervisor_roles.RefinerAnswer:
    """Recommend another iteration only for gaps with a suggested query that was not tried yet.

    Whether a finding or a passage answers a gap is not for rules to decide, so none is called answered.
    """
    tried = {normalized_text(text) for text in (*task.asked, task.query)}
    judged = [_judge(gap, tried) for gap in sorted(task.gaps, key=lambda gap: (gap.priority, gap.id))]
    addressable = [assessment.gap_id for assessment in judged if assessment.addressable]
    should_iterate = bool(addressable) and task.remaining_iterations > 0
    return supervisor_roles.RefinerAnswer(
        gap_analysis=judged,
        iteration_recommendation=supervisor_roles.Recommendation(
            should_iterate=should_iterate,
            rationale=f"{len(addressable)} of {plural(len(judged), 'open gap')} have a search that was not tried yet.",
            priority_gaps=addressable if should_iterate else [],
        ),
    )


def _judge(gap: Gap, tried: set[str]) -> supervisor_roles.GapAssessment:
    fresh = [
        " ".join(text.split())[:QUERY_CHARACTERS]
        for text in gap.suggested_queries
        if normalized_text(text) not in tried and (len(text) >= MIN_QUERY_CHARACTERS or gap.origin == ASKED_BY_PERSON)
    ]
    tried.update(map(normalized_text, fresh))
    return supervisor_roles.GapAssessment(
        gap_id=gap.id,
        severity=Severity.MODERATE if gap.priority == 1 else Severity.MINOR,
        addressable=bool(fresh),
        follow_up_queries=[supervisor_roles.FollowUpQuery(query=text) for text in fresh[:2]],
    )


def review(task: ReviewInput, documents: Mapping[str, str]) -> ReviewerAnswer:
    """Score a draft by counts: sub-queries with findings, cited sentences, sources, words per sentence."""
    paragraphs = [part for part in documents.get(task.draft.hash, "").split("\n\n") if part.strip("#> \n")]
    sentences = [part[start:end] for part in paragraphs for start, end in sentence_spans(part)]
    sentences = [sentence for sentence in sentences if len(sentence.split()) > 3 and not sentence.startswith("#")]
    cited = sum("[ev-" in sentence for sentence in sentences)
    asked = len(task.sub_queries)
    answered = len(task.sub_queries) - len(task.unanswered)
    mean = sum(len(sentence.split()) for sentence in sentences) / (len(sentences) or 1)
    support = cited / (len(sentences) or 1)
    return ReviewerAnswer(
        coverage=round(10 * answered / asked, 1) if asked else 0.0,
        support=round(10 * support, 1),
        depth=round(min(10.0, 2.0 * task.sources_cited), 1),
        readability=10.0 if mean <= LONG_SENTENCE else 5.0,
        reasons=[
            f"{answered} of {plural(asked, 'sub-query')} have a finding",
            f"{cited} of {plural(len(sentences), 'sentence')} carry a citation",
            plural(task.sources_cited, "source"),
            f"{mean:.0f} words in a sentence on average",
        ],
        missing=task.unanswered[:5],
        notes=[f"Answer “{text}”, or state that it was not found." for text in task.unanswered[:5]],
    )


# --- steps of the strategy reflective --------------------------------------------------------------------------------
def classify(task: reflective.ClassifyInput) -> reflective.CoordinatorAnswer:
    """Classify by the number of content words; research is always done."""
    count = len(meaning_words(task.query, task.language))
    complexity = reflective.Complexity.SIMPLE if count <= FEW_WORDS else reflective.Complexity.MODERATE
    if count > MANY_WORDS or task.query.count("?") > 1:
        complexity = reflective.Complexity.COMPLEX
    questions = clarify(task).questions if task.required else []
    return reflective.CoordinatorAnswer(
        complexity=complexity,
        is_ambiguous=bool(questions),
        clarifying_questions=questions,
        reasoning=f"The question has {plural(count, 'word')} of meaning.",
    )


def investigate(task: reflective.InvestigateInput) -> reflective.QueriesAnswer:
    """Search for the question and its words in other forms."""
    return reflective.QueriesAnswer(queries=[query for query, _, _ in _queries(task, task.most_queries)])


def plan_steps(task: reflective.PlanStepsInput) -> reflective.StepPlannerAnswer:
    """Propose a step for each suggestion of a reflection, then for each form of the question without one."""
    queries = _queries(task, task.most, tried=[step.title for step in task.steps])
    texts = [*task.suggested_changes, *(query for query, _, _ in queries)]
    return reflective.StepPlannerAnswer(
        title=task.query,
        thought="The question as it was asked, then its words in other forms.",
        steps=[reflective.ProposedStep(title=text, description=text) for text in texts[: max(1, task.most)]],
    )


def search_for_step(task: reflective.ResearchStepInput) -> reflective.ResearcherAnswer:
    """Search once for the step, in its own words."""
    if task.turn > 1:
        return reflective.ResearcherAnswer(reasoning="The step was searched for in its own words.")
    return reflective.ResearcherAnswer(queries=[task.description or task.step_title])


def reflect_on_step(task: reflective.ReflectOnStepInput) -> reflective.ReflectorAnswer:
    """Continue while steps are planned; adjust if the last one has no finding and a gap is open."""
    done = [step for step in task.steps if step.status is NodeStatus.COMPLETED]
    decision = reflective.ReflectionDecision.CONTINUE
    if not task.pending:
        decision = reflective.ReflectionDecision.COMPLETE
    elif done and not done[-1].finding_count and task.may_adjust and task.gaps:
        decision = reflective.ReflectionDecision.ADJUST
    reasoning = f"Steps done: {len(done)}, still planned: {len(task.pending)}, open gaps: {len(task.gaps)}."
    return reflective.ReflectorAnswer(decision=decision, reasoning=reasoning)


# --- turns of the strategy orchestrator ------------------------------------------------------------------------------
def take_in(task: orchestrator.IntakeInput, _: Transcript) -> TurnAnswer:
    """Ask the clarifier's questions; without any, hand over to the plan."""
    if questions := clarify(task).questions:
        return scripted_turn((orchestrator.ASK_PERSON, orchestrator.AskArguments(questions=questions)))
    return scripted_turn((orchestrator.GENERATE_PLAN, NoArguments()))


def outline(task: orchestrator.OutlineInput) -> orchestrator.OutlinerAnswer:
    """Propose a step for each form of the question."""
    queries = _queries(task, task.most)
    return orchestrator.OutlinerAnswer(
        approach="The question as it was asked, then its words in other forms.",
        steps=[orchestrator.OutlinedStep(step=query, facet=facet) for query, _, facet in queries],
    )


def orchestrate(task: orchestrator.OrchestrateInput, _: Transcript) -> TurnAnswer:
    """Send an agent for each step without one, all at once; then request the report."""
    unserved = [number for number in task.unserved if 0 < number <= len(task.steps)]
    steps = [(number, task.steps[number - 1][:QUERY_CHARACTERS]) for number in unserved]
    tasks = [(orchestrator.RESEARCH_AGENT, orchestrator.AgentArguments(task=step, steps=[at])) for at, step in steps]
    if tasks and (not task.offered or orchestrator.RESEARCH_AGENT.name in task.offered):
        return scripted_turn(*tasks[:MAX_CALLS])
    if tasks and orchestrator.THINK.name in task.offered:
        # After a failed agent a model has to think before it sends the next one; this takes the place of its thought.
        thought = orchestrator.ThinkArguments(reasoning=f"{len(tasks)} steps of the plan have no agent.")
        return scripted_turn((orchestrator.THINK, thought))
    return scripted_turn((orchestrator.ORCHESTRATOR_REPORT, orchestrator.ReportArguments()))


def work(task: orchestrator.WorkInput, _: Transcript) -> TurnAnswer:
    """Search for the task in its own words, open the best pages, report."""
    if not task.searches and task.searches_left:
        return scripted_turn((orchestrator.SEARCH, SearchArguments(query=task.query[:QUERY_CHARACTERS])))
    if task.found and task.pages_left:
        best = sorted(task.found, key=lambda page: (page[1], page[0]))[: task.pages_left]
        pages = sorted(index for index, _ in best)[:MAX_CALLS]
        return scripted_turn(*((orchestrator.OPEN_PAGE, orchestrator.OpenArguments(index=index)) for index in pages))
    return scripted_turn((orchestrator.AGENT_REPORT, orchestrator.AgentReportArguments(open_questions=task.open_gaps)))


def take_living_turn(task: living.LivingInput, _: Transcript) -> TurnAnswer:
    """Search the queries in order, fetch and read the first pages, put the notes under the headings that they fit."""
    calls: list[tuple[ToolSpec[Any], Contract]] = [
        (living.WEB_SEARCH, living.WebSearchArguments(query=query[:QUERY_CHARACTERS])) for query in task.unasked
    ]
    if not calls:
        pages = task.found[: task.pages_left]
        calls = [(living.FETCH_URL, living.FetchArguments(page=number)) for number in pages]
        calls += [(living.PARSE_CONTENT, living.ParseArguments(file_id=name)) for name in task.files]
    if not calls:
        calls = [
            (living.UPDATE_REPORT, living.UpdateArguments(heading=heading, notes=notes))
            for heading, notes in task.unwritten.items()
        ]
    if not calls:
        calls = [(living.FINISH, living.FinishArguments(open_questions=task.open_questions))]
    return scripted_turn(*calls[:MAX_CALLS])


# --- sources and trees of the strategy recursive ---------------------------------------------------------------------
def judge_scope(task: recursive.ScopeInput) -> recursive.ManagerAnswer:
    """Return the question and requests of people as queries; their width is computed elsewhere."""
    queries = [query for query, _, facet in _queries(task, task.most_queries) if facet != OTHER_FORM]
    reason = "Only its size was judged, without a model."
    judged = [recursive.JudgedQuery(query=query, feasible=True, reason=reason) for query in task.edited or queries]
    return recursive.ManagerAnswer(queries=judged)


def propose_searches(task: recursive.LibrarianInput) -> recursive.LibrarianAnswer:
    """Search for the need, its words in other forms, and the works that sources mention."""
    tried = {normalized_text(text) for text in task.asked}
    need = roles.PlanInput(query=task.need, language=task.language)
    works = [text for text in task.works if normalized_text(text) not in tried]
    queries = [query for query, _, _ in _queries(need, recursive.MAX_SEARCHES, task.asked)]
    return recursive.LibrarianAnswer(searches=[*queries[:1], *works, *queries[1:]][: recursive.MAX_SEARCHES])


def plan_tree(task: recursive.TreeInput) -> recursive.TreeAnswer:
    """Propose a leaf for each source, or for the first ones if there is no room for all."""
    detail = task.goal[:DETAIL_CHARACTERS]
    task_type = TaskType.EXTRACT_KEY_FACTS
    sources = task.vetted[: task.most_leaves]
    return recursive.TreeAnswer(
        leaves=[recursive.ProposedLeaf(source=source.id, task_type=task_type, task_detail=detail) for source in sources]
    )


def check_node(task: recursive.SelfCheckInput) -> recursive.SelfCheckAnswer:
    """Judge a node sufficient once something was found for its goal; else each of its gaps matters."""
    has_result = task.draft is not None or bool(task.statements)
    return recursive.SelfCheckAnswer(
        sufficient=has_result,
        reason="Something was found for the goal." if has_result else "Nothing was found for the goal.",
        gaps=[recursive.JudgedGap(gap_id=gap.id) for gap in task.gaps],
    )
