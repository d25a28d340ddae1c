"""From options to a request."""

from pathlib import Path

import pytest

from client.cli.announcing import egress, engine_of, models_of, thinks
from client.cli.asking import ask, find_corpus, name_of_folder
from client.cli.failures import CommandError
from client.cli.run_options import RunOptions
from contracts.request import Depth, EngineChoice, ResearchRequest
from contracts.vocabulary import EngineKind
from workers.settings import Settings
from workers.settings_sections import ModelsSettings

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


def test_a_known_name_wins_over_a_folder_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--corpus manual` means the registered corpus, `--corpus ./manual` the folder."""
    (tmp_path / "manual").mkdir()
    monkeypatch.chdir(tmp_path)
    elsewhere = {"manual": Path("/elsewhere")}
    assert find_corpus("manual", elsewhere) == ("manual", None)
    assert find_corpus("./manual", elsewhere)[1] == tmp_path / "manual"
    assert find_corpus("manual", {}) == ("manual", tmp_path / "manual")


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
    request = ResearchRequest(query="q")
    assert engine_of(request, SETTINGS) is EngineKind.EXTRACTIVE
    assert egress(EngineKind.EXTRACTIVE, away) == "nothing leaves this machine"
    assert engine_of(request, away) is EngineKind.MODEL
    assert egress(EngineKind.MODEL, away) == "passages go to models.example"
    assert egress(EngineKind.MODEL, here) == "passages go to 127.0.0.1:8080 (this machine)"


def test_a_named_model_wins_over_the_configured_one() -> None:
    """The estimate is made for the models that will be asked."""
    settings = Settings(models=ModelsSettings(default="m", base_url="https://models.example/v1"))
    request = ResearchRequest.model_validate(
        {"query": "q", "models": {"complex": "large"}, "gates": {"think": "rules"}}
    )
    assert models_of(request, settings) == {"simple": "m", "analytical": "m", "complex": "large"}
    assert not thinks(request)
    assert thinks(ResearchRequest(query="q"))
