"""The strategy `living`: what its agent is shown and offered, turn by turn, in whole runs by the real driver."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts.vocabulary import Outcome
from tests.every_strategy.joined import Trial, undisturbed
from tests.fakes.tool_work import answered, called, offered

Body = Mapping[str, Any]


async def run_of(folder: Path, **fields: Any) -> tuple[Trial, list[Body]]:
    """A whole run with a model, and the requests of its agent."""
    trial = await undisturbed(folder, "living", "model", **({"gates": {"approve": "none"}} | fields))
    return trial, [request.body for request in trial.api.requests if request.role == "living_agent"]


async def test_the_agent_is_offered_only_tools_that_can_have_an_effect(tmp_path: Path) -> None:
    """It cannot fetch before pages are found, write before there are notes, or end before it has searched."""
    trial, bodies = await run_of(tmp_path)
    assert trial.state.result.outcome is Outcome.COMPLETED, (trial.state.failed_branches, trial.state.limitations)
    offers = [offered(body) for body in bodies]
    assert offers[0] == ["web_search"]
    assert "fetch_url" in offers[1]
    assert "update_report" not in offers[1]
    assert "update_report" in offers[-1]
    for body in bodies:
        assert offered(body), "there is always a tool"


async def test_the_agent_sees_the_text_of_the_sections_that_it_has_written_to(tmp_path: Path) -> None:
    """The answer to an update has the section as it reads now, without citations, so that nothing is written twice."""
    trial, bodies = await run_of(tmp_path)
    last = bodies[-1]
    names = [name for name, _ in called(last)]
    updates = [text for name, text in zip(names, answered(last), strict=False) if name == "update_report"]
    written = [text for text in updates if "characters inserted" in text]
    assert written
    draft = await trial.world.content.get_text(trial.state.draft.document)
    for text in written:
        shown = [line.partition("¦")[2] for line in text.partition("It now reads:")[2].splitlines() if "¦" in line]
        assert shown
        assert "[ev-" not in text
        assert " ".join(shown).split()[3] in draft


async def test_no_page_can_be_fetched_beyond_the_limit_of_sources(tmp_path: Path) -> None:
    """Neither fetching nor searching is offered then, once every query of the plan was searched."""
    trial, bodies = await run_of(tmp_path, limits={"max_sources": 1})
    assert "fetch_url" in offered(bodies[1])
    assert {"fetch_url", "web_search"}.isdisjoint(offered(bodies[-1]))
    assert len(trial.state.readable_sources()) == 1
