"""From options, a request file and `--set` to a request, and from a folder's name to a corpus."""

import io
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from pydantic import SecretStr

from activities.preparation import merge
from client.cli.corpus import find_corpus, name_of_folder
from client.cli.options import RunOptions
from client.cli.output import CommandError
from client.cli.preflight import RequestedRun, build_request, parse_assignments, read_request
from contracts.request import Depth
from workers.settings.loading import Settings


async def wanted(options: RunOptions, **settings: Any) -> RequestedRun:
    """The request of these options, where nothing is stored and the folder here is a corpus."""
    context = AsyncMock(settings=Settings(**settings))
    context.stored_state.return_value = None
    context.stores.corpus_folders.return_value = {"manual": Path.cwd()}
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
    assert (made.request.engine, made.request.exclude) == ("extractive", ["example.com"])
    assert made.request.limits.model_dump(exclude_none=True) == {"max_iterations": 1, "max_sources": 9}
    assert made.request.protected_sources == ["notes/a.md", "https://example.org/b"]


async def test_requests_and_questions_can_be_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input, and so is a pipe where no question is named; problems are worded as for a file."""
    for piped, options, query in (
        ('{"query": "piped"}', RunOptions(request_file=Path("-")), "piped"),
        ("  Why?\n", RunOptions(question="-"), "Why?"),
        ("  Why?\n", RunOptions(), "Why?"),
        ("  Why?\n", RunOptions(question="How?"), "How?"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        assert (await wanted(options)).request.query == query
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nonsense")))
    with pytest.raises(CommandError, match="standard input"):
        await wanted(RunOptions(request_file=Path("-")))


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
            "limits.deadline_seconds = 90.5",
            "output.sections=A, B",
            'metadata={"ticket": 7}',
            "query=a=b",
        ]
    )
    request = build_request(values)
    assert (request.query, request.limits.max_iterations, request.limits.deadline_seconds) == ("a=b", 2, 90.5)
    assert (request.output.sections, request.metadata) == (["A", "B"], {"ticket": 7})
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
