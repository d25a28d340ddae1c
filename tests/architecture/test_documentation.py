"""What the pages say is so."""

import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent

from contracts import names
from contracts.parse_request import parse_request
from contracts.strategies.declared_strategies import ENTRY_POINTS
from contracts.tokens import TokenSettings
from tests.architecture.repository import ROOT, load_script, relative, tracked_files
from tests.toy.roles import TOY
from workers.settings.sections import FileSettings

PAGES = [path for path in tracked_files() if path.suffix == ".md" and path.relative_to(ROOT).parts[0] != "activities"]
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def code_of(path: Path) -> list[str]:
    """The pieces of a page that are set as code, lines that are continued joined."""
    text = path.read_text(encoding="utf-8")
    shell = [block.replace("\\\n", " ") for language, block in BLOCK.findall(text) if language in ("", "sh", "text")]
    return [line for block in shell for line in block.splitlines()] + re.findall(
        r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    )


def test_documented_make_targets_exist() -> None:
    """Each `make …` that a page shows is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for path in PAGES:
        for code in code_of(path):
            unknown = set(re.findall(r"^(?:\$ )?make ([a-z][a-z-]*)", code.strip())) - targets
            assert not unknown, f"{relative(path)} names `make {unknown}`"


def test_options_of_tokens_are_explained_to_those_who_come_from_elsewhere() -> None:
    """The overhead of each surrounding is in the page of models, and each option of token management has a row that
    says what it is called here (S0-148).
    """
    models, configuration = (
        (ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("models.md", "configuration.md")
    )
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d,]+) \|$", models, re.MULTILINE))
    figures = {"Claude Code": 60, "Cursor Agent": 40, "Codex, OpenCode": 30, "Gemini CLI": 20}
    assert {name: rows[name] for name in figures} == {name: f"{thousands},000" for name, thousands in figures.items()}
    default = TokenSettings.model_fields["runtime_overhead"].default
    assert rows["an endpoint that is called directly (the default)"] == f"{default:,}"
    mapping = configuration.partition("## Coming from another system")[2].splitlines()
    for option in TokenSettings.model_fields:
        (row,) = (line for line in mapping if line.startswith("|") and f"`{option}`" in line.split("|")[1])
        assert "planned" not in row


def test_links_lead_somewhere() -> None:
    """Each relative link of a page leads to a file of the repository, and to a heading of it if it names one."""
    for path in PAGES:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            place, _, heading = link.partition("#")
            target = (path.parent / place).resolve() if place else path
            assert target.exists(), f"{relative(path)} links to {link}"
            if heading:
                assert heading in headings(target), f"{relative(path)} links to {link}"


@cache
def headings(path: Path) -> set[str]:
    lines = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_the_configuration_page_is_generated_from_the_code() -> None:
    """docs/configuration.md says what the models say: run `make configuration` after a change (X-23, X-24)."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    generator = load_script(ROOT / "docs" / "generate_configuration.py")
    assert generator.filled(page) == page


def test_the_page_for_programs_is_generated_from_the_code() -> None:
    """docs/api.md has the schemas of the models and the examples as they are: run `make configuration`."""
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert load_script(ROOT / "docs" / "generate_api.py").page() == page


def test_the_example_configuration_is_accepted() -> None:
    """research.example.toml is valid as it stands, and with every suggestion in it switched on."""
    text = (ROOT / "research.example.toml").read_text(encoding="utf-8")
    FileSettings.model_validate(tomllib.loads(text))
    everything = re.sub(r"^# (?=\[|[a-z_\"]+ = )", "", text, flags=re.MULTILINE)
    settings = FileSettings.model_validate(tomllib.loads(everything))
    assert settings.corpus
    assert settings.models.by_tier()
    assert settings.strategy


def test_documented_starts_are_accepted() -> None:
    """Each `temporal workflow start` that a page shows names our workflow, its queue and a valid request."""
    starts = [(relative(path), code) for path in PAGES for code in code_of(path) if "temporal workflow start" in code]
    assert starts
    for page, code in starts:
        assert f"--type {names.DEEP_RESEARCH}" in code, page
        assert f"--task-queue {names.WORKFLOWS_QUEUE}" in code, page
        given = re.search(r"--input '([^']+)'", code)
        assert given is not None, page
        assert parse_request(given[1]).query, page


def test_the_example_of_a_strategy_is_the_code_that_runs() -> None:
    """Each piece of Python on the page for authors stands, to the letter, in the file that is named before it."""
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- (\S+) -->\n```python\n(.*?)```", page, re.DOTALL)
    assert len(shown) == page.count("```python")
    for file, code in shown:
        # Methods stand further to the left on the page, with more room between them.
        text = re.sub(r"\n{2,}", "\n", (ROOT / file).read_text(encoding="utf-8"))
        plain = re.sub(r"\n{2,}", "\n", code)
        assert plain in text or indent(plain, " " * 4) in text, file
    entry = tomllib.loads(re.search(r"```toml\n(.*?)```", page, re.DOTALL)[1])  # type: ignore[index]
    module, _, name = entry["project"]["entry-points"][ENTRY_POINTS]["toy"].partition(":")
    assert getattr(import_module(module), name) is TOY
