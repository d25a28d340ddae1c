"""Prompts: one Jinja template in Markdown per role, rendered with the fields of the role's input and `show`.

`render_role` is the entry. The same input gives the same bytes, so that a repeated call has the same journal key. Every
value is guarded when it is printed, and never read as a template: braces in a page have no effect.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from activities.roles.prompt_blocks import PromptBlock, PromptBlocks, cut_line, guard_lines, show_label
from activities.roles.untrusted import guard, seal
from contracts.roles import RoleInput, RoleSpec

FILE: Final = re.compile(r"\Aversion: (\S+)\n\s*## system\n(.*?)(?:\n## common\n(.*?))?\n## prompt\n(.*)\Z", re.DOTALL)
SPARE_LINES: Final = re.compile(r"\n{3,}")
PRODUCT: Final = "activities.roles"


def _printed(value: Any) -> str:
    return value if isinstance(value, PromptBlock) else guard(str(value))


TEMPLATES: Final = Environment(  # noqa: S701 - a prompt is no HTML: `_printed` is its escape
    loader=PackageLoader(PRODUCT, "prompts/shared"),
    finalize=_printed,
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(line=cut_line, lines=guard_lines, label=show_label)


@dataclass(frozen=True)
class RenderedPrompt:
    """Everything that a model is sent of a role without tools."""

    system: str
    prompt: str
    version: str
    common_length: int = 0
    """Number of leading characters that the run's other calls of this role share."""
    left_out: list[str] = field(default_factory=list)
    """One line for each kind of content that has no room at all."""


def render_role(
    role: RoleSpec[Any, Any],
    request: RoleInput,
    documents: Mapping[str, str],
    share: float = 1.0,
    excerpts: dict[str, str] | None = None,
) -> RenderedPrompt:
    """Render the prompt of a role; `documents` are stored texts by hash.

    With a smaller `share` than 1 texts from outside are shortened, all alike, down to the least that makes sense at 0.
    `excerpts` caches the excerpts of the sources between renderings of one request.
    """
    file = prompt_of(role)
    show = PromptBlocks(request, documents, share, {} if excerpts is None else excerpts)
    common = _fill(file.common, request, show)
    common = seal(f"{common}\n\n" if common else "", request.canary)
    prompt = common + seal(_fill(file.template, request, show), request.canary)
    return RenderedPrompt(with_canary(file.system, request.canary), prompt, file.version, len(common), show.missing())


def render_shared(name: str, request: RoleInput) -> str:
    """Render a shared part of prompts, without the mark of the run."""
    return _fill(TEMPLATES.get_template(f"{name}.md"), request, PromptBlocks(request, {}))


def _fill(template: Template, request: RoleInput, show: PromptBlocks) -> str:
    fields = {name: getattr(request, name) for name in type(request).model_fields}
    return SPARE_LINES.sub("\n\n", template.render(fields, show=show)).strip()


def with_canary(system: str, canary: str) -> str:
    """Append the sentence about the canary to the system part of a prompt; unchanged for a run without one."""
    return f"{system}\n\n{load_prompt('canary').system.format(canary=canary)}" if canary else system


@dataclass(frozen=True)
class PromptFile:
    """The stable part, the templates of the changing parts, and the version of them all."""

    version: str
    system: str
    common: Template
    """Comes before `template`: text that is the same in the run's other calls of this role."""
    template: Template


def prompt_of(role: RoleSpec[Any, Any]) -> PromptFile:
    """Load the prompt file of a role: of the product, or in the folder of the module of a role from outside."""
    return load_prompt(role.name, PRODUCT if role.module is None else role.module.rpartition(".")[0])


@cache
def load_prompt(stem: str, package: str = PRODUCT) -> PromptFile:
    """Load a prompt file from the folder `prompts` of a package. Raises ValueError if it is not laid out as one."""
    text = (files(package) / "prompts" / f"{stem}.md").read_text(encoding="utf-8")
    parts = FILE.match(text)
    if parts is None:
        raise ValueError(f"the prompt {stem} needs a version line, a system part and a prompt part")
    common, template = (TEMPLATES.from_string(part or "") for part in parts.group(3, 4))
    return PromptFile(parts[1], parts[2].strip(), common, template)
