"""Who may import whom, and rules of the house that no linter knows."""

import ast
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest
from temporalio.worker.workflow_sandbox import SandboxRestrictions
from temporalio.worker.workflow_sandbox._restrictions import RestrictionContext

from contracts.sentences import SENTENCES
from contracts.vocabulary import StopReason
from tests.architecture.repository import (
    PACKAGES,
    ROOT,
    found_in,
    imported_modules,
    nodes,
    python_files,
    relative,
    syntax,
    tracked_files,
)
from workers.pools import PASSTHROUGH_MODULES

PURE_PROVIDERS = (
    "providers.interfaces", "providers.errors", "providers.domains", "providers.text",
    "providers.verification", "providers.storage.stored_notebooks", "providers.shared.run_queue", "providers.shared.paid_calls",
    "providers.shared.day_budget",
    "providers.shared.shared_value",
    "providers.isolation.pool", "providers.tokens", "providers.models.answers",
)  # fmt: skip


FOR_WORKFLOWS = set(sys.stdlib_module_names) | {"temporalio", "pydantic", "contracts", "workflows"}


def test_workflow_code_imports_no_other_library() -> None:
    """Workflow code needs the standard library, temporalio and pydantic: anything else is loaded anew for every run."""
    for path in python_files("workflows", "contracts"):
        foreign = {name for name in imported_modules(path) if name.split(".")[0] not in FOR_WORKFLOWS}
        assert not foreign, relative(path)


def refused_in_runs(source: str) -> list[str]:
    """What of a module's code the SDK's sandbox would refuse while a run goes on, if it watched over it."""
    tree, modules = ast.parse(source), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.asname or name.name.split(".")[0]: name.name.split(".") for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {name.asname or name.name: [*node.module.split("."), name.name] for name in node.names}
    named = [tuple(path) for path in modules.values()]
    for node in ast.walk(tree):
        way: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            way, inner = [inner.attr, *way], inner.value
        if isinstance(inner, ast.Name):
            named.append((*modules.get(inner.id, ["__builtins__", inner.id]), *way))
    running = RestrictionContext()
    running.is_runtime = running.in_activation = True
    members = SandboxRestrictions.invalid_module_members_default
    return sorted({".".join(path) for path in named if members.match_access(running, *path, include_use=True)})


def test_workflow_code_names_nothing_that_the_sandbox_refuses() -> None:
    """No clock, chance, thread, file or network: most of it passes through the sandbox, which then cannot look."""
    for path in python_files("workflows"):
        assert refused_in_runs(path.read_text(encoding="utf-8")) == [], relative(path)


MUTATORS = {"append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear"}


def state_of_module(source: str) -> list[int]:
    """Lines that change what a module holds."""
    tree = ast.parse(source)
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
    held = {target.id for target in targets if isinstance(target, ast.Name)}

    def changes(node: ast.AST) -> bool:
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            return isinstance(node.value, ast.Name) and node.value.id in held
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in MUTATORS:
            return isinstance(called.value, ast.Name) and called.value.id in held
        return isinstance(node, ast.Global)

    return [node.lineno for node in ast.walk(tree) if changes(node)]  # type: ignore[attr-defined]


def passes_through(path: Path) -> bool:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return any(f"{module}.".startswith(f"{name}.") for name in PASSTHROUGH_MODULES)


def test_what_runs_share_holds_no_state() -> None:
    """A module that passes through the sandbox is the same one for all runs: none can leave anything to another."""
    passing = list(filter(passes_through, python_files("workflows")))
    assert passing
    for path in passing:
        assert state_of_module(path.read_text(encoding="utf-8")) == [], relative(path)


def test_activities_know_no_adapter() -> None:
    """Activities reach the outside world through the Protocols alone."""
    pure = tuple(f"{name}." for name in PURE_PROVIDERS)
    for path in python_files("activities"):
        used = [name for name in imported_modules(path) if name.split(".")[0] == "providers"]
        assert [name for name in used if not f"{name}.".startswith(pure)] == [], relative(path)


# --- rules of the house -----------------------------------------------------------------------------------------------

# Put together from parts, so that this file does not hold what it forbids.
REGISTRY_HOSTS = ["py" + "pi.org", "pythonhosted" + ".org", "npmjs" + ".", "docker" + ".io", "ghcr" + ".io"]
MACHINE_PATHS = [r"(?<![\w.])/" + folder + "/" for folder in ("work", "root", "home/[a-z]+", "Users/[A-Za-z]+")]

DRAWN_OR_FIXED = {"LICENSE", "requirements.lock"}
"""Texts that are not ours to word; the lock file has a test of its own."""


def silent_tests(path: Path) -> list[str]:
    functions = [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_") and not ast.get_docstring(node)]


def test_every_test_says_what_it_shows() -> None:
    """Each test function has a docstring of its behaviour."""
    assert found_in(python_files("tests"), silent_tests) == {}


def test_the_gate_has_few_acceptance_tests(request: pytest.FixtureRequest) -> None:
    """Tests that start and kill processes take most of its time: further ones are slow proofs (`soak`)."""
    chosen = [item for item in request.session.items if item.get_closest_marker("acceptance") is not None]
    assert len(chosen) <= 15


def strange_places(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return [host for host in REGISTRY_HOSTS if host in text] + [one for one in MACHINE_PATHS if re.search(one, text)]


def test_nothing_names_a_registry_or_a_machine() -> None:
    """The project works wherever it is cloned: it names no package registry and no folder of anybody's machine."""
    assert found_in((path for path in tracked_files() if path.name not in DRAWN_OR_FIXED), strange_places) == {}


def test_no_two_classes_share_a_name() -> None:
    """A class is found by its name alone, wherever it is used."""
    names = [
        node.name for path in python_files(*PACKAGES) for node in syntax(path).body if isinstance(node, ast.ClassDef)
    ]
    assert not [name for name, count in Counter(names).items() if count > 1 and not name.startswith("_")]


def test_each_sentence_is_made_with_its_values() -> None:
    """A call of `Message` names a sentence and gives all of its values, and no sentence is without use."""
    named = {f"stop_{reason.value}" for reason in StopReason}
    for path in python_files(*PACKAGES):
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and path.name != "sentences.py":
                named.add(node.value)
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)) or not node.args:
                continue
            if node.func.id == "counted" and isinstance(node.args[0], ast.Constant):
                named |= {f"{node.args[0].value}_{number}" for number in ("one", "many")}
            if node.func.id != "Message":
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                sentence = SENTENCES[str(node.args[0].value)]
                values = {keyword.arg for keyword in node.keywords}
                assert values == {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}, sentence
    authorities = tomllib.loads((ROOT / "activities/assessment/authorities.toml").read_text("utf-8"))
    named |= {tier["sentence"] for tier in (authorities["general"], *authorities["tiers"].values())}
    assert SENTENCES.keys() - named == {"several"}
