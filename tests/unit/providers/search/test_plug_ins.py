"""Search providers of installed packages: the example of the documentation, built, installed and used."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from unittest.mock import Mock

import pytest

from providers.errors import NotConfigured
from providers.search import declarations
from providers.search.declarations import SearchDeclaration, declare_installed, declared_names
from tests.fakes.web import WebServer, reply
from workers.settings.loading import SettingsError, load_settings

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "search_provider"
SEARCH = """
import asyncio, json
from contracts.messages import SearchRequest
from workers.composition import open_search_providers
from workers.resolution_inputs import search_choices
from workers.settings.loading import load_settings

async def main():
    settings = load_settings()
    async with open_search_providers(settings, ["example"]) as providers:
        request = SearchRequest(research_id="r-1", operation="s/1", provider="example", text="moss", language="de")
        answer = await providers["example"].search(request)
    choices = {choice.name: choice.reason for choice in search_choices(settings)}
    print(json.dumps({"reason": choices["example"], "urls": [hit.url for hit in answer.hits]}))

asyncio.run(main())
"""


FOUND = {"found": [{"link": "https://moss.example/", "title": "Moss"}, {"title": "Nowhere"}]}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with the example, built without network."""
    source = shutil.copytree(EXAMPLE, tmp_path / "source")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    place = tmp_path / "site"
    subprocess.run([*install, "--target", str(place), str(source)], check=True, capture_output=True)
    return place


@pytest.mark.soak
async def test_the_example_is_installed_and_used(site: Path, tmp_path: Path) -> None:
    """Another process finds the provider of an installed package, with its variables, and searches through it (X-16)."""
    answer = reply(json.dumps(FOUND), content_type="application/json")
    async with WebServer({"/find?words=moss&most=10&language=de": answer}) as service:
        environment = os.environ | {
            "PYTHONPATH": f"{ROOT}:{site}",
            "HOME": str(tmp_path),
            "EXAMPLE_API_KEY": "planted-key",
            "EXAMPLE_BASE_URL": service.base_url,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SEARCH, env=environment, cwd=tmp_path, stdout=subprocess.PIPE
        )
        printed, _ = await process.communicate()
    assert json.loads(printed) == {"reason": "EXAMPLE_API_KEY set", "urls": ["https://moss.example/"]}
    assert [head["x-api-key"] for head in service.heads] == ["planted-key"]


def test_the_documentation_shows_the_example() -> None:
    """Its page has the two files to the letter, and the module has no more than 60 lines."""
    page = (ROOT / "docs" / "search-providers.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"<!-- (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    files = {f"examples/search_provider/{name}": EXAMPLE / name for name in ("pyproject.toml", "example_search.py")}
    assert shown == {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    assert len((EXAMPLE / "example_search.py").read_text(encoding="utf-8").splitlines()) <= 60


MISNAMED = SearchDeclaration("other", "Other", "nowhere:Other", address="https://other.example")
TAVILY = SearchDeclaration("tavily", "Not Tavily", "nowhere:Other", address="https://other.example")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ('[mini]\nname = "mini"', "mini\n  Extra inputs are not permitted"),
        ("needs_key = true", "services.0.needs_key"),
        ('[services.pages]\nneeds = ""', "services.0.pages"),
        ('[services.page]\nneeds = ""\nqueries_go_to = ""\nprice = ""\nspeed = ""', "services.0.page.speed"),
    ],
)
def test_a_misspelt_table_or_key_of_a_declaration_is_refused(wrong: str, problem: str) -> None:
    """By its name; without it the file is read. A provider that is ignored without a word is searched for in vain."""
    right = '[[services]]\nname = "mini"\nlabel = "Mini"\nimplementation = "mini:Mini"\n'
    assert [one.name for one in declarations.read_services(right)] == ["mini"]
    with pytest.raises(ValueError, match=re.escape(problem)):
        declarations.read_services(right + wrong)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("broken", "no_such_module:X", "the search provider broken of an installed package cannot be loaded"),
        (
            "broken",
            f"{__name__}:MISNAMED",
            "its declaration has the name [a-z]+; call both [a-z]+, or remove the package",
        ),
        ("broken", f"{__name__}:__name__", "is no SearchDeclaration; mend or remove the package"),
        ("tavily", f"{__name__}:TAVILY", "two search providers are named tavily"),
    ],
)
def test_a_bad_plug_in_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, problem: str
) -> None:
    """Every command ends with a message that names provider and problem; the others stay declared."""
    entry = EntryPoint(name, value, declarations.ENTRY_POINTS)
    monkeypatch.setattr(declarations, "entry_points", lambda group: EntryPoints([entry]).select(group=group))
    sys.modules.setdefault(__name__, sys.modules[test_a_bad_plug_in_is_named.__module__])
    before = declared_names()
    with pytest.raises(ValueError, match=problem):
        declare_installed()
    with pytest.raises(SettingsError, match=problem):
        load_settings(environment={}, user_folder=tmp_path)
    assert declared_names() == before


class Nameless:
    """A class that was forgotten half way."""

    def __init__(self, *_: object) -> None:
        """Take what every provider is given."""

    async def search(self, request: object) -> None:
        """Search nothing."""


class Faulty(Nameless):
    """A class that cannot be made."""

    def __init__(self, *_: object) -> None:
        raise KeyError("a secret")


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (
            "Nameless",
            r"finder of the package finders 2\.1 cannot be used: its class .*Nameless gives it no attribute `name`",
        ),
        (
            "Faulty",
            r"finder of the package finders 2\.1 cannot be made: KeyError at tests/unit/.*test_plug_ins\.py:\d+; mend",
        ),
        ("Nothing", r"cannot be loaded: tests/unit/providers/search/test_plug_ins\.py has no class Nothing; correct"),
    ],
)
def test_a_provider_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch, kind: str, problem: str) -> None:
    """With its package, as an error of the configuration, before it is searched for the first time."""
    monkeypatch.setitem(declarations._packages, "finder", "the package finders 2.1")
    sys.modules.setdefault(__name__, sys.modules[test_a_bad_plug_in_is_named.__module__])
    with pytest.raises(NotConfigured, match=problem) as refused:
        SearchDeclaration("finder", "Finder", f"{__name__}:{kind}").open(Mock(), {})
    assert "secret" not in str(refused.value)
