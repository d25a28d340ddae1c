"""Work on an answer between the engine and the workflow: fitted to its request, and grounded where it names things."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from activities.roles.labels import label_all, label_key
from contracts.outcome import CallAccount
from contracts.roles import RefineInput, RefinerAnswer, RoleAnswer, RoleInput

I = TypeVar("I", bound=RoleInput)
A = TypeVar("A", bound=RoleAnswer)


@dataclass(frozen=True)
class RoleWork(Generic[I, A]):
    """An engine's answer on its way to the workflow."""

    request: I
    answer: A
    documents: Mapping[str, str]
    """Stored texts by hash."""
    account: CallAccount
    warnings: list[str] = field(default_factory=list)
    """One short line for each thing that was changed or dropped; never with words of a page."""

    def account_with_warnings(self) -> CallAccount:
        """The account with all warnings, each once."""
        return self.account.model_copy(
            update={"warnings": list(dict.fromkeys([*self.account.warnings, *self.warnings]))}
        )


def fit_answer(work: RoleWork[Any, Any]) -> RoleAnswer:
    """Fit an answer that names nothing but what its request names."""
    fitted: RoleAnswer = work.answer.fitted(work.request, work.warnings)
    return fitted.model_copy(update={"account": work.account_with_warnings()})


def fit_refinement(work: RoleWork[RefineInput, RefinerAnswer]) -> RefinerAnswer:
    """Fit a refinement: a model knows the gaps by the labels of its prompt."""
    names = label_all((gap.id for gap in work.request.gaps), label_key(work.request))

    def identity(name: str) -> str:
        return names.get(name.strip(), name.strip())

    judged = [one.model_copy(update={"gap_id": identity(one.gap_id)}) for one in work.answer.gap_analysis]
    advice = work.answer.iteration_recommendation
    advice = advice.model_copy(update={"priority_gaps": [identity(name) for name in advice.priority_gaps]})
    named = work.answer.model_copy(update={"gap_analysis": judged, "iteration_recommendation": advice})
    fitted = named.fitted(work.request, work.warnings)
    return fitted.model_copy(update={"account": work.account_with_warnings()})
