"""What is wrong with the module or the prompt of a role of a package, in one line."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.failures import MODELS, attempt
from contracts import packages, strategies
from contracts.packages import PackageFault
from contracts.roles import RoleSpec
from providers.extractive.engine import ExtractiveEngine
from providers.interfaces import EngineTask, RenderedPrompt
from tests.toy.roles import SCOUT, TOY, ScoutInput
from workers.composition import compose
from workers.package_roles import check_prompts, check_roles
from workers.settings.loading import Settings

GOOD = "version: scout-1\n\n## system\nYou name searches.\n\n## prompt\n{{ query }}\n{{ most_queries }}\n"
MODULE = "def draft(request, documents):\n    return words[request.query]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a package `scouts`, whose strategy has one role with the module `scouts.scout`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "scouts"]:
        monkeypatch.delitem(sys.modules, name)
    place = tmp_path / "scouts"
    (place / "prompts").mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "scout.py").write_text(MODULE)
    (place / "prompts" / "scout.md").write_text(GOOD)
    declare(monkeypatch, replace(SCOUT, module="scouts.scout"))
    return place


def declare(monkeypatch: pytest.MonkeyPatch, role: RoleSpec[Any, Any]) -> None:
    """Declare the strategy of the package with this role."""
    monkeypatch.setitem(strategies._declared, "scouting", replace(TOY, name="scouting", roles=(role,)))
    monkeypatch.setitem(strategies._packages, "scouting", "the package scouts 2.1")
    monkeypatch.setitem(packages._packages, "scouts", "the package scouts 2.1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "be used: scouts/scout.py has no function draft; add it, or declare has_fallback=False"),
        ("from scouts.words import words", "be loaded: ModuleNotFoundError at scouts/scout.py:1: No module named"),
        ("def draft(:", "be loaded: SyntaxError at scouts/scout.py:1: "),
    ],
)
async def test_a_module_without_what_its_role_needs_keeps_workers_from_starting(
    folder: Path, tmp_path: Path, text: str, problem: str
) -> None:
    """A run with this role would fail in the middle; a package that is complete is let through."""
    check_roles("scouting")
    sys.modules.pop("scouts.scout")
    (folder / "scout.py").write_text(text)
    line = f"the role scout of the package scouts 2.1 cannot {problem}"
    with pytest.raises(PackageFault) as refused:
        check_roles("scouting")
    assert str(refused.value).startswith(line)
    with pytest.raises(PackageFault) as refused:
        async with compose(Settings(home=tmp_path / "home"), None, ["models"]):  # type: ignore[arg-type]
            pass
    assert str(refused.value).startswith(line)


def test_a_role_that_needs_a_model_needs_no_draft(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so in its declaration."""
    (folder / "scout.py").write_text("")
    declare(monkeypatch, replace(SCOUT, module="scouts.scout", has_fallback=False))
    check_roles("scouting")


@pytest.mark.usefixtures("folder")
async def test_the_place_of_a_defect_is_the_line_of_the_package() -> None:
    """And not that of the product, which called it."""
    request = ScoutInput.model_construct(query="x")
    task = EngineTask(replace(SCOUT, module="scouts.scout"), request, {}, "", RenderedPrompt(""), "")

    async def body() -> None:
        async with attempt(MODELS):
            await ExtractiveEngine().answer(task)

    with pytest.raises(ApplicationError, match=r"internal error: NameError at scouts/scout\.py:2 in draft"):
        await ActivityEnvironment().run(body)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            GOOD.replace("most_queries", "most_query"),
            "has {{ most_query }}, which ScoutInput has not (nearest: most_queries)",
        ),
        (GOOD.replace("## prompt", "## promt"), "needs a line `version: NAME`, then `## system` and `## prompt`"),
        (GOOD.replace("{{ most", "{{ {most"), "scout.md:8: "),
        (None, "there is no scouts/prompts/scout.md"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_named_before_a_run_needs_it(
    folder: Path, text: str | None, problem: str
) -> None:
    """With file and line, or the field that the role's input lacks; a good prompt passes."""
    check_prompts("scouting")
    prompt = folder / "prompts" / "scout.md"
    if text is None:
        prompt.unlink()
    else:
        prompt.write_text(text)
    with pytest.raises(PackageFault) as refused:
        check_prompts("scouting")
    assert str(refused.value).startswith("the role scout of the package scouts 2.1 cannot be used: ")
    assert problem in str(refused.value)
    assert str(refused.value).endswith("; correct it, or remove the package")
