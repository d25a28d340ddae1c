"""Strategies of installed packages."""

import re
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from contracts import strategies
from tests.toy.roles import TOY

WITHOUT_CLASS = replace(TOY, name="incomplete", implementation="tests.toy.no_such_module:Toy")
WITHOUT_ROLE = replace(
    TOY, name="incomplete", roles=(*TOY.roles[:2], replace(TOY.roles[2], module="no_such_package.scribe"))
)
NO_STRATEGY = object()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            "no_such_module:TOY",
            (
                "incomplete of an installed package cannot be loaded: ModuleNotFoundError: "
                "No module named 'no_such_module'; mend or remove the package"
            ),
        ),
        (f"{__name__}:MISSPELT", f"cannot be loaded: AttributeError: module '{__name__}' has no attribute 'MISSPELT'"),
        (f"{__name__}:NO_STRATEGY", f"cannot be loaded: {__name__}:NO_STRATEGY is no StrategyDeclaration"),
        (
            "tests.toy.roles:TOY",
            "cannot be loaded: its declaration has the name toy; call both toy, or remove the package",
        ),
        (f"{__name__}:WITHOUT_CLASS", "cannot be loaded: it has no module tests.toy.no_such_module"),
        (f"{__name__}:WITHOUT_ROLE", "cannot be loaded: it has no module no_such_package.scribe"),
    ],
)
def test_a_package_that_lacks_a_part_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, value: str, problem: str
) -> None:
    """Before any work, with the module that is missing; the strategy is not declared."""
    entry = EntryPoint("incomplete", value, strategies.ENTRY_POINTS)
    monkeypatch.setattr(strategies, "entry_points", lambda group: EntryPoints([entry]).select(group=group))
    monkeypatch.setitem(
        sys.modules, __name__, sys.modules[test_a_package_that_lacks_a_part_is_named_at_once.__module__]
    )
    with pytest.raises(ValueError, match=re.escape(problem)):
        strategies.declare_installed()
    assert "incomplete" not in {strategy.name for strategy in strategies.list_declared()}
