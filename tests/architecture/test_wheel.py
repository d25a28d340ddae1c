"""The wheel: everything below one name, files unchanged but for their imports; and the same names in the repository."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT, load_script
from workers.resolution_inputs import rules_of

wheel = load_script(ROOT / "deploy" / "wheel.py")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as the hook writes it."""
    target: Path = tmp_path_factory.mktemp("wheel") / "durable_research"
    wheel.write_package(ROOT, target)
    return target


def test_a_wheel_differs_from_the_repository_in_imports_alone(package: Path) -> None:
    """Every file is there once, and is the one of the repository with a name in front of what it imports."""
    written = {path.relative_to(package).as_posix(): path for path in package.rglob("*") if path.is_file()}
    assert {name.split("/")[0] for name in written} == {*wheel.FOLDERS, "__init__.py", "py.typed"}
    assert "client/page/static/page.js" in written
    changed = 0
    for name, path in written.items():
        source = (ROOT / name if "/" in name else ROOT / "durable_research" / name).read_bytes()
        for new, old in zip(path.read_bytes().splitlines(), source.splitlines(), strict=True):
            if new != old:
                changed += 1
                ours = old.strip().split(b" ")[1].split(b".")[0].decode()
                is_dropped = not new and old.startswith(b"from durable_research import checkout")
                back = new.replace(b"durable_research.", b"", 1).replace(b"from durable_research import ", b"import ")
                assert is_dropped or (ours in wheel.FOLDERS and back == old), name
    assert changed > 1_000


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("from contracts.base import Contract\n", "from durable_research.contracts.base import Contract\n"),
        ("    from client import errors\n", "    from durable_research.client import errors\n"),
        ("import contracts\n", "from durable_research import contracts\n"),
        ("import contracts.base as base\n", "import durable_research.contracts.base as base\n"),
        ("from mcp.client import stdio\nclient = 1\n", "from mcp.client import stdio\nclient = 1\n"),
        ("from . import contracts\n", "from . import contracts\n"),
        ("from contractsmith import a\n", "from contractsmith import a\n"),
        ("a = 'workers.dev'\nb = f'{a}contracts.base'\n", "a = 'workers.dev'\nb = f'{a}contracts.base'\n"),
        ("import contracts.base\n", "x.py:1: write `from … import`"),
        ("a = 1\nb = 'contracts.base:Contract'\n", "x.py:2: put MODULE_PREFIX before"),
        ("b = f'client.cli.{a}'\n", "x.py:1: put MODULE_PREFIX before"),
        ("import contracts, client\n", "x.py:1: write `from … import`"),
        ("from  contracts.base import a\n", "x.py:1: write this import in one line"),
    ],
)
def test_imports_are_moved_and_names_in_texts_refused(source: str, made: str) -> None:
    """What cannot be moved by the place of an import ends the build with its line, and other names stay."""
    text = source if not source.startswith("    ") else f"def f():\n{source}"
    try:
        result = wheel.moved(text, ROOT, "x.py")
    except ValueError as refusal:
        result = str(refusal)
    assert result.endswith(made) if made.startswith("    ") else result.startswith(made)


def test_both_forms_have_the_same_rules(package: Path) -> None:
    """The version of the rules that wrote a report is that of a clone and of the wheel made from it."""
    for name in ("activities/reporting/audit.py", "providers/search/services.toml", "contracts/strategies.py"):
        assert rules_of(package / name) == rules_of(ROOT / name), name


def test_public_names_are_the_modules_of_the_repository() -> None:
    """In a clone, `durable_research.NAME` is `NAME` itself, and what is in no folder is not found."""
    for name in ("contracts.base", "client.handle", "workflows.strategies.protocol"):
        assert importlib.import_module(f"durable_research.{name}") is importlib.import_module(name)
    with pytest.raises(ModuleNotFoundError, match=r"durable_research\.contracts\.none"):
        importlib.import_module("durable_research.contracts.none")
    with pytest.raises(ModuleNotFoundError, match=r"durable_research\.benchmarks"):
        importlib.import_module("durable_research.benchmarks")


def test_a_module_is_run_by_its_public_name() -> None:
    """`python -m durable_research.…` runs a module of the repository: what sets a cluster up has one name everywhere."""
    command = [sys.executable, "-m", "durable_research.providers.isolation.guardian"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "guardian.py" in ended.stderr
    assert "not enough values to unpack" in ended.stderr
