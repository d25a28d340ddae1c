"""What docker-compose.yml hands to whom: variables that are read, keys where they are used, secrets nowhere else."""

import re

from providers.search.declarations import search_variables
from tests.architecture import deployment as files
from tests.architecture.repository import ROOT, tracked_files
from workers.settings.loading import VARIABLES
from workers.settings.sections import FileSettings


def test_all_pools_are_configured_alike() -> None:
    """Workers differ in nothing but keys, which only those get that need them; every variable is one that is read."""
    known = {*VARIABLES, *search_variables()}
    kept = {name: dict(service["environment"]) for name, service in files.ours().items()}
    unknown = {name for environment in kept.values() for name in environment.keys() - known}
    assert unknown == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}
    for variables, those in files.KEY_HOLDERS.items():
        holders = {name for name, environment in kept.items() if environment.keys() & variables}
        assert holders == {*those, "research"}
        assert all(kept[name].keys() >= variables for name in holders)
        kept = {
            name: {key: environment[key] for key in environment.keys() - variables}
            for name, environment in kept.items()
        }
    assert all(environment == kept["models"] for environment in kept.values())
    assert kept["models"]["RESEARCH_HOME"] == "/data"


def test_every_variable_can_be_set_in_compose() -> None:
    """Whatever the program reads from the environment has a place there, unless research.toml or compose decides it."""
    passed = {name for service in files.ours().values() for name in service["environment"]}
    in_the_file = {name for name, path in VARIABLES.items() if path[0] in FileSettings.model_fields}
    assert {*VARIABLES, *search_variables()} - passed <= in_the_file


def test_no_secret_is_written_down() -> None:
    """Secrets come from variables without a default; the example leaves them empty; the real file is ignored by git."""
    for name, service in files.services().items():
        for variable, value in service.get("environment", {}).items():
            if files.SECRET.search(variable):
                found = files.VARIABLE.fullmatch(value)
                assert found is not None, f"{name}: {variable}"
                assert found[2] == ":?" or not found[3]
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if files.SECRET.search(line.partition("=")[0]) and re.search(r"=\S", line)] == []
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert not [path for path in tracked_files() if path.name == ".env"]


def test_the_example_of_variables_is_complete() -> None:
    """.env.example names every variable that docker-compose.yml reads, with its default, and no other."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE))
    assert shown.keys() == files.variables(text)
    defaults = {found[1]: found[3] for found in files.VARIABLE.finditer(text) if found[2] == ":-"}
    assert {name: value for name, value in shown.items() if name in defaults} == defaults
