"""Roles of packages: whether their modules and prompts can be used, before a run needs them."""

from collections.abc import Iterator
from typing import Any

from activities.roles.prompt_files import prompt_problem
from contracts.packages import REMEDY, PackageFault, fault
from contracts.roles import RoleSpec
from contracts.strategies import declaration, packages_of_strategies
from providers.extractive.engine import function_of


def check_roles(strategy: str) -> None:
    """Check the modules of the roles of a package's strategy. Raises `PackageFault` for the first that cannot be used.

    Else a run would fail in the middle.
    """
    for role, module, what in _external_roles(strategy):
        try:
            function = function_of(role.input, module)
        except Exception as error:  # noqa: BLE001  the code of a package may raise anything
            raise PackageFault(f"{what} cannot be loaded: {fault(error, module)}; {REMEDY}") from None
        if function is None and role.has_fallback:
            problem = f"{module.replace('.', '/')}.py has no function draft"
            raise PackageFault(f"{what} cannot be used: {problem}; add it, or declare has_fallback=False")


def check_prompts(strategy: str) -> None:
    """Check the prompts of these roles. Raises `PackageFault` for the first that cannot be used."""
    for role, module, what in _external_roles(strategy):
        if problem := prompt_problem(role, module.rpartition(".")[0]):
            raise PackageFault(f"{what} cannot be used: {problem}; correct it, or remove the package")


def _external_roles(strategy: str) -> Iterator[tuple[RoleSpec[Any, Any], str, str]]:
    """Yield the roles of a strategy that are not of the product, each with its module and its name for messages."""
    package = packages_of_strategies().get(strategy)
    for role in declaration(strategy).roles:
        if role.module is not None:
            yield role, role.module, " of ".join(filter(None, [f"the role {role.name}", package]))
