"""What is wrong with a package, in one line."""

import sys
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from contracts.packages import PackageFault, load_class, load_declaration
from contracts.strategies import LIVING_STRATEGY, StrategyDeclaration
from tests.toy.roles import TOY
from workflows.strategies import METHODS, load_declared
from workflows.strategies.protocol import Strategy

STRATEGY = '''
"""A module of a package."""
from durable_research.workflows.strategies.units import UnitStrategy

class Finder(UnitStrategy):
    """It lacks what every strategy has."""
    def replan(self, state): ...

class Seeker(UnitStrategy):
    """It has nothing of its own."""
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that can be imported, and a package with a name and a version."""
    monkeypatch.syspath_prepend(str(tmp_path))
    metadata = tmp_path / "finders-2.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: finders\nVersion: 2.1\n")
    return tmp_path


def write(folder: Path, name: str, text: str) -> str:
    """Write a module that no other test has imported."""
    (folder / f"{name}.py").write_text(text)
    sys.modules.pop(name, None)
    return name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys\nfrom sys import no_such_name\n", "ImportError at .*/{}.py:2: cannot import name 'no_such_name'"),
        ("x = 1\nif x\n", "SyntaxError at .*/{}.py:2: expected ':'"),
        ("def f():\n    raise ValueError('a secret')\nf()\n", "ValueError at .*/{}.py:2; mend"),
    ],
)
def test_what_cannot_be_loaded_is_named_with_package_file_and_line(folder: Path, text: str, problem: str) -> None:
    """An entry point and a class alike; a message of an error that may hold anything is not shown."""
    name = write(folder, f"finders_{abs(hash(text)) % 1_000_000}", text)
    (distribution,) = Distribution.discover(path=[str(folder)])
    entry = EntryPoint("finder", f"{name}:FINDER", "group")._for(distribution)
    whole = f"the strategy finder of the package finders 2.1 cannot be loaded: .*{problem.format(name)}"
    with pytest.raises(PackageFault, match=whole) as refused:
        load_declaration("the strategy finder", entry, StrategyDeclaration)
    assert "secret" not in str(refused.value)
    assert "line 2" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(PackageFault, match=f"it cannot be loaded: .*{problem.format(name)}"):
        load_class("it", f"{name}:Finder", METHODS)


def test_a_class_that_is_misspelt_or_lacks_methods_is_named(folder: Path) -> None:
    """The nearest class with its line, and each method that is missing, abstract or not there at all."""
    write(folder, "finders_strategy", STRATEGY)
    with pytest.raises(PackageFault) as misspelt:
        load_class("it", "finders_strategy:Findr", METHODS)
    assert str(misspelt.value).startswith(
        "it cannot be loaded: finders_strategy.py has no class Findr (nearest: Finder"
    )
    with pytest.raises(PackageFault, match=r"\(nearest: Seeker( at line 10)?\); correct"):
        load_class("it", "finders_strategy:Seekr", METHODS)
    with pytest.raises(PackageFault, match=r"Finder at finders_strategy\.py:7 has no method advance, .*move_on"):
        load_class("it", "finders_strategy:Finder", METHODS)
    write(folder, "finders_search", "class Finder:\n    find = None\n")
    with pytest.raises(PackageFault, match=r"Finder at finders_search\.py(:1)? has no method search; mend or remove"):
        load_class("it", "finders_search:Finder", ["search"])


def test_a_position_without_the_name_of_its_strategy_is_named_where_the_class_begins(folder: Path) -> None:
    """Else its runs failed in the product's code, at the first look at their state."""
    text = """
from durable_research.workflows.strategies.units import UnitPosition, UnitStrategy

class FinderPosition(UnitPosition):
    pass

class Finder(UnitStrategy):
    position = FinderPosition
"""
    write(folder, "finders_positions", text)
    problem = r"TypeError at .*finders_positions\.py:7: FinderPosition needs `NAME: ClassVar\[str\]`, the name of the"
    with pytest.raises(PackageFault, match=problem):
        load_class("it", "finders_positions:Finder", METHODS)


def test_every_method_that_the_driver_calls_is_required() -> None:
    """So that a class that inherits nothing is complete, too; strategies of product and packages load."""
    public = {name for name in vars(Strategy) if not name.startswith("_")}
    assert public == set(METHODS)
    assert load_declared(TOY).__name__ == "ToyStrategy"
    assert load_declared(LIVING_STRATEGY).__name__ == "LivingStrategy"
