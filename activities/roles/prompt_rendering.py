"""Prompts: one Jinja template in Markdown per role, rendered with the fields of the role's input and `show`.

`render_role` is the entry point. Equal inputs give equal bytes, so that a repeated call has the same journal key. Every
value is guarded when it is printed, and never parsed as a template: braces in a page have no effect.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final

from jinja2 import Template

from activities.reporting.passages import LISTING_CHARACTERS
from activities.reporting.references import without_markers
from activities.reporting.updates import numbered_parts, read_body, write_element
from activities.roles.gap_passages import passages_of
from activities.roles.prompt_files import TEMPLATES, PromptBlock, cut_line, guard_lines, prompt_of, show_label
from activities.roles.report_writing import section_of
from activities.roles.untrusted import guard, guard_line, label_key, seal, wrap
from contracts.addresses import digest, name_page
from contracts.call_sizes import GAP_PASSAGE_CHARACTERS, QUOTE_CHARACTERS, SECTION_CHARACTERS, SHOWN_HEADINGS_CHARACTERS
from contracts.checking import AskedClaim, ShownPassage, ShownSection
from contracts.evidence import DocumentRef, Evidence, Finding, SearchHit, source_voice
from contracts.recursive_roles import MAX_SHOWN_LINKS
from contracts.request import Turn
from contracts.roles import LEAST_PRIORITY, AnalyzeInput, RoleInput, RoleSpec, SourceExtract, WriteInput
from contracts.summaries import summary_key
from contracts.texts import shorten
from contracts.tokens import RATIOS, Level
from contracts.vocabulary import Confidence, GapStatus, Quality, Severity
from providers.interfaces import RenderedPrompt
from providers.text import sentence_spans
from providers.tokens.allotment import UNKNOWN, ContentItem, Rank, estimated_tokens, priority
from providers.tokens.shortening import shortened
from providers.tokens.showing import show_sources
from providers.tokens.shown_sources import ShownSource
from providers.verification.own_words import own_words

END_OF_PART: Final = "\x03"
"""Ends a part of a prompt's common text; no guarded text contains this invisible character."""
BLANK_LINES: Final = re.compile(r"\n{3,}")
ATTRIBUTE_SIGNS: Final = str.maketrans({'"': "'", "<": "‹", ">": "›"})
ItemTexts = dict[tuple[str, str, Level], str]
"""Texts of a prompt's items by kind, id and level."""


def render_role(
    role: RoleSpec[Any, Any],
    request: RoleInput,
    documents: Mapping[str, str],
    levels: Mapping[str, Level] | None = None,
    *,
    choose: Callable[[], Sequence[ShownSource]] | None = None,
    texts: ItemTexts | None = None,
) -> RenderedPrompt:
    """Render the prompt of a role; `documents` are stored texts by hash.

    Items of the content are shown in full unless `levels` names them. `choose` returns what is shown of the sources of
    an analysis; None: `show_sources` does. `texts` are those of items that an earlier rendering made, to which this one
    adds its own.
    """
    file = prompt_of(role)
    show = PromptBlocks(request, documents, levels or {}, choose, {} if texts is None else texts)
    # Each part is sealed separately, so that later parts do not change the bytes of earlier ones.
    parts = [f"{part.strip()}\n\n" for part in _fill(file.common, request, show).split(END_OF_PART) if part.strip()]
    own = _fill(file.template, request, show).replace(END_OF_PART, "")
    sealed = [seal(part, request.canary) for part in [*parts, own]]
    return RenderedPrompt(
        "".join(sealed),
        tuple(itertools.accumulate(map(len, sealed[:-1]))),
        items=show.shown if request.tokens.token_management_enabled else (),
        stored_characters=sum(stored for stored, _ in show.characters),
        considered_characters=sum(considered for _, considered in show.characters),
    )


def render_shared(name: str, request: RoleInput) -> str:
    """Render a shared part of prompts, without sealing it."""
    return _fill(TEMPLATES.get_template(f"{name}.md"), request, PromptBlocks(request, {}))


def _fill(template: Template, request: RoleInput, show: "PromptBlocks") -> str:
    fields = {name: getattr(request, name) for name in type(request).model_fields}
    return BLANK_LINES.sub("\n\n", template.render(fields, show=show)).strip()


MARKER: Final = re.compile(r"\[(ev-[0-9A-Za-z]{1,64})\]")  # cites a passage in a stored draft
ITEM_CHARACTERS: Final = 600
GAP_CHARACTERS: Final = 400  # of a gap that is open
CLOSED_CHARACTERS: Final = 80  # of a gap that is closed
SHORT_LIST: Final = 8  # lines of a list that is always shown whole
LIST_PRIORITY: Final = 0.1  # lists are shortened before sources and findings
GAP_STATUSES: Final = {GapStatus.UNADDRESSABLE: "looked for and not found"}
SEVERE: Final = (Severity.CRITICAL, Severity.MODERATE, Severity.MINOR)
PASSAGE_CHARACTERS: Final = 2_000  # a quote is never longer
CONTEXT_CHARACTERS: Final = 2_000
"""Of the text around a passage, so that its own words are never cut; a listing above it has its own limit."""
TITLE_CHARACTERS: Final = 160  # of the title of a page with the heading above a passage
SUMMARY_SHARE: Final = 0.8
BEST_SOURCES: Final = 5  # sources of a call that are shown at the level `compressed` or above
QUALITY_VALUES: Final = {Quality.HIGH: 1.0, Quality.MEDIUM: 0.6, Quality.LOW: 0.2}
CONFIDENCE_VALUES: Final = {
    Confidence.CONFIRMED: 1.0, Confidence.HIGH: 0.8, Confidence.MEDIUM: 0.5, Confidence.LOW: 0.25,
    Confidence.SPECULATION: 0.0,
}  # fmt: skip
ABSTRACT_ONLY: Final = "abstract only, not the paper"
ABRIDGED: Final = "[shortened for lack of room: {shown:,} of {whole:,} characters are shown, […] stands for the others]"
MAX_AGE_YEARS: Final = 10  # age at which a source's recency is 0


@dataclass(frozen=True)
class ShownPassages:
    """Numbered lines of passages, and the numbers of those on each gap."""

    lines: Sequence[PromptBlock]
    numbers: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class PromptBlocks:
    """Content of one prompt."""

    request: Any
    documents: Mapping[str, str]  # stored texts by hash
    levels: Mapping[str, Level] = field(default_factory=dict)  # by id, of items not shown in full
    choose: Callable[[], Sequence[ShownSource]] | None = None
    """Returns what is shown of the sources; None: `show_sources` does."""
    texts: ItemTexts = field(default_factory=dict)
    """Texts of items that were rendered before, here or for another choice of levels."""
    shown: list[ContentItem] = field(default_factory=list)
    """The items of the content in order, at any level."""
    _shown: dict[str, ShownSource] = field(default_factory=dict)
    characters: list[tuple[int, int]] = field(default_factory=list)
    """Characters by source: of its stored text, and of the part considered for the prompt."""

    @cached_property
    def label_key(self) -> str:
        """Return the key of the run's labels."""
        return label_key(self.request)

    def element(self, name: str, heading: str = "", *, caller: Callable[[], str], **attributes: str) -> str:
        """Wrap the lines of a `call` block into an element of data; empty without lines and attributes."""
        # Read as text, so no entities: only what could end the attribute or the element becomes a sign like it.
        escaped = {key: guard(str(value)).translate(ATTRIBUTE_SIGNS) for key, value in attributes.items() if value}
        lines = caller().strip("\n").splitlines()
        rendered = "".join(f' {key}="{value}"' for key, value in escaped.items())
        return _with_heading(heading, wrap(name, lines or [""], rendered) if lines or rendered else "")

    def items(self, heading: str, name: str, items: Sequence[str]) -> PromptBlock:
        """Return an element with one line per item under a heading; empty without items. A long list is an item."""
        lines = [f"- {guard_line(item, ITEM_CHARACTERS)}" for item in items]
        return PromptBlock(_with_heading(heading, self._listed(name, lines)))

    def gaps(self) -> PromptBlock:
        """Return the gaps of the request as an item: the open and grave ones first, since the rest may be omitted."""
        order = sorted(
            self.request.gaps, key=lambda gap: (gap.status is GapStatus.ADDRESSED, SEVERE.index(gap.severity))
        )
        lines = []
        for gap in order:
            room = CLOSED_CHARACTERS if gap.status is GapStatus.ADDRESSED else GAP_CHARACTERS
            unread = ", in sections of pages that were not read" if gap.unread else ""
            about = f"({gap.severity}, priority {gap.priority}, {GAP_STATUSES.get(gap.status, gap.status)}{unread})"
            lines.append(f"{show_label(gap.id, self)}: {guard_line(gap.description, room)} {about}")
        return PromptBlock(self._listed("gaps", lines or ["(none)"]) + "\n")

    def _listed(self, name: str, lines: Sequence[str]) -> str:
        """Return the element of a list; a long one is an item of the content, of which the first lines may be shown."""
        if len(lines) <= SHORT_LIST:
            return wrap(name, list(lines))

        def render(level: Level) -> str:
            count = max(1, math.ceil(RATIOS[level] * len(lines)))
            more = [f"[{len(lines) - count} more are not shown]"] if count < len(lines) else []
            return wrap(name, [*lines[:count], *more])

        number = sum(item.kind == "list" for item in self.shown) + 1
        return self._item(ContentItem(f"{name}-{number}", "list", render, priority=LIST_PRIORITY))

    # --- items of the content, which may be shortened -----------------------------------------------------------------
    def sources(self) -> list[PromptBlock]:
        """Return the sources, each with the passages about the sub-query."""
        if self.choose:
            shown = self.choose()
        else:
            shown = show_sources(self.request, self.documents)
        self._shown.update({one.source.id: one for one in shown})
        values = {one.source.id: self._priority(one.source, index / len(shown)) for index, one in enumerate(shown)}
        best = sorted(values, key=lambda key: (-values[key], key))[:BEST_SOURCES]
        return [self._source(one, values[one.source.id], best=one.source.id in best) for one in shown]

    @property
    def has_outline(self) -> bool:
        """True if a part of the sources is hidden, so that their numbered lists are shown; after the sources alone."""
        return any(
            self._shown[item.id].at(self.levels.get(item.id, Level.FULL)).hidden
            for item in self.shown
            if item.id in self._shown
        )

    @cached_property
    def one_voice(self) -> bool:
        """True if all sources of the run, or of a writer's request, speak with one voice: no finding can be surer.

        A reader may be shown one page alone, of a run that reads others elsewhere.
        """
        if self.request.one_collection or isinstance(self.request, AnalyzeInput):
            return bool(self.request.one_collection)
        sources = getattr(self.request, "sources", ())
        return len({source_voice(source.url, source.publisher) for source in sources}) == 1

    def named(self, hit: SearchHit) -> str:
        """Return the title of a hit with its place."""
        return name_page(hit.title, hit.url)

    def links(self) -> list[str]:
        """Return the first links of each source."""
        return [link for source in self.request.sources for link in source.links[:MAX_SHOWN_LINKS]]

    def iterations(self) -> Iterator[tuple[list[str], list[PromptBlock], list[SourceExtract]]]:
        """Yield sub-queries, findings and newly cited sources by iteration; later prompts begin with the same ones."""
        queries = self.request.sub_queries
        findings = self.request.findings
        cited = self.cited_sources()
        first = {key: finding.iteration for finding in reversed(findings) for key in finding.source_ids}
        for number in sorted({item.iteration for item in (*queries, *findings)}):
            yield (
                [query.text for query in queries if query.iteration == number],
                [self._finding(finding) for finding in findings if finding.iteration == number],
                [source for source in cited if first[source.id] == number],
            )

    def findings(self) -> list[PromptBlock]:
        """Return the findings, each passage with its words once."""
        return [self._finding(finding) for finding in self.request.findings]

    def rivals(self, finding: Finding) -> list[str]:
        """Return the statements of the findings that contradict one, where the request has them."""
        known = {other.id: other.statement for other in self.request.findings}
        return [known.get(key, "a finding that is not shown here") for key in finding.contradicts]

    def _is_background(self, finding: Finding) -> bool:
        """Return whether a finding is always shown on one line: writers of whole reports cite hardly any of them."""
        is_least = finding.priority == LEAST_PRIORITY and not finding.contradicts
        return is_least and isinstance(self.request, WriteInput) and not self._is_protected(finding)

    def _is_protected(self, finding: Finding) -> bool:
        return not set(finding.source_ids).isdisjoint(self.request.protected_source_ids)

    @cached_property
    def _quoting(self) -> dict[str, str]:
        """The finding with which each passage is shown with its words, by ids, in the order of that.

        Of the first iteration that cites it, the one that matters most, which is shortened last.
        """
        shown = [finding for finding in self.request.findings if not self._is_background(finding)]
        quoting: dict[str, str] = {}
        for finding in sorted(shown, key=lambda finding: (finding.iteration, finding.priority)):
            for key in finding.evidence_ids:
                quoting.setdefault(key, finding.id)
        return quoting

    @cached_property
    def _holders(self) -> dict[str, str]:
        """The passages whose words one has that is shown before them in the order of `_quoting`; with it, by ids."""
        known = {item.id: item for item in self.request.evidence}
        cited = [key for key in self._quoting if key in known]
        holders: dict[str, str] = {}
        shown: dict[str, list[Evidence]] = {}
        for item in map(known.__getitem__, cited):
            earlier = shown.setdefault(item.source_id, [])
            holder = next((one for one in earlier if one.start <= item.start and item.end <= one.end), None)
            if holder is None:
                earlier.append(item)
            else:
                holders[item.id] = holder.id
        return holders

    def end_part(self) -> PromptBlock:
        """Return the end of a part that later calls share as a prefix."""
        return PromptBlock(END_OF_PART)

    def cited_sources(self) -> list[SourceExtract]:
        """Return the sources that the shown findings cite."""
        shown = [finding for finding in self.request.findings if self.levels.get(finding.id) is not Level.DROPPED]
        used = {source_id for finding in shown for source_id in finding.source_ids}
        return [source for source in self.request.sources if source.id in used]

    def finding_lines(self) -> list[PromptBlock]:
        """Return one line for each finding: label, sub-query or step by its number, statement, confidence."""
        steps = [step.queries for step in getattr(self.request, "steps", ())]
        asked = steps or [[query.id] for query in getattr(self.request, "sub_queries", ())]
        numbers = {name: number for number, names in enumerate(asked, start=1) for name in names}
        lines = []
        for finding in self.request.findings:
            number = numbers.get(finding.sub_query_id)
            about = f" (on {number})" if number else ""
            statement = guard_line(finding.statement, ITEM_CHARACTERS)
            confidence = "" if self.one_voice else f" ({finding.confidence.value} confidence)"
            lines.append(PromptBlock(f"{show_label(finding.id, self)}{about}: {statement}{confidence}"))
        return lines

    def extent(self, source_id: str) -> str:
        """Return a remark in brackets for a source of which only the abstract was read; empty for any other."""
        return f" ({ABSTRACT_ONLY})" if source_id in self._abstracts else ""

    @cached_property
    def _abstracts(self) -> frozenset[str]:
        return frozenset(source.id for source in self.request.sources if source.abstract_only)

    def headings(self, reference: DocumentRef | None) -> list[PromptBlock]:
        """Return the headings of a stored draft, each followed by the first sentence below it."""
        text = without_markers(self.documents.get(reference.hash, "") if reference else "")
        lines: list[PromptBlock] = []
        room = SHOWN_HEADINGS_CHARACTERS
        is_new = False
        for line in filter(None, map(str.strip, text.splitlines())):
            shown = ""
            if line.startswith("#"):
                shown = line
                is_new = True
            elif is_new:
                first = next(iter(sentence_spans(line)), (0, len(line)))
                shown = line[slice(*first)]
                is_new = False
            if shown and len(shown) <= room:
                room -= len(shown)
                lines.append(PromptBlock(guard_line(shown, ITEM_CHARACTERS)))
        return lines

    def gap_passages(self) -> "ShownPassages":
        """Return the best passages of sources already read on each gap of a refinement."""
        found = passages_of(self.request, self.documents)
        sources = {source.id: source for source in self.request.read_sources}
        lines = []
        for number, passage in enumerate(found.passages, start=1):
            source = sources[passage.source_id]
            stored = self.documents[source.text.hash] if source.text else ""
            place = " › ".join(dict.fromkeys([source.title, *passage.path]))
            text = guard_line(stored[passage.start : passage.end], GAP_PASSAGE_CHARACTERS)
            lines.append(PromptBlock(f"{number}. ({guard_line(place, ITEM_CHARACTERS)}) {text}"))
        return ShownPassages(lines, found.numbers)

    def draft(self, reference: DocumentRef | None, characters: int, *, labelled: bool = False) -> PromptBlock:
        """Return the beginning of a stored draft as an item: without citations, or `labelled` with those of prompts."""
        text = self.text(reference, characters, labelled=labelled)

        def render(level: Level) -> str:
            shown = self._shorter(text, level)
            if level is Level.FULL:
                return guard_lines(shown)
            note = ABRIDGED.format(shown=len(shown), whole=len(text))
            return f"{guard_lines(shown)}\n{note}"

        return self._unquoted(text, ContentItem("draft", "draft", render, Rank.PRIORITY, last=Level.KEY_POINTS))

    def section(self) -> list[PromptBlock]:
        """Return the section of a live report as numbered sentences, items and blocks; of a long one only the end.

        An empty line ends a paragraph or a list; subheadings have no number.
        """
        body = section_of(self.request, self.documents)
        lines: list[PromptBlock] = []
        room = SECTION_CHARACTERS
        first_shown = 0
        for number, part in reversed(numbered_parts(read_body(body))):
            text = " ".join(write_element(part).split())
            shown = MARKER.sub(lambda match: f"[{show_label(match[1], self)}]", text)
            room -= len(shown)
            if room < 0:
                lines.append(PromptBlock(f"[the parts before {first_shown or number + 1} are not shown]"))
                break
            first_shown = number or first_shown
            lines.append(PromptBlock(guard_lines(f"{number}: {shown}" if number else shown)))
        return lines[::-1]

    def turns(self, turns: Sequence[Turn]) -> list[PromptBlock]:
        """Return earlier questions and answers; the latest has the highest priority."""
        return [self._turn(turn, number, number / len(turns)) for number, turn in enumerate(turns, start=1)]

    def statements(self, template: str, claims: Sequence[AskedClaim]) -> list[PromptBlock]:
        """Return claims with their passages, rendered by a shared template; of a shared passage only the label."""
        shared = _shared_passages(claims)
        title = self.title_of(claims)
        return [self._statement(template, claim, number, shared, title) for number, claim in enumerate(claims, start=1)]

    def title_of(self, claims: Sequence[AskedClaim]) -> str:
        """Return the first heading above several claims, if all have the same; it is shown once for all of them."""
        titles = {tuple(claim.place.headings[:1]) for claim in claims}
        if len(claims) < 2 or len(titles) != 1:
            return ""
        return "".join(*titles)

    def shared_passages(self, claims: Sequence[AskedClaim]) -> list[PromptBlock]:
        """Return the passages that several claims have, each once, after its label."""
        return [self._shared_passage(passage) for passage in _shared_passages(claims).values()]

    def sections(self, sections: Sequence[ShownSection]) -> list[PromptBlock]:
        """Return long parts of pages, each an element with its label and title."""
        return [self._section(section) for section in sections]

    def _section(self, section: ShownSection) -> PromptBlock:
        title = f"{section.title}; {ABSTRACT_ONLY}" if section.abstract_only else section.title
        names = {section.id}
        claims = " ".join(one.text for one in self.request.claims if names.intersection(one.sections))

        def render(level: Level) -> str:
            def lines() -> str:
                return guard_lines(shortened(section.text, level, claims))

            return self.element(
                "section", caller=lines, id=show_label(section.id, self), title=shorten(title, TITLE_CHARACTERS)
            )

        return self._item(ContentItem(section.id, "passage", render, last=Level.HEADLINE))

    def _source(self, shown: ShownSource, value: float, *, best: bool) -> PromptBlock:
        source = shown.source
        protected = source.id in self.request.protected_source_ids
        self.characters.append((len(shown.text), shown.characters))

        def render(level: Level) -> str:
            part = shown.at(level)
            ratio = RATIOS[level]
            outline = part.outline(ratio)
            return self._part("source", level, source=source, text=part.excerpt(), outline=outline, ratio=ratio)

        if protected:
            rank = Rank.PROTECTED
        elif best:
            rank = Rank.PRIORITY
        else:
            rank = Rank.REGULAR
        if best:
            last = Level.COMPRESSED
        elif protected:
            last = Level.HEADLINE
        else:
            last = self._min_level
        return self._item(ContentItem(source.id, "source", render, rank, value, last))

    def _finding(self, finding: Finding) -> PromptBlock:
        def render(level: Level) -> str:
            if RATIOS[level] <= RATIOS[Level.HEADLINE] or self._is_background(finding):
                return self._part("finding", level, finding=finding, passages=self._on_one_line(finding), quoted=False)
            passages = [
                (item, quote if self._quoting[item.id] == finding.id else "", self._holders.get(item.id, ""))
                for item, quote in self.evidence(finding, int(QUOTE_CHARACTERS * RATIOS[level]))
            ]
            return self._part("finding", level, finding=finding, passages=passages, quoted=True)

        certain = finding.confidence in (Confidence.HIGH, Confidence.CONFIRMED) or finding.priority == 1
        protected = self._is_protected(finding)
        if protected:
            rank = Rank.PROTECTED
        elif certain:
            rank = Rank.PRIORITY
        else:
            rank = Rank.REGULAR
        needed = (LEAST_PRIORITY - finding.priority) / (LEAST_PRIORITY - 1)
        value = priority(needed, quality=CONFIDENCE_VALUES[finding.confidence], person=1.0 if protected else UNKNOWN)
        last = Level.HEADLINE if certain or protected else self._min_level
        return self._item(ContentItem(finding.id, "finding", render, rank, value, last))

    def _on_one_line(self, finding: Finding) -> list[tuple[Evidence, str]]:
        """Return the evidence of a finding; if it is more than one passage, with a few words that tell them apart."""
        cited = self.evidence(finding, PASSAGE_CHARACTERS)
        if len(cited) < 2:
            return [(item, "") for item, _ in cited]
        words = own_words(finding.statement, [quote for _, quote in cited], self.request.language)
        return [(item, own) for (item, _), own in zip(cited, words, strict=True)]

    def _turn(self, turn: Turn, number: int, value: float) -> PromptBlock:
        def render(level: Level) -> str:
            question = shortened(turn.question, level, self.request.query)
            return self._part("earlier_turn", level, question=question, answer=self._shorter(turn.answer, level))

        item = ContentItem(f"turn-{number}", "turn", render, priority=value, last=self._min_level)
        return self._unquoted(turn.answer, item)

    def _statement(
        self, template: str, claim: AskedClaim, number: int, shared: Collection[str], title: str
    ) -> PromptBlock:
        def render(level: Level) -> str:
            passage = partial(self._passage, level, claim.text)
            return self._part(template, level, claim=claim, shared=shared, title=title, passage=passage)

        return self._item(ContentItem(f"statement-{number}", "statement", render, last=Level.HEADLINE))

    def _shared_passage(self, passage: ShownPassage) -> PromptBlock:
        label = show_label(passage.evidence_id, self)
        claims = [one.text for one in self.request.claims]

        def render(level: Level) -> str:
            return label + self._passage(level, " ".join(claims), passage)

        return self._item(ContentItem(passage.evidence_id, "passage", render, last=Level.HEADLINE))

    @property
    def abstract_note(self) -> str:
        """Return the remark for a source of which only the abstract was read."""
        return ABSTRACT_ONLY

    @property
    def _min_level(self) -> Level:
        if self.request.tokens.allow_content_dropping:
            return Level.DROPPED
        return Level.TRUNCATED

    def _priority(self, source: SourceExtract, rank: float) -> float:
        """Return the priority of a source; `rank` is 0 for the best hit of its search and near 1 for the last one."""
        person = 1.0 if source.id in self.request.protected_source_ids else UNKNOWN
        quality = QUALITY_VALUES.get(source.quality, UNKNOWN)
        return priority(1 - rank, _recency(source.published_at, self.request.date), quality, person)

    def _unquoted(self, text: str, item: ContentItem) -> PromptBlock:
        """Add an unquoted text as an item; if it has summaries, its levels start at the first, so that it is used."""
        levels = list(Level)
        summarized = (index for index, level in enumerate(levels) if summary_of(text, level, self.documents))
        return self._item(replace(item, levels=levels[next(summarized, 0) :], originals=lambda: [text]))

    def _shorter(self, text: str, level: Level) -> str:
        """Return a text at a level: its summary if there is one, else some of its own sentences."""
        return summary_of(text, level, self.documents) or shortened(text, level, self.request.query)

    def _item(self, item: ContentItem) -> PromptBlock:
        render = item.render

        def once(level: Level) -> str:
            key = (item.kind, item.id, level)
            if key not in self.texts:
                self.texts[key] = render(level)
            return self.texts[key]

        item = replace(item, render=once, measure=lambda text: estimated_tokens(seal(text, "")))
        self.shown.append(item)
        return PromptBlock(item.text(self.levels.get(item.id, Level.FULL)))

    def _part(self, template: str, level: Level, **fields: Any) -> str:
        """Render a shared template of an item; empty if the item is dropped."""
        dropped = level is Level.DROPPED
        if dropped:
            return ""
        return TEMPLATES.get_template(f"{template}.md").render(**fields, show=self)

    # --- texts of one form --------------------------------------------------------------------------------------------
    def text(self, reference: DocumentRef | None, characters: int, *, labelled: bool = False) -> str:
        """Return the beginning of a stored draft: without citations, or `labelled` with those of prompts."""
        text = self.documents.get(reference.hash, "") if reference else ""
        if labelled:
            shown = MARKER.sub(lambda match: f"[{show_label(match[1], self)}]", text)
        else:
            shown = without_markers(text)
        if len(shown) <= characters:
            return shown
        return f"{shorten(shown, characters)}\n[the rest is not shown]"

    def summary_size(self) -> int:
        """Return the characters to request of a summary, fewer than its limit, as models count badly."""
        return int(self.request.most_characters * SUMMARY_SHARE)

    def evidence(self, finding: Finding, characters: int) -> list[tuple[Evidence, str]]:
        """Return the evidence of a finding, each with up to `characters` of its quote."""
        known = {item.id: item for item in self.request.evidence}
        texts = {source.id: source.text for source in self.request.sources}
        items = [known[identity] for identity in finding.evidence_ids if identity in known]
        stored = [self.documents.get(text.hash, "") if (text := texts.get(item.source_id)) else "" for item in items]
        return [
            (item, cut_line(text[item.start : item.end], characters)) for item, text in zip(items, stored, strict=True)
        ]

    def _passage(self, level: Level, words: str, passage: ShownPassage) -> PromptBlock:
        """Return title and text of a passage on one line, to follow its label.

        At a lower level the text has its sentences with `words` of the statement, which are likely to decide.
        """
        text = shortened(shorten(passage.quote, PASSAGE_CHARACTERS), level, words)
        if level is Level.FULL:
            text = f"{passage.before} {text} {passage.after}"
        title = guard_line(passage.title, TITLE_CHARACTERS)
        if passage.abstract_only:
            title = f"{title}; {ABSTRACT_ONLY}"
        text = guard_line(text, LISTING_CHARACTERS + PASSAGE_CHARACTERS + CONTEXT_CHARACTERS)
        return PromptBlock(f" ({title}): {text}" if title else f": {text}")


def _shared_passages(claims: Sequence[AskedClaim]) -> dict[str, ShownPassage]:
    """Return the passages that more than one of these claims has, by their ids."""
    counts = Counter(passage.evidence_id for claim in claims for passage in claim.shown_passages)
    passages = (passage for claim in claims for passage in claim.shown_passages)
    return {passage.evidence_id: passage for passage in passages if counts[passage.evidence_id] > 1}


def summary_of(text: str, level: Level, documents: Mapping[str, str]) -> str:
    """Return the summary of a text at a level from the documents of its call; empty if there is none."""
    return documents.get(summary_key(digest(text), level), "")


def _recency(published_at: str | None, today: str) -> float:
    """Return 1 for this year, down to 0 for ten years ago, and the middle for an unknown date."""
    years = [int(date[:4]) for date in (published_at or "", today) if date[:4].isdecimal()]
    if len(years) == 2:
        return max(0.0, min(1.0, 1 - (years[1] - years[0]) / MAX_AGE_YEARS))
    return UNKNOWN


def _with_heading(heading: str, element: str) -> str:
    """Return an element under its heading, with a blank line after it; empty without an element."""
    if not element:
        return ""
    return (f"{heading}\n" if heading else "") + f"{element}\n"
