"""What a classification leads to: the route, and which limits are chosen. Pure."""

from contracts.addresses import short_hash
from contracts.plan import PlanNode
from contracts.reflective_roles import Complexity, CoordinatorAnswer, Route, StepKind
from contracts.request import Depth, Mode
from contracts.vocabulary import NodeKind

DEPTH_OF = {
    Complexity.SIMPLE: Depth.LIGHT,
    Complexity.MODERATE: Depth.MEDIUM,
    Complexity.COMPLEX: Depth.EXTENDED,
}


def route_of(classified: CoordinatorAnswer, mode: Mode) -> Route:
    """The route: what a person chose wins over what the coordinator says."""
    return classified.route if mode is Mode.AUTO else Route(mode.value)


def limits_choice(classified: CoordinatorAnswer, route: Route) -> str:
    """The name of the limits: the mode of a short route, else the depth, by complexity where none is recommended."""
    if route is not Route.DEEP:
        return route.value
    depth = Depth(classified.recommended_depth)
    return (DEPTH_OF[classified.complexity] if depth is Depth.AUTO else depth).value


def only_step(question: str) -> PlanNode:
    """The one step of a quick run: the question itself."""
    return PlanNode(
        id="step-" + short_hash("quick", question),
        text=question[:500],
        kind=NodeKind.STEP,
        needs_search=False,
        facet=StepKind.RESEARCH.value,
        expected_contribution=question[:500],
    )
