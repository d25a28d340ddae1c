"""The roles of the strategy `reflective` without a model: by what the question asks for, and by what was found."""

from typing import Final

from contracts.reflective_roles import (
    ClassifyInput,
    Complexity,
    CoordinatorAnswer,
    FollowUpType,
    InvestigateInput,
    PlanStepsInput,
    ProposedStep,
    QueriesAnswer,
    ReflectionDecision,
    ReflectOnStepInput,
    ReflectorAnswer,
    ResearchStepInput,
    StepPlannerAnswer,
)
from contracts.roles import PlanInput
from contracts.texts import plural
from contracts.vocabulary import NodeStatus
from providers.extractive.asked_form import read_asked
from providers.extractive.planner import ONE_SIDED, plan
from providers.extractive.question import QuestionType, read_question

FEW_WORDS: Final = 5
"""Words of meaning up to which a question that asks for one thing is simple."""
MANY_WORDS: Final = 14
MANY_SIDED: Final = (QuestionType.COMPARE, QuestionType.CONSEQUENCE, QuestionType.WHY)


def classify(request: ClassifyInput) -> CoordinatorAnswer:
    """Without a model: by what the question asks for and how many words it takes. Never without research."""
    question, asked = read_question(request.query, request.language), read_asked(request.query, request.language)
    wordy = len(asked.content)
    if asked.form in ONE_SIDED and wordy <= FEW_WORDS:
        complexity = Complexity.SIMPLE
    elif question.kind in MANY_SIDED or wordy > MANY_WORDS or request.query.count("?") > 1:
        complexity = Complexity.COMPLEX
    else:
        complexity = Complexity.MODERATE
    return CoordinatorAnswer(
        complexity=complexity.value,
        follow_up_type=(FollowUpType.COMPLEX_FOLLOW_UP if request.context else FollowUpType.NEW_TOPIC).value,
        reasoning=f"The question asks for {question.kind.value.replace('_', ' ')} in {wordy} words of meaning.",
    )


def look_around(request: InvestigateInput) -> QueriesAnswer:
    """Without a model: the question itself and what a plan would look for first."""
    asked = PlanInput(query=request.query, language=request.language, max_sub_queries=request.most_queries)
    return QueriesAnswer(queries=[item.query for item in plan(asked).sub_queries])


def plan_steps(request: PlanStepsInput) -> StepPlannerAnswer:
    """Without a model: one step for each part of an answer; an adjusted plan looks first where a gap was stated."""
    done = [step.title for step in request.steps]
    asked = PlanInput(
        query=request.query,
        language=request.language,
        guidance=request.guidance,
        system_prompt=request.system_prompt,
        min_sub_queries=request.fewest,
        max_sub_queries=request.most + len(done),
        previous=[title for title in done if done],
    )
    proposed = plan(asked)
    wanted = [ProposedStep(title=text, description=text) for text in request.suggested_changes]
    steps = [ProposedStep(title=item.query, description=item.query) for item in proposed.sub_queries]
    return StepPlannerAnswer(title=request.query, thought=proposed.research_brief, steps=[*wanted, *steps])


def search_for_step(request: ResearchStepInput) -> QueriesAnswer:
    """Without a model: the step itself, once."""
    if request.turn > 1:
        return QueriesAnswer(reasoning="The step was searched for in its own words.")
    return QueriesAnswer(queries=[request.description or request.step_title])


def reflect_on_step(request: ReflectOnStepInput) -> ReflectorAnswer:
    """Without a model: go on while steps are planned; adjust once where the last step found nothing."""
    done = [step for step in request.steps if step.status is NodeStatus.COMPLETED]
    if not request.pending:
        return ReflectorAnswer(decision=ReflectionDecision.COMPLETE.value, reasoning="Every step is done.")
    if done and not done[-1].finding_count and request.may_adjust and request.open_gaps:
        return ReflectorAnswer(
            decision=ReflectionDecision.ADJUST.value,
            reasoning="The last step found nothing that can be quoted.",
            suggested_changes=[],
        )
    return ReflectorAnswer(
        decision=ReflectionDecision.CONTINUE.value, reasoning=f"Still planned: {plural(len(request.pending), 'step')}."
    )
