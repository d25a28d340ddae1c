"""What the scout does where its activity runs."""

from collections.abc import Mapping

from durable_research.contracts.roles import SubQuery

from tests.toy.roles import ScoutAnswer, ScoutInput


def draft(request: ScoutInput, _: Mapping[str, str]) -> ScoutAnswer:
    """Without a model: the question itself, and what a person said of it."""
    said = [one.text.splitlines()[0] for one in request.guidance if one.origin == "person"]
    queries = [request.query, *said][: request.most_queries]
    return ScoutAnswer(sub_queries=[SubQuery(query=query) for query in queries])
