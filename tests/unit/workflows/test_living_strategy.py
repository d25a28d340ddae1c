"""The strategy `living`: what its agent is shown and offered, turn by turn, in whole runs by the real driver."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contracts.addresses import digest, page_place
from contracts.evidence import DocumentRef, Finding, ReportDraft
from contracts.outcome import CallAccount
from contracts.plan import Plan, PlanNode
from contracts.roles import AnalyzerResult
from contracts.state import EvidenceState, ResearchState, WorkState
from contracts.vocabulary import EngineKind, Outcome, StopReason
from tests.every_strategy.joined import Trial, undisturbed
from tests.fakes import model_work, states, tool_work
from tests.fakes.model_work import element
from tests.fakes.tool_work import answered, called, listed, offered, opening_of
from workflows.phases.agent_reading import MAX_LISTED_SECTIONS, describe_reading, list_unread
from workflows.strategies.living.live_report import unwritten_notes

Body = Mapping[str, Any]


async def run_of(folder: Path, **fields: Any) -> tuple[Trial, list[Body]]:
    """A whole run with a model, and the requests of its agent."""
    trial = await undisturbed(folder, "living", "model", **({"gates": {"approve": "none"}} | fields))
    return trial, [request.body for request in trial.api.requests if request.role == "living_agent"]


async def test_the_agent_is_offered_only_tools_that_can_have_an_effect(tmp_path: Path) -> None:
    """It cannot write before there are notes, or end before a page was fetched; the plan's queries are asked before."""
    trial, bodies = await run_of(tmp_path)
    assert trial.state.work.result.outcome is Outcome.COMPLETED, (
        trial.state.work.failed_branches,
        trial.state.work.limitations,
    )
    assert trial.state.work.ending.unanswered == 0
    offers = [offered(body) for body in bodies]
    assert offers[0] == ["web_search", "fetch_url"]
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
    draft = await trial.world.content.get_text(trial.state.evidence.draft.document)
    for text in written:
        shown = [line.partition("¦")[2] for line in text.partition("It now reads:")[2].splitlines() if "¦" in line]
        assert shown
        assert "[ev-" not in text
        assert " ".join(shown).split()[3] in draft


async def test_the_agent_gets_what_is_left_after_each_answer(tmp_path: Path) -> None:
    """The pages that it may still fetch, its turns, and the queries of the plan that it has not asked."""
    trial, bodies = await run_of(tmp_path)
    assert "Left: " not in str(bodies[0]["messages"])
    limit = trial.state.resolution.limits.max_sources
    for number, body in enumerate(bodies[1:], start=2):
        newest = str(body["messages"][-1])
        fetched = sum(name == "fetch_url" for name, _ in called(body))
        assert f"Left: {limit - fetched} page" in newest
        assert f"{31 - number} turns, this one included" in newest
        asked = {arguments["query"] for name, arguments in called(body) if name == "web_search"}
        unasked = [query.text for query in trial.state.work.plan.steps if query.text not in asked]
        assert all(query in newest for query in unasked)
    assert f"Words of each section: {trial.state.work.plan.outline[0]}: " in str(bodies[-1]["messages"][-1])


async def test_a_search_names_the_pages_that_it_found_again(tmp_path: Path) -> None:
    """A page is listed once; a later search that finds it says so by its number, so that it does not seem to be missing."""
    _, bodies = await run_of(tmp_path)
    found = element(opening_of(bodies[0]), "pages")
    assert len(set(listed(found))) == len(listed(found)) > 0
    first, second, *_ = found.split("Nothing new was found")
    assert "known from before" not in first
    assert re.search(r"Also found, and known from before: page 1(, \d)*\.", second)


async def test_the_queries_of_the_plan_are_searched_before_the_first_turn(tmp_path: Path) -> None:
    """The agent would have to ask them in any case: it begins with what they found, and asks none of them itself."""
    trial, bodies = await run_of(tmp_path)
    found = element(opening_of(bodies[0]), "pages")
    queries = [query.text for query in trial.state.work.plan.sub_queries]
    assert queries
    assert all(f"“{text}”" in found for text in queries)
    assert "web_search" not in [name for name, _ in called(bodies[-1])]
    assert {name for name, _ in called(bodies[1])} == {"fetch_url"}


async def test_a_report_of_a_model_has_no_statement_of_rules(tmp_path: Path) -> None:
    """When the calls are used up, pages that no model read stay unread, and the notes so far are the report."""
    trial, _ = await run_of(tmp_path, limits={"max_model_calls": 7})
    state = trial.state
    assert state.work.result.stop_reason is StopReason.BUDGET_CALLS
    assert state.evidence.findings
    assert not any(finding.by_rules for finding in state.evidence.findings)
    assert [source.analyzed for source in state.evidence.readable_sources()].count(False) == 2
    assert "2 pages of those read could not be analyzed any more" in state.work.degraded


async def test_without_any_note_of_a_model_rules_still_find_passages(tmp_path: Path) -> None:
    """A run whose calls are used up before the first page was read reports what words match."""
    trial, _ = await run_of(tmp_path, limits={"max_model_calls": 4})
    assert trial.state.evidence.findings
    assert all(finding.by_rules for finding in trial.state.evidence.findings)
    assert trial.state.evidence.citations


async def test_what_the_agent_left_open_is_looked_for_in_pages_already_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refiner sees its questions with passages of the pages; their sections are read again and written down, once."""
    question = "How often must tables be vacuumed?"
    sensible = tool_work.TOOL_WORK["living_agent"]

    def asking(body: Body) -> list[dict[str, Any]]:
        blocks = sensible(body)
        for block in blocks:
            if block.get("name") == "finish":
                block["input"]["open_questions"] = [question]
        return blocks

    def refining(prompt: str) -> dict[str, Any]:
        listed = element(model_work.unmarked(prompt), "gaps")
        found = re.findall(r"^(gap-\w+): .*passages (\d+)", listed, re.MULTILINE)
        judged = [{"gap_id": gap, "read_further": [int(number)]} for gap, number in found]
        return {"gap_analysis": judged, "iteration_recommendation": {"should_iterate": False}}

    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", asking)
    monkeypatch.setattr(model_work, "refinement", refining)
    trial, _ = await run_of(tmp_path)
    prompts = {role: [one.prompt for one in trial.api.requests if one.role == role] for role in ("refiner", "analyzer")}
    assert len(prompts["refiner"]) == 1
    assert question in prompts["refiner"][0]
    assert "Nothing more is searched" in prompts["refiner"][0]
    further = [prompt for prompt in prompts["analyzer"] if "were chosen because they may answer" in prompt]
    assert len(further) == 1
    assert trial.state.work.result.outcome is Outcome.COMPLETED
    cited = set(trial.state.evidence.draft.evidence_ids)
    read = {node.id for node in trial.state.work.plan.nodes if node.sections}
    noted = [finding for finding in trial.state.evidence.findings if finding.sub_query_id in read]
    assert all(cited & set(finding.evidence_ids) for finding in noted)


async def test_notes_that_the_agent_left_out_are_not_quoted_by_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it has finished of its own accord, the report stays as it is; the log counts the notes that are not in it."""
    sensible = tool_work.TOOL_WORK["living_agent"]

    def choosing(body: Body) -> list[dict[str, Any]]:
        if any(name == "update_report" for name, _ in called(body)):
            headings = re.findall(r"^- (.+)$", element(tool_work.opening_of(body), "outline"), re.MULTILINE)
            return tool_work.blocks(body, ("finish", {"open_questions": headings}))
        made = sensible(body)
        updates = [block for block in made if block.get("name") == "update_report"]
        for block in updates:
            block["input"]["notes"] = block["input"]["notes"][:1]
        return [block for block in made if block not in updates[1:]]

    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", choosing)
    trial, _ = await run_of(tmp_path)
    state = trial.state
    assert state.accounts.rule_answers == {}
    (decision,) = (one for one in state.people.decisions if one.action == "leave_out")
    cited = set(state.evidence.draft.evidence_ids)
    left_out = [finding for finding in state.evidence.findings if not cited.intersection(finding.evidence_ids)]
    assert f"with {len(left_out)} of its {len(state.evidence.findings)} notes" in decision.rationale
    assert len(left_out) > 0


def test_notes_of_rules_are_not_due_beside_those_of_a_model() -> None:
    """Neither the fallback of the agent nor the completion writes them; where there is nothing else, they do."""
    notes = [
        Finding(id=f"f-{n}", statement=f"Note {n}", evidence_ids=[f"ev-{n}"], by_rules=n == 1, sub_query_id="q-1")
        for n in range(2)
    ]
    state = ResearchState(
        work=WorkState(plan=Plan(nodes=[PlanNode(id="q-1", text="one")], outline=["Overview"])),
        evidence=EvidenceState(findings=notes),
    )
    assert unwritten_notes(state, []) == {"Overview": [1]}
    assert unwritten_notes(ResearchState(work=state.work, evidence=EvidenceState(findings=notes[1:])), []) == {
        "Overview": [1]
    }


async def test_no_page_can_be_fetched_beyond_the_limit_of_sources(tmp_path: Path) -> None:
    """Neither fetching nor searching is offered then, once every query of the plan was searched."""
    trial, bodies = await run_of(tmp_path, limits={"max_sources": 1})
    assert "fetch_url" in offered(bodies[0])
    assert {"fetch_url", "web_search"}.isdisjoint(offered(bodies[-1]))
    assert len(trial.state.evidence.readable_sources()) == 1


async def test_the_agent_fetches_a_page_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a search listed by the place that it was listed with; another scheme than the collection's is refused."""
    sensible = tool_work.TOOL_WORK["living_agent"]

    def by_place(body: Body) -> list[dict[str, Any]]:
        blocks = sensible(body)
        text = json.dumps(body["messages"], ensure_ascii=False)
        for block in (block for block in blocks if block.get("name") == "fetch_url"):
            found = re.search(rf"{block['input']['page']}\. [^\n]+? \[([^\]]+\.md)\]", text)
            block["input"] = {"place": found[1] if found and not fetched else "file:///etc/passwd"}
            fetched.append(block["input"]["place"])
        return blocks

    fetched: list[str] = []
    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", by_place)
    trial, bodies = await run_of(tmp_path)
    (read,) = trial.state.evidence.readable_sources()
    assert page_place(read.url) == fetched[0]
    assert any("is no place in the collection" in text for body in bodies for text in answered(body))


async def test_an_agent_that_finds_nothing_is_no_outage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends without a note and without an error: the run is empty, and no service is blamed."""
    monkeypatch.setattr(model_work, "analysis", lambda *_, **__: {"findings": [], "gaps": []})
    trial, _ = await run_of(tmp_path)
    result = trial.state.work.result
    assert (result.outcome, result.stop_reason) == (Outcome.EMPTY, StopReason.NO_EVIDENCE)
    assert trial.state.work.failed_branches == []
    assert any("without a note" in line or "brought nothing" in line for line in trial.state.work.degraded)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_notes_that_fit_no_update_are_named(tmp_path: Path, engine: str) -> None:
    """A note longer than an update may be is in no section, and the report says how many under which headings."""
    limits = {"max_update_characters": 200}
    trial = await undisturbed(tmp_path, "living", engine, gates={"approve": "none"}, limits=limits)
    state = trial.state
    cited = set(state.evidence.draft.evidence_ids)
    omitted = [finding for finding in state.evidence.findings if not cited.intersection(finding.evidence_ids)]
    assert omitted
    (line,) = (line for line in state.work.degraded if "no room in the report" in line)
    assert line.startswith(f"{len(omitted)} note")
    assert any(heading in line for heading in state.work.plan.outline)


async def test_gaps_are_not_judged_without_a_model(tmp_path: Path) -> None:
    """Rules search every query; the reason of the end does not say that gaps were judged."""
    trial = await undisturbed(tmp_path, "living", gates={"approve": "none"})
    assert trial.state.evidence.unaddressed_gaps()
    assert trial.state.work.result.stop_reason is StopReason.NO_ACTIONABLE_GAPS
    assert trial.state.work.ending.unanswered is None  # no rule judges that


def test_notes_that_fit_no_heading_are_divided_with_empty_ones() -> None:
    """In their order and in equal parts; notes that share a word with a heading stay, and so does a single one."""
    outline = ["Overview", "Settings and limits", "Steps"]
    notes = [
        Finding(id=f"f-{n}", statement=f"Zyzzyva {n}", evidence_ids=[f"ev-{n}"], sub_query_id="q-2") for n in range(8)
    ]
    notes.append(Finding(id="f-8", statement="The settings", evidence_ids=["ev-8"], sub_query_id="q-2"))
    queries = [PlanNode(id="q-1", text="one"), PlanNode(id="q-2", text="two")]
    state = ResearchState(
        work=WorkState(plan=Plan(nodes=queries, outline=outline)), evidence=EvidenceState(findings=notes)
    )
    assert unwritten_notes(state, []) == {outline[0]: [1, 2, 3], outline[1]: [4, 5, 6, 9], outline[2]: [7, 8]}
    one = ResearchState(work=state.work, evidence=EvidenceState(findings=notes[:1]))
    assert unwritten_notes(one, []) == {outline[0]: [1]}
    written = ReportDraft(document=DocumentRef(hash=digest("")), words_by_section=dict.fromkeys(outline, 9))
    assert unwritten_notes(
        ResearchState(work=state.work, evidence=EvidenceState(findings=notes, draft=written)), []
    ) == {outline[1]: list(range(1, 10))}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("ends", ["finish", "nothing"])
@pytest.mark.parametrize("takes", ["some", "none"])
async def test_notes_that_the_writer_leaves_out_for_good_are_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str, takes: str
) -> None:
    """The agent is told which, apart from those without room; nobody writes them at the end, and no limit is blamed."""
    sensible, omitted = model_work.update, list[str]()

    def update(prompt: str) -> dict[str, Any]:
        statements = re.findall(r"^\[ev-\w+\]\S* (.+)$", element(model_work.unmarked(prompt), "findings"), re.MULTILINE)
        answer = sensible(prompt)
        if omitted or len(statements) < 2:
            return answer
        omitted.append(statements[0])
        if takes == "none":
            return {"operations": [], "omitted": list(range(1, len(statements) + 1))}
        first = answer["operations"][0]["text"].split("]. ")[0] + "]."
        rest = answer["operations"][0]["text"].removeprefix(first).strip()
        return {"operations": [{"kind": "append", "anchor": 0, "text": rest or first}], "omitted": [1]}

    agent = tool_work.TOOL_WORK["living_agent"]

    def ending(body: Body) -> list[dict[str, Any]]:
        blocks = agent(body)
        is_over = ends == "nothing" and any(block.get("name") == "finish" for block in blocks)
        return [{"type": "text", "text": "I think."}] if is_over else blocks

    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", ending)
    monkeypatch.setattr(model_work, "update", update)
    trial, bodies = await run_of(tmp_path)
    assert omitted
    number = next(
        n for n, one in enumerate(trial.state.evidence.findings, start=1) if one.statement.startswith(omitted[0][:60])
    )
    told = [text.replace("\n", " ") for text in answered(bodies[-1])]
    reason = f"left out the notes {number} for good" if takes == "some" else "left out all of these notes"
    assert any(reason in re.sub(r"\w\w¦ ?", "", text) for text in told)
    assert not any(f"Not reported yet: the notes {number} (" in text for text in told)
    assert trial.state.work.result.outcome is Outcome.COMPLETED
    assert not set(trial.state.evidence.findings[number - 1].evidence_ids) & set(
        trial.state.evidence.draft.evidence_ids
    )
    assert not any("no room" in line for line in trial.state.work.degraded)


async def test_two_readings_of_a_page_in_one_turn_list_their_own_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each note stands in one answer, that of the reading that made it; a reading without a note of its own says so."""
    sensible = tool_work.TOOL_WORK["living_agent"]

    def twice(body: Body) -> list[dict[str, Any]]:
        blocks = sensible(body)
        first = next((block for block in blocks if block.get("name") == "parse_content"), None)
        if first is None or any(name == "parse_content" for name, _ in called(body)):
            return blocks
        again = {**first, "id": f"{first['id']}_again", "input": {**first["input"], "focus": "vacuum once more"}}
        return [first, again]

    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", twice)
    _, bodies = await run_of(tmp_path)
    listed = [
        re.findall(r"note (\d+): ", text)
        for text in answered(bodies[-1])
        if "note 1: " in text or "nothing beyond its notes above" in text
    ]
    assert [numbers.count("1") for numbers in listed][:2] == [1, 0]


def test_a_reading_lists_the_notes_that_it_made() -> None:
    """Not those of another reading of the same page, nor what was known before."""
    source = states.source("corpus:m/a")
    findings = [states.finding(text, source_ids=[source.id]) for text in ("known", "of another", "its own")]
    made = states.state(findings=findings, sources=states.sources(source))
    result = AnalyzerResult(findings=[findings[0], findings[2]], account=CallAccount(engine=made.resolution.engine))
    assert describe_reading(made, source, {findings[0].id}, result) == ["note 3: its own"]


OUTLINE = ["When tables are vacuumed", "How to see it", "How to put it right"]


def noted(*statements: str, priority: int = 2) -> ResearchState:
    """A state with these notes of no query, none of them in the report yet."""
    notes = [
        Finding(id=f"f-{n}", statement=text, evidence_ids=[f"ev-{n}"], priority=priority)
        for n, text in enumerate(statements)
    ]
    return ResearchState(work=WorkState(plan=Plan(outline=OUTLINE)), evidence=EvidenceState(findings=notes))


def test_a_note_without_a_matching_heading_is_not_put_into_the_first_section() -> None:
    """A word that every heading has decides nothing for the first, and the shortest section takes what fits none."""
    outline = ["Vacuum of tables", "Views that show vacuum", "Repair by vacuum"]
    state = noted("Vacuum has views of its progress", "Zyzzyva")
    state.work.plan = state.work.plan.with_fields(outline=outline)
    state.evidence.draft = ReportDraft(
        document=DocumentRef(hash=digest("")), words_by_section={outline[0]: 90, outline[1]: 20, outline[2]: 5}
    )
    assert unwritten_notes(state, []) == {outline[1]: [1], outline[2]: [2]}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("named", [True, False])
async def test_last_notes_get_the_section_that_the_arranger_or_their_writer_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """One call assigns them all; a writer that refuses one names its heading, where it is offered once, and what no
    section takes is named with its number if it has the highest priority.
    """
    sensible = model_work.update
    analysis = model_work.analysis
    offered_under = dict[str, list[str]]()
    statements = list[str]()

    def important(*arguments: Any, **fields: Any) -> dict[str, Any]:
        answer = analysis(*arguments, **fields)
        for finding in answer["findings"]:
            finding["priority"] = 1
        return answer

    def arrangement(prompt: str) -> dict[str, Any]:
        notes = re.findall(
            r"^\d+\. \(priority 1\) (.+)", element(model_work.unmarked(prompt), "findings"), re.MULTILINE
        )
        statements.extend(notes)
        return {"sections": [{"heading": 2, "notes": list(range(1, len(notes)))}]}

    def update(prompt: str) -> dict[str, Any]:
        plain = model_work.unmarked(prompt)
        heading, notes = element(plain, "heading"), element(plain, "findings")
        for text in statements:
            if text[:50] in notes:
                offered_under.setdefault(text, []).append(heading)
        headings = re.findall(r"^\d+\. (.+)$", element(plain, "outline"), re.MULTILINE)
        if named and headings.index(heading) == 1:
            count = len(re.findall(r"^\d+\. Finding", notes, re.MULTILINE))
            return {"operations": [], "belongs_under": [{"note": n + 1, "heading": 1} for n in range(count)]}
        return sensible(prompt)

    def silent(body: Body) -> list[dict[str, Any]]:
        if any(name == "parse_content" for name, _ in called(body)):
            return [{"type": "text", "text": "I think."}]
        return agent(body)

    agent = tool_work.TOOL_WORK["living_agent"]
    monkeypatch.setitem(tool_work.TOOL_WORK, "living_agent", silent)
    monkeypatch.setattr(model_work, "analysis", important)
    monkeypatch.setattr(model_work, "arrangement", arrangement)
    monkeypatch.setattr(model_work, "update", update)
    trial, _ = await run_of(tmp_path)
    state = trial.state
    outline = state.work.plan.outline
    assert len(statements) > 2
    assert [request.role for request in trial.api.requests].count("arranger") == 1
    assert statements[-1] not in offered_under
    for text in statements[:-1]:
        headings = offered_under[text]
        assert list(dict.fromkeys(headings)) == ([outline[1], outline[0]] if named else [outline[1]])
    cited = set(state.evidence.draft.evidence_ids)
    (number,) = (n for n, one in enumerate(state.evidence.findings, start=1) if not cited & set(one.evidence_ids))
    assert state.evidence.findings[number - 1].statement.startswith(statements[-1][:50])
    assert f"1 note of the highest priority found no section that took them: {number}" in state.work.degraded


def test_a_long_list_of_hidden_sections_is_short() -> None:
    """The first are listed with all that is known of them, of the others a few words; none is hidden."""
    terms = "; ".join(f"setting_{number}" for number in range(15))
    outline = [f"{number}. Chapter {number}; {terms} (1,200 characters)" for number in range(30)]
    result = AnalyzerResult(findings=[], outline=outline, account=CallAccount(engine=EngineKind.MODEL))
    head, *lines, rest = list_unread(states.state(), result)
    assert "give a number as `section`" in head
    assert lines == outline[:MAX_LISTED_SECTIONS]
    assert all(f"{number}. Chapter {number}" in rest for number in range(MAX_LISTED_SECTIONS, 30))
    assert rest.count("setting_2") == 20
    assert len(rest) < 2_000
    assert len(list_unread(states.state(), result.with_fields(outline=outline[:3]))) == 4
