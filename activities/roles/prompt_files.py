"""Prompt files: one Markdown file per role, read once, filled in a single pass."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from contracts.roles import RoleSpec

PLACEHOLDER: Final = re.compile(r"^\{([a-z_]+)\}\n|\{([a-z_]+)\}", re.MULTILINE)
FILE: Final = re.compile(r"\Aversion: (\S+)\n\s*## system\n(.*?)(?:\n## common\n(.*?))?\n## prompt\n(.*)\Z", re.DOTALL)


@dataclass(frozen=True)
class PromptFile:
    """The stable part, the templates of the changing parts, and the version of them all."""

    version: str
    system: str
    template: str
    common: str = ""
    """Comes before `template`: what the run's other calls of this role say in the same words."""

    @property
    def placeholders(self) -> frozenset[str]:
        """Names that must be filled in."""
        return frozenset(match[1] or match[2] for match in PLACEHOLDER.finditer(self.common + self.template))

    def filled(self, values: Mapping[str, str]) -> str:
        """The prompt: the common part and the rest, as `parts` gives them."""
        return "".join(self.parts(values))

    def parts(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The common part and the rest. A placeholder alone on its line takes the line with it if its value is empty.

        Values are never looked at again, so braces in a page mean nothing. Raises ValueError if a value is missing or
        has no place.
        """
        if self.placeholders != values.keys():
            odd = sorted(self.placeholders.symmetric_difference(values))
            raise ValueError(f"prompt and values differ in {', '.join(odd)}")
        common, own = (
            PLACEHOLDER.sub(lambda match: _value(match, values), part).strip() for part in (self.common, self.template)
        )
        return f"{common}\n\n" if common else "", own


@cache
def load_prompt(stem: str, package: str = "activities.roles") -> PromptFile:
    """The prompt file of that name in the folder `prompts` of a package.

    Raises ValueError if it is not laid out as it should be.
    """
    text = (files(package) / "prompts" / f"{stem}.md").read_text(encoding="utf-8")
    parts = FILE.match(text)
    if parts is None:
        raise ValueError(f"the prompt {stem} needs a version line, a system part and a prompt part")
    return PromptFile(version=parts[1], system=parts[2].strip(), template=parts[4], common=parts[3] or "")


def prompt_of(role: RoleSpec[Any, Any]) -> PromptFile:
    """The prompt file of a role: in the product's folder, or beside the module of a role that has its own."""
    return load_prompt(role.prompt) if role.module is None else load_prompt(role.prompt, role.module.rpartition(".")[0])


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match[1] is None:
        return values[match[2]]
    value = values[match[1]]
    return f"{value}\n" if value else ""
