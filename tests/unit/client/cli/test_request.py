"""From options, a request file and `--set` to a request, and from a folder's name to a corpus."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from client.cli.corpus import find_corpus, name_of_folder
from client.cli.errors import CommandError
from client.cli.options import RunOptions
from client.cli.request import RequestedRun, build_request, merge, parse_assignments, read_request
from contracts.request import Depth, EngineChoice
from contracts.state import ResearchState
from workers.settings.loading import Settings


async def wanted(options: RunOptions, state: ResearchState | None = None, **settings: Any) -> RequestedRun:
    """The request of these options, where one run is stored and no corpus is registered."""

    async def stored_state(_: str) -> ResearchState | None:
        return state

    async def corpus_folders() -> dict[str, Path]:
        return {"manual": Path.cwd()}

    stores = SimpleNamespace(corpus_folders=corpus_folders)
    context: Any = SimpleNamespace(settings=Settings(**settings), stores=stores, stored_state=stored_state)
    return await read_request(context, options)


async def test_options_win_over_the_file_and_set_over_both(tmp_path: Path) -> None:
    """File < options < --set."""
    path = tmp_path / "request.json"
    path.write_text('{"query": "file", "depth": "light", "engine": "model", "limits": {"max_iterations": 1}}')
    options = RunOptions(
        question="option", request_file=path, corpus=str(tmp_path), engine="extractive", exclude=["example.com"],
        protect=["notes/a.md", "https://example.org/b"],
        assignments=["limits.max_sources=9", "depth=medium"],
    )  # fmt: skip
    made = await wanted(options)
    assert made.folder == tmp_path
    assert (made.request.query, made.request.depth) == ("option", Depth.MEDIUM)
    assert (made.request.engine, made.request.exclude) == (EngineChoice.EXTRACTIVE, ["example.com"])
    assert made.request.limits.model_dump(exclude_none=True) == {"max_iterations": 1, "max_sources": 9}
    assert made.request.protected_sources == ["notes/a.md", "https://example.org/b"]


async def test_a_request_can_be_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--request -`; problems are worded as for a file."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"query": "piped"}')))
    assert (await wanted(RunOptions(request_file=Path("-")))).request.query == "piped"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nonsense")))
    with pytest.raises(CommandError, match="standard input"):
        await wanted(RunOptions(request_file=Path("-")))


@pytest.mark.parametrize("question", [None, "-"])
async def test_a_question_can_be_piped_in(monkeypatch: pytest.MonkeyPatch, question: str | None) -> None:
    """`-` is standard input, and so is a pipe where no question is named."""
    monkeypatch.setattr("sys.stdin", io.StringIO("  Why?\n"))
    assert (await wanted(RunOptions(question=question))).request.query == "Why?"
    assert (await wanted(RunOptions(question="How?"))).request.query == "How?"


async def test_a_named_model_is_meant() -> None:
    """No report without it: the engine is a model, and without an endpoint the run is refused."""
    endpoint = {"models": {"default": "m", "base_url": "http://127.0.0.1:1"}}
    assert (await wanted(RunOptions(question="q", model="n"), **endpoint)).request.engine is EngineChoice.MODEL
    with pytest.raises(CommandError, match="set ANTHROPIC_API_KEY"):
        await wanted(RunOptions(question="q", model="n"))


async def test_a_cluster_has_its_own_corpora() -> None:
    """A name is left to its workers; a folder of this machine is refused."""
    cluster = {"temporal_variables": {"TEMPORAL_ADDRESS": SecretStr("cluster:7233")}}
    assert (await wanted(RunOptions(question="q", corpus="theirs"), **cluster)).request.corpus == "theirs"
    with pytest.raises(CommandError, match="cannot read your folders"):
        await wanted(RunOptions(question="q", corpus="./mine"), **cluster)


def test_set_is_typed_by_the_request() -> None:
    """Numbers, lists and objects become values of the request; `null` takes one back; `=` may be in a value."""
    values = parse_assignments(
        [
            "limits.max_iterations=2",
            "limits.deadline_seconds=90.5",
            "output.target_words = 400",
            "output.sections=A, B",
            "gates.policy=advisory",
            'metadata={"ticket": 7}',
            "query=a=b",
        ]
    )
    request = build_request(values)
    assert (request.query, request.limits.max_iterations, request.limits.deadline_seconds) == ("a=b", 2, 90.5)
    assert (request.output.target_words, request.output.sections) == (400, ["A", "B"])
    assert (request.gates.policy, request.metadata) == ("advisory", {"ticket": 7})
    taken_back = merge(values, parse_assignments(["limits.max_iterations=null", 'output.sections=["A, B"]']))
    assert build_request(taken_back).limits.max_iterations is None
    assert build_request(taken_back).output.sections == ["A, B"]


def test_a_folder_gets_a_stable_name(tmp_path: Path) -> None:
    """The same folder always has the same name; another folder of that name gets one of its own."""
    first, second = tmp_path / "a" / "My Docs!", tmp_path / "b" / "My Docs!"
    name = name_of_folder(first, {})
    assert name == "My-Docs"
    other = name_of_folder(second, {name: first})
    assert other.startswith("My-Docs-")
    assert name_of_folder(second, {name: first, other: second}) == other


def test_a_name_that_means_two_folders_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--corpus manual` is the registered corpus or the folder here, and never one of them by surprise."""
    here, other = tmp_path / "manual", tmp_path / "other" / "manual"
    for folder in (here, other):
        folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    def found(given: str, **registered: Path) -> tuple[str, Path | None]:
        return find_corpus(given, registered, cluster=False)

    with pytest.raises(CommandError, match=f"write {other} or ./manual"):
        found("manual", manual=other)
    assert found("./manual", manual=other)[1] == here
    assert found(str(other), manual=other) == ("manual", other)
    assert found("manual") == ("manual", here)
    assert found("manual", manual=here) == ("manual", None)
    with pytest.raises(CommandError, match="research corpus remove manual"):
        found("manual", manual=tmp_path / "gone")
