"""From options to a request."""

import io
from pathlib import Path

import pytest

from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import find_corpus, name_of_folder
from client.cli.options import RunOptions
from client.cli.preflight import limits_words, resolve_here
from client.cli.request_options import ask
from client.view.decision_wording import providers_line
from contracts.request import Depth, EngineChoice, Limits, ResearchRequest
from contracts.vocabulary import EngineKind, ThinkMode
from workers.settings.loading import Settings
from workers.settings.models import ModelsSettings

SETTINGS = Settings()


def test_options_win_over_the_file_and_set_over_both(tmp_path: Path) -> None:
    """File < options < --set."""
    path = tmp_path / "request.json"
    path.write_text('{"query": "file", "depth": "light", "engine": "model", "limits": {"max_iterations": 1}}')
    options = RunOptions(
        question="option", request_file=path, corpus=str(tmp_path), engine="extractive",
        assignments=["limits.max_sources=9", "depth=medium"],
    )  # fmt: skip
    request = ask(options, SETTINGS, {}).request
    assert (request.query, request.depth, request.engine) == ("option", Depth.MEDIUM, EngineChoice.EXTRACTIVE)
    assert request.limits.model_dump(exclude_none=True) == {"max_iterations": 1, "max_sources": 9}


def test_a_folder_gets_a_stable_name(tmp_path: Path) -> None:
    """The same folder has the same name for ever; another folder of that name gets one of its own."""
    first, second = tmp_path / "a" / "My Docs!", tmp_path / "b" / "My Docs!"
    name = name_of_folder(first, {})
    assert name == "My-Docs"
    other = name_of_folder(second, {name: first})
    assert other.startswith("My-Docs-")
    assert name_of_folder(second, {name: first, other: second}) == other


@pytest.mark.parametrize("given", ["", "  "])
def test_no_name_is_not_the_folder_one_is_in(given: str) -> None:
    """An empty variable in a script must not have the working directory indexed."""
    with pytest.raises(CommandError, match="is empty"):
        find_corpus(given, {})


def test_a_name_that_means_two_folders_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--corpus manual` is the registered corpus or the folder here, and never one of them by surprise."""
    here, other = tmp_path / "manual", tmp_path / "other" / "manual"
    for folder in (here, other):
        folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError, match=f"write {other} or ./manual"):
        find_corpus("manual", {"manual": other})
    assert find_corpus("./manual", {"manual": other})[1] == here
    assert find_corpus(str(other), {"manual": other}) == ("manual", other)
    assert find_corpus("manual", {}) == ("manual", here)
    assert find_corpus("manual", {"manual": here}) == ("manual", None)
    monkeypatch.chdir(other)
    assert find_corpus("manual", {"manual": other}) == ("manual", None)


def test_a_corpus_whose_folder_is_gone_is_told_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything starts; a folder of that name here takes its place under a name of its own."""
    monkeypatch.chdir(tmp_path)
    gone = {"manual": tmp_path / "gone"}
    with pytest.raises(CommandError, match="research corpus remove manual"):
        find_corpus("manual", gone)
    (tmp_path / "manual").mkdir()
    name, folder = find_corpus("manual", gone)
    assert (name.startswith("manual-"), folder) == (True, tmp_path / "manual")


def test_a_cluster_is_asked_for_its_own_corpora() -> None:
    """A name is for its workers to know; a folder of this machine is refused."""
    cluster = SETTINGS.model_copy(update={"temporal_variables": {"TEMPORAL_ADDRESS": "cluster:7233"}})
    assert ask(RunOptions(question="What is it?", corpus="theirs"), cluster, {}).request.corpus == "theirs"
    with pytest.raises(CommandError, match="cannot read your folders"):
        ask(RunOptions(question="What is it?", corpus="./mine"), cluster, {})


def test_a_request_file_cannot_name_an_unknown_corpus(tmp_path: Path) -> None:
    """Found out before anything is started."""
    path = tmp_path / "request.json"
    path.write_text('{"query": "q", "corpus": "unheard-of"}')
    with pytest.raises(CommandError, match="unheard-of"):
        ask(RunOptions(request_file=path), SETTINGS, {})


def test_where_text_goes_is_told() -> None:
    """Without a model nothing leaves; with one the host is named, and whether it is this machine."""
    away = Settings(models=ModelsSettings(default="m", base_url="https://models.example/v1"))
    here = Settings(models=ModelsSettings(default="m", base_url="http://127.0.0.1:8080"))
    request = ResearchRequest(query="q", corpus="manual")
    without = resolve_here(request, SETTINGS)
    assert (without.engine, without.egress) == (EngineKind.EXTRACTIVE, "nothing leaves this machine")
    extractive = request.model_copy(update={"engine": EngineChoice.EXTRACTIVE})
    assert resolve_here(extractive, away).egress == "nothing leaves this machine"
    assert resolve_here(request, away).egress == "passages go to models.example"
    assert resolve_here(request, here).egress == "passages go to 127.0.0.1:8080 (this machine)"


def test_without_a_folder_the_web_is_searched() -> None:
    """Without any key as well: who is asked is named, and what would make it better (S0-102)."""
    made = resolve_here(ResearchRequest(query="q"), SETTINGS)
    assert made.web
    assert "searches go to " in made.egress
    assert "pages are read from the web" in made.egress
    assert "wikipedia" in providers_line(made.providers)
    assert any("TAVILY_API_KEY" in line for line in made.advice)
    assert any("RESEARCH_MODEL" in line for line in made.advice)


@pytest.mark.parametrize(
    ("search", "code", "said"),
    [
        ({"providers": ["tavily"]}, ExitCode.NOTHING_TO_WORK_WITH, "TAVILY_API_KEY"),
        ({"source_types": ["news"]}, ExitCode.NOTHING_TO_WORK_WITH, "set "),
        ({"providers": ["altavista"]}, ExitCode.USAGE, "altavista"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_starts(
    search: dict[str, object], code: ExitCode, said: str
) -> None:
    """With what to set, and the exit code of a refusal (S0-102)."""
    request = ResearchRequest.model_validate({"query": "q", "search": search})
    with pytest.raises(CommandError, match=said) as refused:
        resolve_here(request, SETTINGS)
    assert refused.value.code == code


def test_a_named_model_wins_over_the_configured_one() -> None:
    """The estimate is made for the models that will be asked."""
    settings = Settings(models=ModelsSettings(default="m", base_url="https://models.example/v1"))
    request = ResearchRequest.model_validate(
        {"query": "q", "corpus": "manual", "models": {"complex": "large"}, "gates": {"think": "rules"}}
    )
    made = resolve_here(request, settings)
    assert made.models == {"simple": "m", "analytical": "m", "complex": "large"}
    assert made.gates.think is not ThinkMode.MODEL
    asked = ResearchRequest(query="q", corpus="manual")
    assert resolve_here(asked, settings).gates.think is ThinkMode.MODEL


def test_a_folder_is_called_what_a_person_says(tmp_path: Path) -> None:
    """`--corpus ./docs --name manual-16`; a name of another folder, and a name without a folder, are refused."""
    folder, other = tmp_path / "docs", tmp_path / "other"
    folder.mkdir()
    asked = ask(RunOptions(question="Why?", corpus=str(folder), corpus_name="manual-16"), SETTINGS, {})
    assert (asked.request.corpus, asked.folder) == ("manual-16", folder)
    with pytest.raises(CommandError, match=f"is that of {other}"):
        ask(RunOptions(question="Why?", corpus=str(folder), corpus_name="taken"), SETTINGS, {"taken": other})
    with pytest.raises(CommandError, match="--corpus names none"):
        ask(RunOptions(question="Why?", corpus="known", corpus_name="b"), SETTINGS, {"known": folder})
    with pytest.raises(CommandError, match="64 letters"):
        ask(RunOptions(question="Why?", corpus=str(folder), corpus_name="../x"), SETTINGS, {})


def test_a_request_can_be_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--request -`; what is wrong with it is told as for a file."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"query": "piped"}')))
    assert ask(RunOptions(request_file=Path("-")), SETTINGS, {}).request.query == "piped"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"nonsense")))
    with pytest.raises(CommandError, match="standard input"):
        ask(RunOptions(request_file=Path("-")), SETTINGS, {})


def test_the_limits_are_told_in_words() -> None:
    """What bounds a run, with what a request sets; what nothing bounds is not told."""
    limits = resolve_here(
        ResearchRequest(query="Why?", web=False, corpus="docs", limits=Limits(max_iterations=1, max_tokens=5_000)),
        SETTINGS,
    ).limits
    assert limits_words(limits) == "1 iteration of 5 sub-queries, 60 sources, 15:00 minutes, 5,000 tokens, 2.00 USD"
    assert limits_words(limits, costs=False).endswith("15:00 minutes, 5,000 tokens")
