"""Prompts: one Jinja template in Markdown per role, rendered with the fields of the role's input and `show`.

`render_role` is the entry. The same input gives the same bytes, so that a repeated call has the same journal key. Every
value is guarded when it is printed, and never read as a template: braces in a page have no effect.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from activities.reporting.citations import without_markers
from activities.roles.claim_checking import with_control
from activities.roles.untrusted import break_lines, data, guard, guard_line, label_key, label_of, seal
from contracts.call_sizes import CONTENT_CHARACTERS, MOST_SOURCES, QUOTE_CHARACTERS
from contracts.checking import ShownPassage
from contracts.evidence import DocumentRef, Evidence, Finding, SectionHint
from contracts.roles import AnalyzeInput, RoleInput, RoleSpec, SourceExtract, WriteInput
from contracts.texts import shorten
from contracts.vocabulary import Confidence
from providers.interfaces import RenderedPrompt
from providers.text import question_stems

FILE: Final = re.compile(r"\Aversion: (\S+)\n\s*## system\n(.*?)(?:\n## common\n(.*?))?\n## prompt\n(.*)\Z", re.DOTALL)
SPARE_LINES: Final = re.compile(r"\n{3,}")
PRODUCT: Final = "activities.roles"


def render_role(
    role: RoleSpec[Any, Any], request: RoleInput, documents: Mapping[str, str], share: float = 1.0
) -> RenderedPrompt:
    """Render the prompt of a role; `documents` are stored texts by hash.

    With a smaller `share` than 1 texts from outside are shortened, all alike, down to the least that makes sense at 0.
    """
    file, show = prompt_of(role), PromptBlocks(request, documents, share)
    common = _fill(file.common, request, show)
    common = seal(f"{common}\n\n" if common else "", request.canary)
    prompt = common + seal(_fill(file.template, request, show), request.canary)
    return RenderedPrompt(prompt, len(common), show.missing())


def render_shared(name: str, request: RoleInput) -> str:
    """Render a shared part of prompts, without the mark of the run."""
    return _fill(TEMPLATES.get_template(f"{name}.md"), request, PromptBlocks(request, {}))


def _fill(template: Template, request: RoleInput, show: "PromptBlocks") -> str:
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


ITEM_CHARACTERS: Final = 600
ALL_ITEMS: Final = 0.25
"""Share of the content down to which texts are shortened alone; below it sources and findings are left out too."""
FEWEST_FINDINGS: Final = 5
PASSAGE_CHARACTERS: Final = 500
CONTEXT_CHARACTERS: Final = 100
"""On each side of a passage."""
SHORTEST: Final = 60
"""Characters of a passage or a title that are shown at least."""
LEAST_CHARACTERS: Final = 200
"""Of a source."""
SEARCHED_CHARACTERS: Final = 60_000
"""Of a document without hinted sections: all of a book would take too long."""
PARAGRAPH: Final = re.compile(r"\S(?:[^\n]|\n(?![ \t\r]*\n))*")
SEPARATORS: Final = ("\n", ". ", "。", " ")
LEFT_OUT: Final = "\n[…]\n"


class PromptBlock(str):
    """Finished text of a prompt, whose foreign words are guarded."""

    __slots__ = ()


@dataclass(frozen=True)
class PromptBlocks:
    """Content of one prompt. With a smaller `share` than 1 texts from outside are shortened, all alike."""

    request: Any
    documents: Mapping[str, str]
    """Stored texts by hash."""
    share: float = 1.0

    def element(self, name: str, heading: str = "", *, caller: Callable[[], str], **attributes: str) -> str:
        """Wrap the lines of a `call` block into an element of data; empty without lines and attributes."""
        given = {each: html.escape(guard(str(value)), quote=True) for each, value in attributes.items() if value}
        lines = caller().strip("\n").splitlines()
        named = "".join(f' {each}="{value}"' for each, value in given.items())
        return _with_heading(heading, data(name, lines or [""], named) if lines or named else "")

    def items(self, heading: str, name: str, items: Sequence[str]) -> PromptBlock:
        """Element with one line per item under a heading; empty without items."""
        lines = [f"- {guard_line(item, ITEM_CHARACTERS)}" for item in items]
        return PromptBlock(_with_heading(heading, data(name, lines)))

    def limit(self, characters: int, least: int = 0) -> int:
        """A limit in characters for the share of this prompt, `least` or more."""
        return max(int(characters * self.share), min(characters, least))

    def text(self, reference: DocumentRef | None, characters: int, cited: str = "") -> str:
        """The beginning of a stored draft without its markers; `cited` takes the place of each marker."""
        text = self.documents.get(reference.hash, "") if reference else ""
        return without_markers(text.replace("[ev-", f"{cited}[ev-") if cited else text)[:characters]

    def sources(self) -> list[tuple[SourceExtract, str]]:
        """The sources that have room, each with the passages about the sub-query."""
        topic = f"{self.request.sub_query.text} {self.request.query}"
        budget = self.limit(CONTENT_CHARACTERS, LEAST_CHARACTERS)
        return [
            (source, excerpt(self._stored(source), source.sections, topic, budget))
            for source in shown_sources(self.request, self.share)
        ]

    def findings(self) -> list[Finding]:
        """The findings that have room, in their order; if some have not, certain ones go before guesses."""
        certainty = list(Confidence)  # from the surest to guesses
        ranked = sorted(self.request.findings, key=lambda finding: certainty.index(finding.confidence))
        shown = {finding.id for finding in ranked[: most_items(len(ranked), self.share, FEWEST_FINDINGS)]}
        return [finding for finding in self.request.findings if finding.id in shown]

    def evidence(self, finding: Finding) -> list[tuple[Evidence, str]]:
        """The evidence of a finding, each with the words of its source."""
        known = {item.id: item for item in self.request.evidence}
        texts = {source.id: self._stored(source) for source in self.request.sources}
        items = [known[identity] for identity in finding.evidence_ids if identity in known]
        characters = self.limit(QUOTE_CHARACTERS)
        return [(item, cut_line(texts.get(item.source_id, "")[item.start : item.end], characters)) for item in items]

    def cited_sources(self) -> list[SourceExtract]:
        """The sources that the shown findings rest on."""
        used = {source_id for finding in self.findings() for source_id in finding.source_ids}
        return [source for source in self.request.sources if source.id in used]

    def passage(self, passage: ShownPassage, *, in_context: bool = True) -> PromptBlock:
        """Title and words of a passage, on one line behind our own name for it."""
        words = shorten(passage.quote, self.limit(PASSAGE_CHARACTERS, SHORTEST))
        if in_context and self.share >= 1:
            words = f"{passage.before[-CONTEXT_CHARACTERS:]} {words} {passage.after[:CONTEXT_CHARACTERS]}"
        title = guard_line(passage.title, SHORTEST)
        words = guard_line(words, PASSAGE_CHARACTERS + 2 * CONTEXT_CHARACTERS)
        return PromptBlock(f" ({title}): {words}" if title else f": {words}")

    def missing(self) -> list[str]:
        """One line with the number of sources or findings that have no room at all."""
        noun, every, shown = "", 0, 0
        if isinstance(self.request, AnalyzeInput):
            noun, every = "sources", len(shown_sources(self.request))
            shown = len(shown_sources(self.request, self.share))
        elif isinstance(self.request, WriteInput):
            noun, every, shown = "findings", len(self.request.findings), len(self.findings())
        return [f"{every - shown} of {every} {noun} had no room in the prompt"] if shown < every else []

    def _stored(self, source: SourceExtract) -> str:
        return self.documents.get(source.text.hash, "") if source.text else ""


def shown_sources(request: AnalyzeInput, share: float = 1.0) -> list[SourceExtract]:
    """The sources that fit into a prompt with that share of its content, in their order."""
    return request.sources[: most_items(min(len(request.sources), MOST_SOURCES), share, 1)]


def most_items(count: int, share: float, fewest: int) -> int:
    """Number of so many items that have room in a prompt with that share of its content."""
    return max(min(count, fewest), int(count * min(1.0, share / ALL_ITEMS)))


def _with_heading(heading: str, element: str) -> str:
    """An element under its heading, with a blank line after it."""
    return (f"{heading}\n" if heading else "") + f"{element}\n" if element else ""


# --- excerpts --------------------------------------------------------------------------------------------------------
def excerpt(text: str, sections: Sequence[SectionHint], question: str, budget: int) -> str:
    """Select about `budget` characters of a text, in document order, with `[…]` between distant parts.

    Paragraphs of the hinted sections are ranked by the number of the question's stems in them, then by the section's
    score.
    """
    if len(text) <= budget:
        return text.strip()
    stems, taken = question_stems(question), list[tuple[int, int]]()
    hints = [hint for hint in sections if hint.start < min(hint.end, len(text))]
    pieces = [
        (-sum(stem in text[start:end].casefold() for stem in stems), -hint.score, start, end)
        for hint in hints or [SectionHint(start=0, end=SEARCHED_CHARACTERS)]
        for start, end in _pieces(text, hint.start, hint.end, budget)
    ]
    for _, _, start, end in sorted(pieces):
        if end - start <= budget and not any(start < stop and first < end for first, stop in taken):
            taken.append((start, end))
            budget -= end - start
    shown, last = "", 0
    for start, end in sorted(taken):
        between = text[last:start] if shown else ""
        shown += (LEFT_OUT if between.strip() else between) + text[start:end]
        last = end
    return shown


def _pieces(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """Give the paragraphs of a section; one that is too long is cut at a line, a sentence or a blank."""
    for paragraph in PARAGRAPH.finditer(text, start, end):
        place = paragraph.start()
        while paragraph.end() - place > longest:
            half, most = place + longest // 4, place + longest // 2
            cuts = (text.rfind(sign, half, most) + len(sign) for sign in SEPARATORS if sign in text[half:most])
            cut = next(cuts, most)
            yield place, cut
            place = cut
        yield place, paragraph.end()


# --- filters of templates ---------------------------------------------------------------------------------------------
def cut_line(text: str, limit: int) -> str:
    """Guard a text on one line; empty where there is no room for it."""
    return guard_line(text, limit) if limit else ""


def guard_lines(text: str) -> str:
    """Guard a text of several lines, and break long ones."""
    return "\n".join(break_lines(guard(text)))


def show_label(identity: str, show: PromptBlocks) -> str:
    """Label of an id in the prompts of this run."""
    request: RoleInput = show.request
    return label_of(identity, label_key(request))


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
TEMPLATES.filters.update(line=cut_line, lines=guard_lines, label=show_label, with_control=with_control)
