"""What the pages and the messages say is so, and the example that they rest on works."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import indent
from typing import Any

import typer.main

from client.cli.app import app
from contracts import names
from contracts.parse_request import parse_request
from contracts.strategies import ENTRY_POINTS
from contracts.tokens import TokenSettings
from tests.architecture.repository import PACKAGES, ROOT, load_script, nodes, python_files, relative, tracked_files
from tests.toy import declared
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


def test_files_that_pages_name_exist() -> None:
    """A page that sends its reader to a file of a package names one that is there."""
    folders = "|".join((*PACKAGES, "benchmarks", "deploy", "examples", "tests"))
    for path in PAGES:
        named = re.findall(rf"`((?:{folders})/[a-z0-9_./]+)`", path.read_text(encoding="utf-8"))
        assert [name for name in named if not (ROOT / name).exists()] == [], relative(path)


def test_the_index_has_every_decision_under_its_title() -> None:
    """Each record has its row, in the order of the numbers, and the row has the title of the record."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    rows = []
    for path in sorted(folder.glob("0*.md")):
        number, title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").split(" ", 1)
        rows.append(f"| [{number}]({path.name}) | {title} |")
    assert re.findall(r"^\| \[.+$", index, re.MULTILINE) == rows


@cache
def headings(path: Path) -> set[str]:
    lines = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def test_the_configuration_page_is_generated_from_the_code() -> None:
    """docs/configuration.md says what the models say, whatever is installed beside: run `make generate` (X-23, X-24)."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    generator = load_script(ROOT / "docs" / "generate_configuration.py")
    with declared(TOY):
        assert generator.filled(page) == page


def test_what_names_search_providers_is_generated_from_their_declarations() -> None:
    """The tables of the page, the variables of compose and the example of .env are current: run `make generate`."""
    generator = load_script(ROOT / "docs" / "generate_providers.py")
    for name, blocks in generator.FILES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        assert generator.filled(text, blocks) == text, name


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


# --- commands and options ---------------------------------------------------------------------------------------------
CALL = re.compile(r"(?<![\w./-])research ([a-z]+(?:-[a-z]+)*)([^`\n;→·()]*)")
QUOTED = re.compile(r"`research ([a-z]+(?:-[a-z]+)*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
OF_OTHERS = {"--from", "--headless", "--ui-disable-news-fetch", "--retention-days", "--wait-seconds"} | {
    "--codec-endpoint",
    "--codec-auth",
}
"""Options of the Temporal server and its command line, of kubectl and of `python -m workers.setup`."""


def options_of(command: Any) -> set[str]:
    own = {name for parameter in command.params for name in parameter.opts}
    return own.union({"--help"}, *(options_of(below) for below in getattr(command, "commands", {}).values()))


ROOT_COMMAND: Any = typer.main.get_command(app)
COMMANDS: dict[str, set[str]] = {name: options_of(command.load()) for name, command in ROOT_COMMAND.commands.items()}
KNOWN = options_of(ROOT_COMMAND).union(OF_OTHERS, *COMMANDS.values())


def texts_of_code() -> Iterator[tuple[str, str]]:
    """Every text of the product's code, docstrings too, with its place."""
    for path in python_files(*PACKAGES):
        for node in nodes(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def texts_of_pages() -> Iterator[tuple[str, str]]:
    """The user's pages; decisions and the changelog name commands of earlier versions."""
    for path in tracked_files():
        if path.suffix == ".md" and path.parent in (ROOT, ROOT / "docs") and path.name != "CHANGELOG.md":
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def wrong_calls(text: str) -> list[str]:
    """Commands that are none, and options that their command does not take."""
    wrong = [f"research {name}" for name in QUOTED.findall(text) if name not in COMMANDS]
    for name, rest in CALL.findall(text):
        wrong += [f"research {name} {each}" for each in OPTION.findall(rest) if each not in COMMANDS.get(name, KNOWN)]
    return wrong


def test_every_option_that_a_message_names_exists() -> None:
    """Of whichever command."""
    assert not {
        place: option for place, text in texts_of_code() for option in OPTION.findall(text) if option not in KNOWN
    }


def test_every_call_that_is_advised_is_one() -> None:
    """The command exists, and takes the options that stand behind it, in the code and on the pages."""
    assert not {place: wrong for place, text in (*texts_of_code(), *texts_of_pages()) if (wrong := wrong_calls(text))}


def test_every_command_is_documented() -> None:
    """A command that no page names cannot be found by a reader."""
    named = {name for _, text in texts_of_pages() for name, _ in CALL.findall(text)}
    assert COMMANDS.keys() <= named


# --- the scripts around it --------------------------------------------------------------------------------------------
def test_make_help_teaches_every_target() -> None:
    """`make` alone shows what there is; no target is hidden."""
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY: help"))
    assert all(f"make {target}" in shown for target in phony.split()[2:])
