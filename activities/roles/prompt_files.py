"""Prompt files: the system part of a role and the Jinja templates of its message, with their filters.

Every value is guarded when it is printed, and never parsed as a template: braces in a page have no effect.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, TemplateSyntaxError
from jinja2.meta import find_undeclared_variables

from activities.roles.claim_checking import with_control
from activities.roles.untrusted import break_lines, guard, guard_line, label_of
from contracts.roles import RoleAnswer, RoleInput, RoleSpec, answer_schema

FILE: Final = re.compile(r"\Aversion: (\S+)\n\s*## system\n(.*?)(?:\n## common\n(.*?))?\n## prompt\n(.*)\Z", re.DOTALL)
EXAMPLE: Final = re.compile(r"^\{.*\}$", re.MULTILINE)
"""Of an answer, on a line of its own in the system part of a prompt."""
PRODUCT: Final = __name__.rpartition(".")[0]


@dataclass(frozen=True)
class PromptFile:
    """A prompt's stable system part, the templates of its other parts, and its version."""

    version: str
    system: str
    common: Template  # precedes `template`: text that the run's calls of this role share
    template: Template


def prompt_of(role: RoleSpec[Any, Any]) -> PromptFile:
    """Load the prompt file of a role; an external role has it in the package of its module."""
    return load_prompt(role.name, PRODUCT if role.module is None else role.module.rpartition(".")[0])


@cache
def load_prompt(stem: str, package: str = PRODUCT) -> PromptFile:
    """Load a prompt file from the folder `prompts` of a package. Raises ValueError if it is malformed."""
    parts = _split_prompt(stem, package)
    common, template = (TEMPLATES.from_string(part or "") for part in parts.group(3, 4))
    return PromptFile(parts[1], parts[2].strip(), common, template)


def _split_prompt(stem: str, package: str) -> re.Match[str]:
    """Return the parts of a prompt file. Raises ValueError if it is malformed, and FileNotFoundError."""
    text = (files(package) / "prompts" / f"{stem}.md").read_text(encoding="utf-8")
    parts = FILE.match(text)
    if parts is None:
        raise ValueError(f"the prompt {stem} needs a version line, a system part and a prompt part")
    return parts


def prompt_problem(role: RoleSpec[Any, Any], package: str) -> str:
    """Return what is wrong with the prompt of a role in a package, with file and line; empty if nothing is."""
    file = f"{package.replace('.', '/')}/prompts/{role.name}.md"
    try:
        parts = _split_prompt(role.name, package)
    except FileNotFoundError:
        return f"there is no {file}"
    except ValueError:
        return f"{file} needs a line `version: NAME`, then `## system` and `## prompt`"
    known = {*role.input.model_fields, *TEMPLATES.globals, "show"}
    for number in (3, 4):
        lines = "\n" * parts.string[: max(parts.start(number), 0)].count("\n")
        try:
            names = find_undeclared_variables(TEMPLATES.parse(lines + (parts[number] or "")))
        except TemplateSyntaxError as error:
            return f"{file}:{error.lineno}: {error.message}"
        if unknown := sorted(names - known):
            near = get_close_matches(unknown[0], sorted(known), 1)
            hint = f" (nearest: {near[0]})" if near else ""
            return f"{file} has {{{{ {unknown[0]} }}}}, which {role.input.__name__} has not{hint}"
    return ""


def system_of(role: RoleSpec[Any, Any], request: RoleInput) -> str:
    """Return the system part of a role's prompt; its example of an answer has only fields that the request asks for."""
    system = prompt_of(role).system
    example = EXAMPLE.search(system)
    if example is None or role.plain_text or role.tools or not request.fields_left_out:
        return system
    fields = _without(json.loads(example[0]), set(request.fields_left_out) - _required_fields(role.answer))
    return system[: example.start()] + json.dumps(fields, ensure_ascii=False) + system[example.end() :]


@lru_cache(maxsize=128)
def _required_fields(answer: type[RoleAnswer]) -> frozenset[str]:
    """Return the names of fields without which no answer of this type is valid, at any depth."""
    schema = json.loads(answer_schema(answer))
    return frozenset(name for part in (schema, *schema.get("$defs", {}).values()) for name in part.get("required", ()))


def _without(value: Any, names: Collection[str]) -> Any:
    """Return a value of JSON without the fields of these names, at any depth."""
    if isinstance(value, dict):
        return {name: _without(part, names) for name, part in value.items() if name not in names}
    if isinstance(value, list):
        return [_without(part, names) for part in value]
    return value


def with_canary(system: str, canary: str) -> str:
    """Append the sentence about the canary to the system part of a prompt; unchanged for a run without one."""
    if canary:
        return f"{system}\n\n{load_prompt('canary').system.format(canary=canary)}"
    return system


class PromptBlock(str):
    """Finished text of a prompt, in which text from outside is guarded."""

    __slots__ = ()


class Labelling(Protocol):
    """The prompt in which ids are shown as labels."""

    @property
    def label_key(self) -> str:
        """The key of the run's labels."""


# --- filters of templates ---------------------------------------------------------------------------------------------
def cut_line(text: str, limit: int) -> str:
    """Guard a text on one line; empty if `limit` is 0."""
    return guard_line(text, limit) if limit else ""


def guard_lines(text: str) -> str:
    """Guard a text of several lines, and break long ones."""
    return "\n".join(break_lines(guard(text)))


def show_label(identity: str, show: Labelling) -> str:
    """Return the label of an id in the prompts of this run."""
    return label_of(identity, show.label_key)


def _finalize(value: Any) -> str:
    if isinstance(value, PromptBlock):
        return value
    return guard(str(value))


TEMPLATES: Final = Environment(  # noqa: S701 - prompts are not HTML: `_finalize` escapes them
    loader=PackageLoader(PRODUCT, "prompts/shared"),
    auto_reload=False,
    finalize=_finalize,
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(line=cut_line, lines=guard_lines, label=show_label, with_control=with_control)
