"""The parts of a pause that strategies share: the reflection, and the operator's hook."""

from typing import Any, Final

from temporalio.exceptions import ActivityError

from contracts.outcome import HOOK
from contracts.roles import SUPERVISOR
from contracts.state import OpenPause, ResearchState
from contracts.texts import shorten
from contracts.vocabulary import AgentRole
from workflows.run.calls import hook_options, is_cancelled, reason_of
from workflows.run.research_run import ResearchRun

MOST_SHOWN: Final = 20
"""Sub-queries, findings and gaps that a hook gets, the newest of each."""
SHOWN_CHARACTERS: Final = 200


async def reflect(run: ResearchRun, opened: OpenPause) -> None:
    """Ask a model the question of an open pause, and store its answer there until the pause is concluded."""
    if opened.question is None or opened.reflection is not None:
        return
    step = f"reflect/{opened.question.phase}"
    opened.reflection = await run.ask(SUPERVISOR, step, opened.question)


async def call_hook(run: ResearchRun, phase: str, prompt: str) -> None:
    """Call the operator's hook with (state, prompt), and take a text that it returns as guidance.

    A hook that fails or returns something else is noted under `degraded`. Raises `Interrupted`.
    """
    hook = run.resolved.hook
    if hook is None:
        return
    options = hook_options(run.operation(f"hook/{phase}"), hook.task_queue, run.clock.remaining_work_seconds())
    arguments = [state_for_hook(run.state), prompt]
    try:
        answer = await run.within_limits(run.host.execute_hook(hook.activity, arguments, options))
    except ActivityError as error:
        if is_cancelled(error):
            raise
        run.degrade(f"hook {hook.name} failed after {phase}: {reason_of(error)}")
        return
    except ValueError:  # the answer is no JSON
        answer = b""
    if answer is not None and not isinstance(answer, str):
        run.degrade(f"hook {hook.name} answered after {phase} with something that is neither text nor null")
        return
    run.decide(AgentRole.SUPERVISOR, "think_pause_hook", hook.name, {"phase": phase}, {"answered": bool(answer)})
    run.steer(answer or "", HOOK, phase)


def state_for_hook(state: ResearchState) -> dict[str, Any]:
    """Return the part of a state that a hook gets: at most about 20 kB, regardless of the size of the run."""
    newest, short = slice(-MOST_SHOWN, None), SHOWN_CHARACTERS
    queries, findings = state.plan.sub_queries[newest], state.findings[newest]
    return {
        "research_id": state.resolution.research_id,
        "query": shorten(state.resolution.query, 10 * short),
        "phase": state.phase,
        "iteration": state.iteration,
        "plan": {
            "brief": shorten(state.plan.brief, 5 * short),
            "sub_queries": [{"text": shorten(one.text, short), "status": one.status.value} for one in queries],
        },
        "findings": [
            {"statement": shorten(one.statement, short), "confidence": one.confidence.value} for one in findings
        ],
        "open_gaps": [shorten(gap.description, short) for gap in state.unaddressed_gaps()[newest]],
        "usage": state.usage.model_dump(mode="json"),
        "counts": state.counts().model_dump(mode="json"),
    }
