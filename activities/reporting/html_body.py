"""The body of a report as safe HTML: Markdown without raw HTML, an allow-list, our own citation links put in last."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import nh3
from markdown_it.token import Token

from activities.reporting.citations import CitationMark
from activities.reporting.html_claims import MARK, LinkedClaim, keep_harmless, link_sentences, marks_of_claims
from activities.reporting.links import Registry
from activities.reporting.markdown_layout import PARSER
from activities.reporting.readable_passage import CELL_BORDER, without_marks
from activities.reporting.report_words import ReportWords

OPEN, CLOSE = "\ue100", "\ue101"
PLACE = re.compile(f"\\[{OPEN}(\\d+){CLOSE}\\]")
CLAIM_MARKS = re.compile(f"(?:{MARK.pattern})+")
TAGS = {"p", "br", "hr", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "a"}
TAGS |= {"h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"a": {"href"}, "ol": {"start"}} | {f"h{level}": {"id"} for level in range(2, 7)}
CLASSES = {"th": {"right", "center"}, "td": {"right", "center"}}
LINK_REL = "noopener noreferrer nofollow ugc"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class ReportSection:
    """A heading of the second level: its anchor and its plain text."""

    anchor: str
    title: str


@dataclass(frozen=True)
class Body:
    """Safe HTML, its sections, and where each passage is cited."""

    html: str
    sections: list[ReportSection]
    places: dict[str, list[str]]
    """Anchors of the citations by evidence id."""
    claims: set[int] = field(default_factory=set)
    """Numbers of the claims whose words lead to their check."""


def _with_places(text: str, marks: Sequence[CitationMark], claims: Sequence[LinkedClaim]) -> str:
    """The Markdown with each number replaced by a place holder that no draft can hold, and each claim marked."""
    edits = [(mark.start, mark.end, f"[{OPEN}{index}{CLOSE}]") for index, mark in enumerate(marks)]
    edits += [(place, place, sign) for place, sign in marks_of_claims(claims)]
    pieces, last = [], 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[last:start], replacement]
        last = end
    return "".join(pieces) + text[last:]


def _keep_link(children: list[Token], place: int, registry: Registry) -> bool:
    if not registry.links(str(children[place].attrs.get("href", ""))):
        return False
    for child in children[place + 1 :]:
        if child.type == "link_close":
            break
        if OPEN in child.content:
            return False
    return True


def _filter_links(children: list[Token], registry: Registry) -> list[Token]:
    kept, dropping = [], False
    for place, child in enumerate(children):
        if child.type == "link_open":
            dropping = not _keep_link(children, place, registry)
        if not (dropping and child.type in ("link_open", "link_close")):
            kept.append(child)
    return kept


def _prepare(tokens: list[Token], registry: Registry) -> list[ReportSection]:
    """Give headings their anchors, cells their classes, and take out links that must not be."""
    sections: list[ReportSection] = []
    quotes = 0
    for place, token in enumerate(tokens):
        quotes += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type in ("heading_open", "heading_close") and token.tag == "h1":
            token.tag = "h2"
        if token.type == "heading_open" and token.tag == "h2":
            words = "".join(child.content or " " for child in tokens[place + 1].children or [])
            sections.append(ReportSection(f"section-{len(sections) + 1}", PLACE.sub("", words).strip()))
            token.attrs["id"] = sections[-1].anchor
        if token.type in ("th_open", "td_open"):
            align = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            token.attrs |= {"class": align} if align in ("right", "center") else {}
        if token.type == "inline" and token.children:
            token.children = _filter_links(token.children, registry)
            if quotes:
                _show_lines(token.children)
    return sections


def _show_lines(children: list[Token]) -> None:
    """Our marks of lists and rows go from the beginnings of quoted lines."""
    begins = True
    for child in children:
        if begins and child.type == "text":
            lead = CLAIM_MARKS.match(child.content)
            words = child.content[lead.end() if lead else 0 :]
            child.content = (lead[0] if lead else "") + without_marks(words).replace(
                f"{CELL_BORDER}[{OPEN}", f" [{OPEN}"
            )
        begins = child.type in ("hardbreak", "softbreak")


def _citation(mark: CitationMark, anchor: str, say: ReportWords) -> str:
    """The links of one number: one for each passage of the source that the marker named."""
    links = []
    for index, identity in enumerate(mark.evidence_ids):
        label = (escape(mark.shown) or str(mark.number)) if index == 0 else LETTERS[index % len(LETTERS)]
        many, number = len(mark.evidence_ids), str(mark.number)
        told = (
            say.say("passage_label", number=number, index=index + 1, all=many)
            if many > 1
            else say.say("source_label", number=number)
        )
        links.append(f'<a role="doc-noteref" href="#{escape(identity)}" aria-label="{escape(told)}">{label}</a>')
    return f'<span class="cite" id="{anchor}">[{"".join(links)}]</span>'


def render_body(
    text: str, marks: Sequence[CitationMark], registry: Registry, say: ReportWords, claims: Sequence[LinkedClaim] = ()
) -> Body:
    """The Markdown between title and sources as HTML. `marks` are the places of its numbers, `claims` those in it."""
    sections: list[ReportSection] = []

    def render(some: Sequence[LinkedClaim]) -> str:
        safe, found = _safe_html(_with_places(text, marks, some), registry, say)
        if not some:
            sections[:] = found
        return safe

    safe, kept = keep_harmless(claims, render)
    places: dict[str, list[str]] = {}

    def cite(match: re.Match[str]) -> str:
        index = int(match.group(1))
        for identity in marks[index].evidence_ids:
            places.setdefault(identity, []).append(f"cite-{index + 1}")
        return _citation(marks[index], f"cite-{index + 1}", say)

    linked, leading = link_sentences(PLACE.sub(cite, safe), kept, say)
    return Body(linked, sections, places, leading)


def _safe_html(text: str, registry: Registry, say: ReportWords) -> tuple[str, list[ReportSection]]:
    environment: dict[str, object] = {}
    tokens = PARSER.parse(text, environment)
    sections = _prepare(tokens, registry)
    rendered = PARSER.renderer.render(tokens, PARSER.options, environment)
    safe = nh3.clean(
        rendered,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes={"http", "https"},
        url_relative="deny",
        link_rel=LINK_REL,
    )
    region = f'<div class="scroll" role="region" aria-label="{escape(say["table_label"])}" tabindex="0"><table>'
    return safe.replace("<table>", region).replace("</table>", "</table></div>"), sections
