"""The strategy `orchestrator`: whole runs by the real driver, where something is lacking, and its rules."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.addresses import document_at, linked_place, page_place
from contracts.agents import AT_ONCE
from contracts.canary import STEERED_NOTE
from contracts.gaps import SettledGap
from contracts.orchestrator_roles import AGENT, ORCHESTRATOR
from contracts.presets import preset
from contracts.request import Depth
from contracts.roles import AnalyzerResult, ProposedGap
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, GapStatus, NodeStatus, Outcome, StopReason
from tests.every_strategy.joined import begin_trial, begun, trial_of, undisturbed, world_of
from tests.fakes import model_work, tool_work
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_work import element, unmarked
from tests.fakes.states import EMPTY_REF, finding, gap, source
from tests.fakes.states import state as state_of
from tests.fakes.tool_work import answered, blocks, called, listed, offered, opening_of
from tests.fakes.world import QUESTION, begin
from workflows.phases.agent_reading import describe_reading
from workflows.research_agent import AgentDriver
from workflows.rules.agents import Room
from workflows.run.agents import Agents
from workflows.run.inbox import Reply
from workflows.strategies.orchestrator.agent_tasks import agent_tasks
from workflows.strategies.orchestrator.orchestrator_strategy import CYCLES_USED_UP, OrchestratorPosition

Body = Mapping[str, Any]
Work = Callable[[Body], list[dict[str, Any]]]
Ran = tuple[ResearchState, InProcessHost, MessagesApi]
WISH = "Please also look at base backups"
TASKS = (
    "How often must tables of the engine be vacuumed to prevent wraparound?",
    "Which setting of the engine controls the maximum age of a table before a vacuum?",
    "When does the autovacuum daemon of the engine start although it is disabled?",
    "What do explicit locks of the engine protect against?",
    "What does the engine do when vacuuming is neglected for too long?",
)


async def with_model(folder: Path, **fields: Any) -> Ran:
    """A whole run; the fake endpoint refuses what the real one would."""
    trial = await undisturbed(folder, "orchestrator", "model", **({"depth": "medium"} | fields))
    assert {call.status for call in trial.api.calls} <= {200}
    return trial.state, trial.host, trial.api


def works(monkeypatch: pytest.MonkeyPatch, role: str, work: Work) -> None:
    monkeypatch.setitem(tool_work.TOOL_WORK, role, work)


async def directed(monkeypatch: pytest.MonkeyPatch, folder: Path, work: Work, **fields: Any) -> Ran:
    """A whole run whose orchestrator works like this."""
    works(monkeypatch, "orchestrator", work)
    return await with_model(folder, **fields)


def plays(*turns: Sequence[tuple[str, dict[str, Any]]]) -> Work:
    """A model that makes these calls turn by turn, and the last ones as often as it takes."""
    return lambda body: blocks(body, *turns[min(tool_work.turns(body), len(turns) - 1)])


REPORT = [("generate_report", {})]
THOUGHT = ("think_tool", {"reasoning": "on"})


def sends(*tasks: str) -> Work:
    """An orchestrator that sends these agents at once, then asks for the report."""
    return plays([("research_agent", {"task": task}) for task in tasks], REPORT)


def requests_of(api: MessagesApi, role: str) -> list[dict[str, Any]]:
    return [request.body for request in api.requests if request.role == role]


# --- whole runs ------------------------------------------------------------------------------------------------------
async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """A plan, an agent for each step, and a report from what all of them found (S3-001, S3-005, S3-008)."""
    trial = await undisturbed(tmp_path, "orchestrator", depth="medium")
    trial.assert_completed()
    state = trial.state
    assert state.evidence.citations
    assert {"outliner", "orchestrator", "agent"} <= set(state.accounts.engine_by_role)
    steps = state.work.plan.steps
    assert 1 <= len(steps) <= 6
    assert {step.status for step in steps} == {NodeStatus.COMPLETED}
    assert len(agent_tasks(state.work.plan)) == len(steps) == len(trial.host.agents)
    assert "strategy orchestrator" in await trial.report()


async def test_a_model_directs_agents_that_search_read_and_report(tmp_path: Path) -> None:
    """The orchestrator has control tools alone and the plan in each turn, agents have research tools and their own step;
    the writer is shown the plan, too (S3-007, S3-009, S3-012, S3-035, S3-056).
    """
    state, host, api = await with_model(tmp_path)
    assert state.work.result.outcome is Outcome.COMPLETED, (
        state.work.failed_branches,
        state.work.limitations,
        state.work.degraded,
    )
    assert state.evidence.citations
    assert state.work.degraded == []
    assert len(host.agents) == 3
    tools = {
        role: {name for body in requests_of(api, role) for name in offered(body)} for role in ("orchestrator", "agent")
    }
    assert tools["orchestrator"] == {"research_agent", "generate_report", "think_tool"}
    assert tools["agent"] == {"search", "open_page", "generate_report", "think_tool"}
    asked = [*requests_of(api, "orchestrator"), *requests_of(api, "agent")]
    assert {body["tool_choice"]["type"] for body in asked} == {"any"}
    assert [item.agent for item in state.people.decisions if item.action == "think"] == ["orchestrator"]
    step = state.work.plan.steps[1].text
    assert all(step in opening_of(body) for body in requests_of(api, "orchestrator"))
    for body in requests_of(api, "agent"):
        assert sum(one.text in opening_of(body) for one in state.work.plan.steps) == 1
    (written,) = requests_of(api, "synthesizer")
    assert step in json.dumps(written, ensure_ascii=False)


async def test_an_agent_chooses_among_titles_places_and_lines_that_match(tmp_path: Path) -> None:
    """Each hit has its path in the collection and the snippet of its search, so that "Introduction" says something."""
    async with trial_of(tmp_path, "orchestrator", "model", depth="medium") as trial:
        find = trial.world.corpus.search

        async def with_snippets(request: Any) -> Any:
            found = await find(request)
            hits = [hit.model_copy(update={"snippet": f"about {request.text[:20]}"}) for hit in found.hits]
            return found.model_copy(update={"hits": hits})

        trial.world.corpus.search = with_snippets
        await trial.conduct()
    found = element(opening_of(requests_of(trial.api, "agent")[0]), "pages")
    line = next(line for line in found.splitlines() if line.startswith("1. "))
    assert re.search(r"1\. .+ \[\S+\.md\]: about \w+", line), line
    assert page_place("corpus:manual/guide/a%20b.md") == "guide/a b.md"
    assert page_place("https://www.example.org/x?y=1") == "example.org"
    assert page_place(f"corpus:manual/{'deep/' * 40}end.md").endswith("deep/end.md")


async def test_searches_that_come_with_a_task_are_made_before_its_first_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent begins with what they found, and has at least one search left, however many came with the task."""
    searches = [f"vacuum of tables, aspect {number}" for number in range(9)]
    first = ("research_agent", {"task": TASKS[0], "steps": [1], "searches": [*searches, searches[0]]})
    report = ("generate_report", {})
    state, _, api = await directed(monkeypatch, tmp_path, plays([first], [THOUGHT], [report]))
    opening, later, *_ = requests_of(api, "agent")
    most = state.resolution.limits.max_searches_per_step - 1
    found = element(opening_of(opening), "pages")
    assert [text in found for text in searches] == [number < most for number in range(len(searches))]
    waiting = element(opening_of(opening), "searches_waiting")
    assert [text in waiting for text in searches] == [number >= most for number in range(len(searches))]
    assert "Left: 1 search, and" in opening_of(opening)
    assert listed(found)
    assert called(later)[0][0] == "open_page"
    assert "search" in offered(opening)


LONG_PAGE = "# Engine\n\n" + "\n\n".join(
    f"## Chapter {number}\n\n"
    + (f"The spindle of part {number} freezes old rows of the engine at {number} degrees. " if number % 9 == 0 else "")
    + f"Hall {number} has room for many crates, and nobody has counted them since the roof was mended. " * 20
    for number in range(60)
)
"""A page far longer than what one reader is shown."""


async def test_a_page_is_read_for_a_purpose_and_again_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader gets the focus as its question, what it was not shown comes back by number, a section is read by its
    number, and the same purpose twice is refused; a page counts once, however often it is read.
    """
    focus = "How does the spindle freeze old rows of the engine?"
    agent = plays(
        [("search", {"query": "spindle of the engine freezes old rows"})],
        [("open_page", {"index": 1, "focus": focus})],
        [("open_page", {"index": 1, "focus": focus}), ("open_page", {"index": 1, "section": 5})],
        [("generate_report", {"open_questions": []})],
    )
    works(monkeypatch, "agent", agent)
    works(monkeypatch, "orchestrator", sends(TASKS[0]))
    corpus = MemoryCorpus({"long.md": LONG_PAGE})
    async with trial_of(tmp_path, "orchestrator", "model", depth="light", corpus=corpus) as trial:
        await trial.conduct()
    read = [request.prompt for request in trial.api.requests if request.role == "analyzer"]
    assert ["earlier readings made" in prompt for prompt in read] == [False, True]
    assert f"1. {focus}" in unmarked(read[0])
    assert "spindle of part 27" in read[0]
    assert "Not shown of this source:" in read[0]
    last = next(body for body in reversed(requests_of(trial.api, "agent")) if len(answered(body)) == 4)
    later, refused, section = answered(last)[1:]
    first = next(answered(body)[1] for body in requests_of(trial.api, "agent") if len(answered(body)) == 2)
    assert ["not shown to the reader" in text for text in (first, later)] == [True, False]
    assert re.search(r"5\. Chapter \d+: [^\n]+ \([\d,]+ characters\)", first)
    assert "was read for this purpose already" in refused
    number = re.search(r"5\. Chapter (\d+): ", first)[1]
    shown = re.findall(r"(?m)^Hall (\d+) has room", unmarked(read[1]))
    assert set(shown) == {number}
    assert "could not" not in section
    assert trial.state.counts().sources == 1


async def test_a_document_that_no_search_found_opens_by_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a page that was read links to it, with the anchor; outside of the collection nothing opens, and what is not
    there is called so.
    """
    turns = [
        [("search", {"query": "engine with tables"})],
        [("open_page", {"index": 1})],
        [
            ("open_page", {"place": place})
            for place in ("[far/spindle.md]", "../secret.md", "https://x.example/a", "no.md")
        ],
        [("generate_report", {"open_questions": []})],
    ]
    works(monkeypatch, "agent", plays(*turns))
    works(monkeypatch, "orchestrator", sends(TASKS[0]))
    spindle = "# The spindle\n\nVacuum prevents wraparound of the spindle by freezing old rows of it.\n"
    corpus = MemoryCorpus({"engine.md": "# Engine\n\nThe engine has tables: see below.\n", "far/spindle.md": spindle})
    read = corpus.read

    async def with_links(url: str) -> Any:
        document = await read(url)
        return replace(document, links=["far/spindle.md#part", "#own", "https://x.example/a", "../out.md"])

    monkeypatch.setattr(corpus, "read", with_links)
    async with trial_of(tmp_path, "orchestrator", "model", depth="light", corpus=corpus) as trial:
        await trial.conduct()
    last = next(body for body in reversed(requests_of(trial.api, "agent")) if len(answered(body)) == 6)
    first = next(answered(body)[1] for body in requests_of(trial.api, "agent") if len(answered(body)) == 2)
    assert "which open by `place`: far/spindle.md\n" in f"{first}\n"
    opened, *refused, missing = answered(last)[2:]
    assert "“The spindle”" in opened
    assert "note " in opened
    assert all("is no place in the collection" in text for text in refused)
    assert "could not be read" in missing
    assert "corpus:manual/far/spindle.md" in corpus.reads
    assert {source.title for source in trial.state.evidence.readable_sources()} == {"Engine", "The spindle"}


@pytest.mark.parametrize(
    ("url", "link", "place"),
    [
        ("corpus:m/pg/a.html", "b.html#X", "pg/b.html"),
        ("corpus:m/pg/a.html", "../git/c%20d.html", "git/c d.html"),
        ("corpus:m/a.html", "../b.html", ""),
        ("corpus:m/a.html", "#X", ""),
        ("corpus:m/a.html", "a.html#X", ""),
        ("corpus:m/a.html", "mailto:x", ""),
        ("corpus:m/a.html", "/etc/passwd", ""),
        ("https://m.example/a.html", "b.html", ""),
    ],
)
def test_a_link_of_a_document_leads_to_a_place_of_its_collection(url: str, link: str, place: str) -> None:
    """Relative ones alone, and none to the page itself; the place that is shown opens the document."""
    assert linked_place(url, link) == place
    if place:
        assert page_place(document_at("m", f"[{place}]")) == place
    assert document_at("m", "corpus:m/a b.html#c") == "corpus:m/a%20b.html"
    assert document_at("m", "corpus:other/a.html") == document_at("m", "a/../../b") == document_at("m", " ") == ""


async def test_a_page_that_an_earlier_agent_has_read_is_read_for_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reader and agent of a later turn are shown what was found in a page that is opened; of no other page (S3-009)."""
    usual = model_work.analysis

    def adds_nothing(prompt: str, **more: bool) -> dict[str, Any]:
        return {"findings": [], "gaps": []} if "earlier readings made" in prompt else usual(prompt, **more)

    monkeypatch.setattr(model_work, "analysis", adds_nothing)
    works(monkeypatch, "agent", plays([("search", {"query": "engine"})], [("open_page", {"index": 1})], REPORT))
    first, second = ([("research_agent", {"task": task})] for task in TASKS[:2])
    works(monkeypatch, "orchestrator", plays(first, [THOUGHT], second, [THOUGHT], REPORT))
    corpus = MemoryCorpus({"short.md": "# Short engine\n\nThe engine has tables that must be vacuumed often.\n"})
    async with trial_of(tmp_path, "orchestrator", "model", depth="medium", corpus=corpus) as trial:
        await trial.conduct()
    found = trial.state.evidence.findings[0].statement
    prompts = [unmarked(request.prompt) for request in trial.api.requests if request.role == "analyzer"]
    assert [f"1. {found}" in prompt for prompt in prompts if "the last look" not in prompt] == [False, True]
    shown = [answered(body)[-1] for body in requests_of(trial.api, "agent") if len(answered(body)) == 2]
    assert [f"(1) {found}" in text for text in shown] == [False, True]
    hits = [answered(body)[0] for body in requests_of(trial.api, "agent") if len(answered(body)) == 1]
    assert ["read whole before" in hit for hit in hits] == [False, True]
    assert "(read whole)" in str(requests_of(trial.api, "orchestrator")[1]["messages"][-1])
    openings = [opening_of(body) for body in requests_of(trial.api, "agent")]
    assert not any(found in opening for opening in openings)


async def test_no_page_is_described_beyond_what_was_read_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page speaks about the task nowhere only if all of it was shown; what it leaves open comes back with it."""
    gap = {"description": "Whether part 9 can be mended", "suggested_queries": [], "priority": 1, "kind": "question"}
    monkeypatch.setattr(model_work, "analysis", lambda *_, **__: {"findings": [], "gaps": [gap]})
    works(monkeypatch, "orchestrator", sends(TASKS[0]))
    texts = {"long.md": LONG_PAGE, "short.md": "# Short engine\n\nThe engine has tables that are vacuumed often."}
    for name, sentence in (("long.md", "nothing in the parts that were read"), ("short.md", "all of it was read")):
        corpus = MemoryCorpus({name: texts[name]})
        async with trial_of(tmp_path / name, "orchestrator", "model", depth="light", corpus=corpus) as trial:
            await trial.conduct()
        shown = json.dumps([answered(body) for body in requests_of(trial.api, "agent")][-1])
        assert sentence in shown
        assert "left open by this page: Whether part 9 can be mended" in shown


# --- dispatch --------------------------------------------------------------------------------------------------------
async def test_five_are_asked_for_and_three_work_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls of one turn are sent, three side by side, two wait; both are on record, and each event of an agent has
    its turn and branch (S3-014, S3-018, S3-049, S3-062).
    """
    state, host, api = await directed(monkeypatch, tmp_path, sends(*TASKS))
    assert len(host.agents) == 5
    assert host.agents_at_once == AT_ONCE == 3
    dispatch = next(item for item in state.people.decisions if item.action == "dispatch")
    assert dispatch.outputs["queued"] == 2
    branching = next(event for event in state.people.events if event.type == "agents.branching")
    assert branching.data["branches"] == 5
    begun = [event for event in state.people.events if event.type == "agent.started"]
    assert branching.seq < begun[0].seq
    assert [event.data["branch"] for event in begun] == [0, 1, 2, 3, 4]
    ended = [event.data for event in state.people.events if event.type == "agent.finished"]
    assert {data["agent"]: data["branch"] for data in ended} == {
        event.data["agent"]: n for n, event in enumerate(begun)
    }
    assert {data["turn"] for data in ended} == {branching.data["turn"]}
    assert [record.status for record in state.work.agents] == [AgentStatus.DONE] * 5
    # All of them are back before the orchestrator speaks again.
    second = requests_of(api, "orchestrator")[1]
    assert len(answered(second)) == 5


# --- turns that lead nowhere -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("outline", [[], ["2. Limits (900 characters, a part of it is shown)"]])
def test_a_second_reading_that_was_shown_a_part_says_so(outline: list[str]) -> None:
    """That nothing is new is said of all of a page only where all of it was shown."""
    page = source("https://manual.example", text=EMPTY_REF)
    known = finding("The engine vacuums.", source_ids=[page.id])
    held = state_of(findings=[known], sources={page.id: page})
    lines = describe_reading(held, page, [known.id], AnalyzerResult(findings=[], evidence=[], gaps=[], outline=outline))
    assert lines == [f"nothing beyond its notes above{' in the parts that were read' if outline else ''}."]


def test_a_page_leaves_open_what_no_note_answers() -> None:
    """Of a gap that a note of another page has closed nothing is said again, and one that its own notes close is named
    with them.
    """
    page = source("https://manual.example", text=EMPTY_REF)
    notes = [finding("It upgrades from 9.2.", source_ids=[page.id]), finding("Two series.", source_ids=[page.id])]
    gaps = [gap("From which release"), gap("Which series"), gap("How long it takes")]
    closed = [gaps[0].closed_by([notes[0].id]), gaps[1].closed_by([notes[1].id]), gaps[2]]
    held = state_of(findings=notes, sources={page.id: page}, gaps=closed)
    result = AnalyzerResult(
        findings=notes[1:],
        gaps=[ProposedGap(description=one.description) for one in (gaps[0], gaps[2])],
        settled_gaps=[SettledGap(gap_id=gaps[1].id, answered_by=[notes[1].id])],
    )
    assert describe_reading(held, page, [notes[0].id], result) == [
        "note 2: Two series.",
        "left open by this page: How long it takes",
        "no longer open, by note 2: Which series",
    ]


async def test_the_orchestrator_knows_what_is_searched(tmp_path: Path) -> None:
    """Its opening names the documents, as that of the role that plans."""
    _, _, api = await with_model(tmp_path, depth="light")
    openings = [opening_of(requests_of(api, "orchestrator")[0]), requests_of(api, "outliner")[0]["messages"][-1]]
    assert "nothing else" in json.dumps(openings[1])
    assert "manual" in element(openings[0], "corpus")


async def test_thoughts_alone_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven deciding turns at most; a thought never follows a thought, and nothing is claimed (S3-017, S3-047, S3-060)."""
    state, host, api = await directed(monkeypatch, tmp_path, plays([THOUGHT]))
    assert len(requests_of(api, "orchestrator")) == 7
    assert OrchestratorPosition.read(state).cycle == 7
    assert "think_tool" not in offered(requests_of(api, "orchestrator")[1])
    assert host.agents == []
    assert state.work.result.outcome is Outcome.FAILED


async def test_a_thought_is_a_block_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside another call only the thought counts; every call is answered by the run itself (S3-013, S3-015, S3-060)."""
    agent = ("research_agent", {"task": TASKS[0]})
    _, host, api = await directed(monkeypatch, tmp_path, plays([agent, THOUGHT], [agent], REPORT))
    told = answered(requests_of(api, "orchestrator")[1])
    assert "a thought stands alone" in told[0]
    assert "Acknowledged, please continue." in told[1]
    assert len(host.agents) == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("agents", "outcome"), [(0, Outcome.FAILED), (1, Outcome.PARTIAL)])
async def test_a_turn_without_a_call_ends_with_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int, outcome: Outcome
) -> None:
    """One reminder is given; then the report is written, or the run fails where there is nothing yet (S3-033, S3-046)."""

    def work(body: Body) -> list[dict[str, Any]]:
        if len(called(body)) < agents:
            return blocks(body, ("research_agent", {"task": TASKS[0]}))
        return [{"type": "text", "text": "I would rather talk."}]

    state, host, api = await directed(monkeypatch, tmp_path, work)
    assert len(requests_of(api, "orchestrator")) == agents + 2
    assert "no tool was called" in json.dumps(requests_of(api, "orchestrator")[-1])
    assert len(host.agents) == agents
    assert state.work.result.outcome is outcome
    assert bool(state.evidence.citations) is bool(agents)
    assert f"the orchestrator called no tool in cycle {agents + 1}" in state.work.failed_branches


# --- reminders and judgements ----------------------------------------------------------------------------------------
async def test_the_second_cycle_is_reminded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reminder to look further comes in the cycle of index 1, and never again (S3-040)."""
    first, second = (("research_agent", {"task": task}) for task in TASKS[:2])
    _, _, api = await directed(monkeypatch, tmp_path, plays([first], [THOUGHT], [second], [THOUGHT], REPORT))
    turns = requests_of(api, "orchestrator")
    newest = ["compare every part of the question" in json.dumps(body["messages"][-1]) for body in turns]
    assert newest[:2] == [False, True]
    assert not any(newest[2:])


async def test_an_open_point_is_closed_by_the_orchestrator_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an agent leaves open is numbered; a later agent's findings close it only where the orchestrator says so, and
    they are those of the documents that it names. The last look is at the others.
    """
    reporting = tool_work.TOOL_WORK["agent"]
    left_open = ["How long does it take?", "Which setting disables it?"]

    def leaving(body: Body) -> list[dict[str, Any]]:
        made = reporting(body)
        for block in made:
            if block.get("name") == "generate_report" and TASKS[0] in json.dumps(body["messages"]):
                block["input"] = {"open_questions": left_open}
        return made

    works(monkeypatch, "agent", leaving)
    first, second = (("research_agent", {"task": task, "steps": [1]}) for task in TASKS[:2])
    report = ("generate_report", {"answered": [{"point": 2, "documents": [1, 99]}, {"point": 7, "documents": [1]}]})
    state, _, api = await directed(monkeypatch, tmp_path, plays([first], [THOUGHT], [second], [THOUGHT], [report]))
    answers = json.dumps(requests_of(api, "orchestrator")[-1]["messages"], ensure_ascii=False)
    assert "Open point 1: How long does it take?" in answers
    assert "Open point 2: Which setting disables it?" in answers
    statuses = {gap.description: gap.status for gap in state.evidence.gaps}
    assert [statuses[text] for text in left_open] == [GapStatus.OPEN, GapStatus.ADDRESSED]
    closed = next(gap for gap in state.evidence.gaps if gap.description == left_open[1])
    assert closed.resolved_by
    known = {finding.id for finding in state.evidence.findings}
    assert set(closed.resolved_by) <= known
    prompts = [request.prompt for request in api.requests if request.role == "analyzer"]
    (look,) = [prompt for prompt in prompts if model_work.LAST_LOOK in prompt]
    assert [text in look for text in left_open] == [True, False]


async def test_what_pages_say_nothing_on_is_no_open_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The orchestrator and the writer are told that it was looked for, and no last look is made for it."""
    reporting = tool_work.TOOL_WORK["agent"]
    looked_for = "Fixes of DETACH: the release notes name none"

    def leaving(body: Body) -> list[dict[str, Any]]:
        made = reporting(body)
        for block in made:
            if block.get("name") == "generate_report":
                block["input"] = {"nothing_on": [looked_for]}
        return made

    works(monkeypatch, "agent", leaving)
    task = ("research_agent", {"task": TASKS[0], "steps": [1]})
    state, _, api = await directed(monkeypatch, tmp_path, plays([task], [THOUGHT], REPORT))
    answers = json.dumps(requests_of(api, "orchestrator")[-1]["messages"], ensure_ascii=False)
    assert f"say nothing on this: {looked_for}" in answers
    assert "Open point" not in answers
    assert [gap.status for gap in state.evidence.gaps] == [GapStatus.UNADDRESSABLE]
    written = next(request.prompt for request in api.requests if request.role == "synthesizer")
    assert re.search(rf"{looked_for} \(\w+, priority \d, looked for and not found\)", written)
    assert not any(model_work.LAST_LOOK in request.prompt for request in api.requests if request.role == "analyzer")


async def test_an_agent_is_reminded_of_pages_after_a_search_alone(tmp_path: Path) -> None:
    """It is told to open pages after it searched, and not otherwise (S3-041)."""
    _, _, api = await with_model(tmp_path)
    for body in requests_of(api, "agent"):
        reminded = "Titles prove nothing" in json.dumps(body["messages"][-1])
        turn = len(body["messages"]) // 2
        has_pages = "open_page" in offered(body) and "Nothing new was found" not in json.dumps(body["messages"][-1])
        assert reminded == (turn in (0, 1)) or not has_pages  # before the first one the searches of the task are made


async def test_each_turn_says_what_is_left(tmp_path: Path) -> None:
    """After each answer an agent has the searches and pages left of its own, the orchestrator its turns; not the first.

    Searches that came with the task count, too.
    """
    state, _, api = await with_model(tmp_path)
    limits = state.resolution.limits
    agent = next(request for request in reversed(api.requests) if request.role == "agent").body
    searches = 1 + sum(name == "search" for name, _ in called(agent))
    pages = len({arguments["index"] for name, arguments in called(agent) if name == "open_page"})
    left = re.search(r"Left: (\d+) search(?:es)?, (\d+) pages? to open", json.dumps(agent["messages"][-1]))
    assert left is not None
    assert pages > 0
    expected = [limits.max_searches_per_step - searches, limits.max_reads_per_step - pages]
    assert [int(number) for number in left.groups()] == expected
    turns = requests_of(api, "orchestrator")
    assert "Left: " not in json.dumps(turns[0]["messages"])
    for number, body in enumerate(turns[1:], start=1):
        turn = limits.max_iterations - 1 - number
        assert f"Left: {turn} turn" in json.dumps(body["messages"][-1])


async def test_each_turn_names_the_tools_that_it_offers(tmp_path: Path) -> None:
    """Those of the request and no others; a turn that offers all of its role's names none."""
    _, _, api = await with_model(tmp_path)
    every = {"orchestrator": ORCHESTRATOR.tools, "agent": AGENT.tools}
    named = 0
    for role, tools in every.items():
        for body in requests_of(api, role):
            newest = json.dumps(body["messages"][-1])
            said = re.findall(r"Offered in this turn: ([^.]+)\.", newest)
            assert [f"`{name}`" for name in offered(body)] == (
                said[0].split(", ") if said else [f"`{tool.name}`" for tool in tools]
            )
            named += bool(said)
    assert named


@pytest.mark.parametrize("limit", ["readings", "cycles"])
async def test_no_turn_is_paid_in_which_only_the_report_is_left_to_choose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """Where no further agent can have a page read, or the thought before it takes the last turn, the report is written
    at once; what is left open is told with the limit.
    """
    limits = {"max_iterations": 3} if limit == "cycles" else {}
    if limit == "readings":
        spent = Room(0, StopReason.BUDGET_COST)
        monkeypatch.setattr(Agents, "room_for_reading", lambda *_: spent)
    state, _, api = await directed(
        monkeypatch, tmp_path, plays([("research_agent", {"task": TASKS[0]})], REPORT), limits=limits
    )
    assert len(requests_of(api, "orchestrator")) == 1
    assert state.evidence.citations
    reason = OrchestratorPosition.read(state).ended
    assert reason == (CYCLES_USED_UP if limit == "cycles" else StopReason.BUDGET_COST.text)
    assert any(item.action == "end_cycles" and item.rationale == reason for item in state.people.decisions)
    assert not any(event.data.get("phase") == "cycle-2" for event in state.people.events)
    if limit == "readings" and state.evidence.unaddressed_gaps():
        assert state.work.result.outcome is Outcome.PARTIAL


async def test_each_turn_names_the_steps_that_have_no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until they are served; the report leaves them out, and the decisions say so (S3-053, S3-056)."""
    state, _, api = await directed(
        monkeypatch, tmp_path, plays([("research_agent", {"task": TASKS[0], "steps": [1]})], REPORT)
    )
    newest = json.dumps(requests_of(api, "orchestrator")[1]["messages"][-1], ensure_ascii=False)
    assert f"no agent has finished: 2. {state.work.plan.steps[1].text}; 3. {state.work.plan.steps[2].text}" in newest
    statuses = [step.status for step in state.work.plan.steps]
    assert statuses == [NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.SKIPPED]
    assert any(item.action == "leave_out_steps" for item in state.people.decisions)
    assert state.work.result.outcome is Outcome.COMPLETED, (state.work.failed_branches, state.work.limitations)


async def test_cycles_that_are_used_up_end_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of the cycles that the limit names writes, whatever the orchestrator would decide (S3-017, C3-4)."""
    first, second = (("research_agent", {"task": task}) for task in TASKS[:2])
    state, host, api = await directed(
        monkeypatch, tmp_path, plays([first], [THOUGHT], [second]), limits={"max_iterations": 4}
    )
    assert len(requests_of(api, "orchestrator")) == 3
    assert len(host.agents) == 2
    assert state.work.result.stop_reason is StopReason.MAX_ITERATIONS
    assert state.evidence.citations


async def test_equal_tasks_are_one_whatever_their_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused; another one that differs after 500 characters is sent (S3-050)."""
    long = "Describe how often tables of the engine are vacuumed to prevent wraparound. " * 8
    state, _, api = await directed(monkeypatch, tmp_path, sends(long, long, long + "Give the defaults, too."))
    assert [record.task.id for record in state.work.agents] == ["agent-1", "agent-2"]
    assert "agent-1 had this task already" in answered(requests_of(api, "orchestrator")[1])[1]


# --- what people see -------------------------------------------------------------------------------------------------
async def test_every_event_of_an_agent_has_its_place(tmp_path: Path) -> None:
    """One turn for all that one agent does, a branch of its own, and sub-turns that count (S3-042, S3-044, S3-062)."""
    async with trial_of(tmp_path, "orchestrator", depth="medium") as trial:
        await trial.conduct()
        for branch, request in enumerate(trial.host.agents[:3]):
            driver = AgentDriver(request, trial.world.host())
            await driver.conduct()
            told = [event.data for event in driver.state.people.events]
            places = {(data["scope"], data["turn"], data["branch"]) for data in told}
            assert places == {(f"agent-{branch + 1}", 1, branch)}
            counted = [data["sub_turn"] for data in told if "tool" in data]
            assert counted == sorted(counted)
            assert set(counted) == {1, 2, 3}


# --- models and requests ---------------------------------------------------------------------------------------------
async def test_a_model_that_reasons_has_half_the_cycles_and_no_tool_to_think_with(tmp_path: Path) -> None:
    """Four cycles, of which three decide; what a request names itself stays (S3-016, S3-017)."""
    async with world_of(tmp_path, "model") as (world, api):
        world.configuration = replace(world.configuration, reasons=lambda _: True)
        trial = await begin_trial(world, "orchestrator", depth="medium")
        await trial.conduct()
        named = await begin(world, strategy="orchestrator", limits={"max_iterations": 6})
    state = trial.state
    assert state.work.resolved.limits.max_iterations == 4
    offers = {name for body in requests_of(api, "orchestrator") for name in offered(body)}
    assert offers == {"research_agent", "generate_report"}
    assert "think_tool" not in {name for body in requests_of(api, "agent") for name in offered(body)}
    assert state.work.result.outcome is Outcome.COMPLETED
    assert named.work.resolved.limits.max_iterations == 6


# --- people ----------------------------------------------------------------------------------------------------------


async def test_the_intake_hands_a_clear_question_over(tmp_path: Path) -> None:
    """It calls a tool without arguments, asks nothing, and the plan follows at once (S3-002, S3-003, S3-057)."""
    trial = await undisturbed(tmp_path, "orchestrator", "model", gates={"clarify": "auto"})
    trial.assert_completed()
    assert [call.role for call in trial.api.calls][:2] == ["intake", "outliner"]
    assert [tool["name"] for tool in requests_of(trial.api, "intake")[0]["tools"]] == ["generate_plan", "ask_person"]
    assert any(item.action == "question_is_clear" for item in trial.state.people.decisions)


async def test_questions_of_the_intake_are_waited_for(tmp_path: Path) -> None:
    """They come by a call; the answer reaches the plan, and no second round is asked (S3-004)."""
    async with begun(tmp_path, "orchestrator", "model", gates={"clarify": "required"}) as trial:
        assert (await trial.asked()).questions == [f"Which part of “{QUESTION}” do you mean?"]
        assert trial.api.counts() == {"intake": 1}
        await trial.answer(Reply(answers=["the part on freezing"]))
        await trial.task
    trial.assert_completed()
    assert trial.api.counts()["intake"] == 2
    assert "the part on freezing" in next(one.prompt for one in trial.api.requests if one.role == "outliner")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("reply", "questions"),
    [
        (
            ("ask_person", {"questions": ["3.11 or 3.12?", "1. Which\nplace?", "3.11 or 3.12?", "b", "c"]}),
            ["3.11 or 3.12?", "1. Which place?", "b"],
        ),
        ("2024 figures, or\n- later ones?", ["2024 figures, or - later ones?"]),
    ],
)
async def test_no_question_is_cut_into_lines_or_stripped_of_its_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Any, questions: list[str]
) -> None:
    """Questions come as a schema, at most three of them; words without a call are one question (S3-003)."""

    def ask(body: Body) -> list[dict[str, Any]]:
        return [{"type": "text", "text": reply}] if isinstance(reply, str) else blocks(body, reply)

    works(monkeypatch, "intake", ask)
    async with begun(tmp_path, "orchestrator", "model", gates={"clarify": "auto"}) as trial:
        assert (await trial.asked()).questions == questions


async def test_a_model_gets_a_request_of_a_person_in_its_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told the new step, and the report is refused until an agent was sent for it."""
    for_all = ("research_agent", {"task": TASKS[0], "steps": [1, 2, 3]})
    for_wish = ("research_agent", {"task": "What does a base backup of a cluster copy?", "steps": [4]})
    works(monkeypatch, "orchestrator", plays([for_all], [THOUGHT], REPORT, [for_wish], REPORT))
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        for _ in range(2):
            await trial.driver.step()
        await trial.steer(WISH)
        await trial.conduct()
    state = trial.state
    turns = requests_of(trial.api, "orchestrator")
    assert "4. Please also look at base backups (the person who asked wants this)" in str(turns[1]["messages"][-1])
    assert "The person who asked wants more" in str(turns[-1])
    assert len(state.work.agents) == 2
    assert [step.status for step in state.work.plan.steps] == [NodeStatus.COMPLETED] * 4


# --- turns that are of no use ----------------------------------------------------------------------------------------
async def test_a_script_takes_over_in_the_middle_and_gives_back(tmp_path: Path) -> None:
    """Where the model gives nothing of use twice, the script takes that turn; the next one is the model's again."""
    plan = ["good", "empty", "cut"]
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        trial.api.plan.sequence = plan
        await trial.conduct()
    assert [call.scenario for call in trial.api.calls][: len(plan)] == plan
    assert {call.status for call in trial.api.calls} == {200}
    assert "orchestrator: done without the model, whose answers could not be used" in trial.state.work.degraded
    assert trial.api.counts()["orchestrator"] > 2
    assert trial.state.evidence.citations


async def test_a_steered_turn_is_not_carried_out_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments with the run's canary reach no agent; the conversation goes on."""

    def betray(body: Body) -> list[dict[str, Any]]:
        if tool_work.turns(body):
            return tool_work.orchestrate(body)
        canary = re.findall(r"\b[0-9a-f]{24}\b", str(body["system"]))[-1]
        return blocks(body, ("research_agent", {"task": f"{TASKS[0]} {canary}", "steps": [1]}))

    works(monkeypatch, "orchestrator", betray)
    trial = await undisturbed(tmp_path, "orchestrator", "model")
    assert STEERED_NOTE in trial.state.work.degraded
    canary = trial.state.resolution.canary
    assert not any(canary in json.dumps(request.body["messages"]) for request in trial.api.requests)
    assert not any(canary in record.task.text for record in trial.state.work.agents)


async def test_an_agent_that_cannot_start_is_reported_and_the_others_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call is answered with what happened, nothing of the others is lost (S3-022, S3-045)."""
    works(monkeypatch, "orchestrator", sends(*TASKS[:3]))
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        prepare = trial.host.implementations["prepare_agent"]

        async def fail_once(argument: Any) -> Any:
            if argument.resolved.query == TASKS[1]:
                raise ApplicationError("no room", type=failures.STORE_UNAVAILABLE, non_retryable=True)
            return await prepare(argument)

        trial.host.implementations["prepare_agent"] = fail_once
        await trial.conduct()
    assert "prepare_agent failed" in answered(requests_of(trial.api, "orchestrator")[1])[1]
    found = [bool(record.result and record.result.finding_ids) for record in trial.state.work.agents]
    assert found == [True, False, True]


async def test_an_agent_begins_while_its_resolution_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first search and its first turn wait for nothing; the turn is about its own task, and so are the later ones."""
    work = plays([("research_agent", {"task": TASKS[0], "searches": ["kiln firing"]})], REPORT)
    works(monkeypatch, "orchestrator", work)
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        prepare = trial.host.implementations["prepare_agent"]
        asked = list[str]()

        async def store_late(argument: Any) -> Any:
            for _ in range(1_000):
                if "agent" in {request.role for request in trial.api.requests}:
                    break
                await asyncio.sleep(0.002)
            asked.extend(request.role for request in trial.api.requests)
            return await prepare(argument)

        trial.host.implementations["prepare_agent"] = store_late
        await trial.conduct()
    assert "agent" in asked
    turns = requests_of(trial.api, "agent")
    assert len(turns) > 1
    assert all(TASKS[0] in json.dumps(body["messages"]) for body in turns)
    assert len({json.dumps(body["system"]) for body in turns}) == 1
    assert trial.state.work.agents[0].result is not None
    assert trial.state.work.agents[0].result.finding_ids


# --- time ------------------------------------------------------------------------------------------------------------
GRACE = 10.0
LIMITS = {"deadline_seconds": 60, "agent_seconds": 12, "agent_wait_seconds": 30}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("activity", "hanging"),
    [
        ("orchestrate", range(2, 1_000)),
        ("work_on_task", range(2, 1_000)),
        ("read_source", range(2, 1_000)),
        ("write_report", range(1, 2)),  # the engine would end the second one
    ],
)
async def test_the_cascade_ends_within_the_deadline(tmp_path: Path, activity: str, hanging: range) -> None:
    """Whatever hangs, the run ends within its deadline and a grace, with a result (S3-031 to S3-034, S3-054)."""
    async with trial_of(tmp_path, "orchestrator", depth="medium", limits=LIMITS) as trial:
        work, calls = trial.host.implementations[activity], list[Any]()

        async def hang(argument: Any) -> Any:
            calls.append(argument)
            if len(calls) in hanging:
                await asyncio.sleep(3_600)
            return await work(argument)

        trial.host.implementations[activity] = hang
        begun = trial.host.clock
        trial.start()
        while not trial.task.done():
            for _ in range(30):
                await asyncio.sleep(0.001)
            assert (trial.host.clock - begun).total_seconds() <= LIMITS["deadline_seconds"] + GRACE
            await trial.host.advance(1.0)
    assert trial.state.work.result.outcome in (Outcome.PARTIAL, Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT)


# --- rules -----------------------------------------------------------------------------------------------------------
def test_the_presets_keep_the_numbers_of_the_document() -> None:
    """Eight cycles, six steps, 12 and 30 minutes for an agent, one deadline of 30 minutes, 5 of them for the report
    (S3-005, S3-017, S3-029 to S3-032, C3-1).
    """
    for depth in (Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED):
        limits = preset("orchestrator", depth)
        assert limits.max_iterations == 8
        assert limits.max_steps <= 6
        assert (limits.agent_seconds, limits.agent_wait_seconds) == (720, 1_800)
        assert (limits.deadline_seconds, limits.reserve_seconds) == (1_800, 300)
    assert preset("orchestrator", Depth.MEDIUM).max_steps == 6
