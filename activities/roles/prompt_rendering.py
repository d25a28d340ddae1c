"""Prompts: one Markdown file per role, filled in a single pass with a role's input and stored texts.

`render_role` is the entry. The same input gives the same bytes, so that a repeated call has the same journal key.
Numbers of the input fill the placeholders of their names; `prompt_values` makes the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

from activities.roles.prompt_blocks import PromptRendering, common_values, missing_content
from activities.roles.prompt_values import VALUES
from activities.roles.untrusted import label_key, seal
from contracts.roles import RoleInput, RoleSpec

PLACEHOLDER: Final = re.compile(r"^\{([a-z_]+)\}\n|\{([a-z_]+)\}", re.MULTILINE)
FILE: Final = re.compile(r"\Aversion: (\S+)\n\s*## system\n(.*?)(?:\n## common\n(.*?))?\n## prompt\n(.*)\Z", re.DOTALL)
PRODUCT: Final = "activities.roles"


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
    rendering = PromptRendering(documents, label_key(request), share, {} if excerpts is None else excerpts)
    own = VALUES[role.name] if role.module is None else import_module(role.module).prompt_values
    values = {name: str(value) for name, value in request if isinstance(value, int)}
    values |= common_values(request) | own(request, rendering)
    common, rest = (seal(part, request.canary) for part in file.parts(values))
    system = with_canary(file.system, request.canary)
    return RenderedPrompt(system, common + rest, file.version, len(common), missing_content(request, rendering))


def with_canary(system: str, canary: str) -> str:
    """Append the sentence about the canary to the system part of a prompt; unchanged for a run without one."""
    return f"{system}\n\n{load_prompt('canary').system.format(canary=canary)}" if canary else system


@dataclass(frozen=True)
class PromptFile:
    """The stable part, the templates of the changing parts, and the version of them all."""

    version: str
    system: str
    template: str
    common: str = ""
    """Comes before `template`: text that is the same in the run's other calls of this role."""

    @property
    def placeholders(self) -> frozenset[str]:
        """Names of the values that the templates need."""
        return frozenset(match[1] or match[2] for match in PLACEHOLDER.finditer(self.common + self.template))

    def parts(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Fill the common part and the rest. A placeholder alone on its line takes the line with it if it is empty.

        Values are never searched again, so braces in a page have no effect. Raises ValueError if a value is missing.
        """
        if missing := self.placeholders - values.keys():
            raise ValueError(f"the prompt lacks values for {', '.join(sorted(missing))}")
        common, rest = (
            PLACEHOLDER.sub(lambda match: _value(match, values), part).strip() for part in (self.common, self.template)
        )
        return f"{common}\n\n" if common else "", rest


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match[1] is None:
        return values[match[2]]
    value = values[match[1]]
    return f"{value}\n" if value else ""


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
    return PromptFile(version=parts[1], system=parts[2].strip(), template=parts[4], common=parts[3] or "")
