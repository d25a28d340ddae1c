"""The report as one HTML file: no script, no image, nothing loaded, every citation opens its passage."""

import base64
import hashlib
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from html import escape
from importlib import resources
from string import Template

from activities.reporting.html_body import LINK_REL, Body, ReportSection, render_body
from activities.reporting.html_claims import check_of_claim, filter_by_verdict, place_claims
from activities.reporting.markdown_layout import clean_characters, plain_text
from activities.reporting.markdown_report import ReportText, pages_of, quality_words
from activities.reporting.method_section import Fact, method_facts
from activities.reporting.quoted_passages import QuotedPassage
from activities.reporting.readable_passage import passage_parts
from activities.reporting.report_inputs import CitedSource, ReportInputs
from activities.reporting.verification import describe_checking, verification_facts
from contracts.evidence import Source
from contracts.vocabulary import Outcome

LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}")


@lru_cache(maxsize=1)
def _package_files() -> tuple[Template, str, str]:
    """The template, the style sheet, and the style's hash for the Content-Security-Policy."""
    folder = resources.files("activities.reporting")
    template = Template((folder / "report_template.html").read_text("utf-8"))
    style = (folder / "report_style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return template, style, digest


def _text(value: str) -> str:
    return escape(clean_characters(value))


def _language(matter: ReportInputs) -> str:
    language = matter.resolved.language
    return language if LANGUAGE.fullmatch(language) else "en"


def _chrome(matter: ReportInputs) -> str:
    """The language of our own words, where it is not the report's."""
    code = matter.words.code
    return "" if _language(matter).split("-")[0] == code else f' lang="{code}"'


def _address(matter: ReportInputs, url: str) -> str:
    if matter.registry.links(url):
        return f'<a class="address" href="{_text(url)}" rel="{LINK_REL}">{_text(url)}</a>'
    return f'<span class="address">{_text(url)}</span>'


def _kicker(matter: ReportInputs) -> str:
    short = "" if matter.ending.outcome is Outcome.COMPLETED else " short"
    return f'{_text(matter.words["kicker"])} · <span class="outcome{short}">{_text(matter.outcome())}</span>'


def _facts(matter: ReportInputs) -> str:
    corpus, say = matter.resolved.corpus, matter.words
    passages = sum(len(item.passages) for item in matter.cited)
    parts = [
        say.say("facts_cited", sources=say.count("source", len(matter.cited)))
        if matter.cited
        else say["facts_nothing"],
        say.count("passage", passages) if passages else "",
        say.say("facts_corpus", files=say.count("file", corpus.files), name=corpus.title or corpus.name)
        if corpus
        else "",
        say.told(matter.resolved.egress),
    ]
    date = f'<span class="date">{_text(say.day(matter.ending.ended_at))}</span>'
    return " · ".join([*(_text(part) for part in parts if part), date])


def _notice(matter: ReportInputs) -> str:
    ending, checked, say = matter.ending, matter.state.verification.summary, matter.words
    marked = _text(say["not_borne_out"]) if checked.strict and checked.warning else ""
    if ending.outcome is not Outcome.COMPLETED:
        words = f"<strong>{_text(matter.outcome())}:</strong> {_text(matter.why())}. {marked}".rstrip()
    elif marked:
        words = f"<strong>{_text(say['not_verified'])}:</strong> {marked}"
    else:
        return ""
    return f'<p class="notice" role="note"{_chrome(matter)}>{words} <a href="#method">{_text(say["method"])}</a></p>'


def _contents(matter: ReportInputs, sections: list[ReportSection], *, loose: bool) -> str:
    say = matter.words
    own = [ReportSection("sources", say["sources"])] if matter.cited or matter.also_read else []
    own += [ReportSection("statements", say["loose"])] if loose else []
    listed = [*sections, *own, ReportSection("method", say["method"])]
    return "".join(f'<li><a href="#{part.anchor}">{_text(part.title)}</a></li>' for part in listed)


def _quote(passage: QuotedPassage) -> str:
    """The words of a passage, marked within the words around them."""
    before, quote, after = (_text(part) for part in passage_parts(passage.before, passage.quote, passage.after))
    return (
        f'<blockquote><span class="context">{before}</span><mark>{quote}</mark>'
        f'<span class="context">{after}</span></blockquote>'
    )


def _where(matter: ReportInputs, source: Source, passage: QuotedPassage) -> str:
    heading, page = passage.evidence.heading, passage.evidence.page
    same = heading.casefold() == source.title.casefold()
    section = f"§ {matter.show(heading)}" if heading and not same else ""
    return " · ".join(filter(None, (section, pages_of(source, [page], matter.words))))


def _passage(
    matter: ReportInputs, item: CitedSource, passage: QuotedPassage, places: list[str], checks: list[str]
) -> str:
    evidence, say = passage.evidence, matter.words
    where = _where(matter, item.source, passage)
    read = say.say("read_on", day=say.day(item.source.retrieved_at))
    back = " ".join(
        f'<a href="#{place}" aria-label="{_text(say.say("cited_at_label", number=index))}">↑ {index}</a>'
        for index, place in enumerate(places, start=1)
    )
    cited = f'<p class="back">{_text(say["cited_at"])} {back}</p>' if back else ""
    return (
        f'<div class="passage" id="{escape(evidence.id)}" role="doc-endnote">'
        f'<p class="from"><a href="#source-{item.number}">[{_text(item.label.shown)}] '
        f"{_text(matter.show(item.source.title))}</a> · {_text(read)}</p>"
        + (f'<p class="where">{_text(where)}</p>' if where else "")
        + f"{_quote(passage)}{''.join(checks)}{cited}"
        f'<a class="close" href="#reading">{_text(say["close"])}</a></div>'
    )


def _about(matter: ReportInputs, source: Source) -> str:
    say = matter.words
    parts = [
        _text(matter.show(", ".join(source.authors) or source.publisher or "")),
        _text(say.say("published_on", day=say.day(source.published_at))) if source.published_at else "",
        _text(matter.show(quality_words(source.quality, source.quality_reason, say))),
        _text(say.say("read_on", day=say.day(source.retrieved_at))),
        _address(matter, source.url),
    ]
    return " · ".join(part for part in parts if part)


def _cited_source(matter: ReportInputs, item: CitedSource, body: Body, checks: Mapping[str, list[str]]) -> str:
    passages = "".join(
        _passage(matter, item, passage, body.places.get(identity, []), checks.get(identity, []))
        for passage in item.passages
        for identity in [passage.evidence.id]
    )
    return (
        f'<li id="source-{item.number}"><span class="number">[{_text(item.label.shown)}]</span>'
        f"<h3>{_text(matter.show(item.source.title)) or _text(matter.words['untitled'])}</h3>"
        f'<p class="about">{_about(matter, item.source)}</p>{passages}</li>'
    )


def _sources(matter: ReportInputs, text: ReportText, body: Body, checks: Mapping[str, list[str]]) -> str:
    if not matter.cited and not matter.also_read:
        return ""
    listed = "".join(_cited_source(matter, item, body, checks) for item in matter.cited)
    also = "".join(
        f"<li>{_text(matter.show(source.title)) or _text(matter.words['untitled'])} · {_about(matter, source)}</li>"
        for source in matter.also_read
    )
    summary = matter.words.say("also_read", count=len(matter.also_read))
    return (
        f'<section class="apparatus" id="sources"{_chrome(matter)}><h2>{_text(matter.words["sources"])}</h2>'
        f'<p class="lead">{_text(describe_checking(text.claims, matter.resolved.verify, matter.words))}</p>'
        + (f'<ol class="sources">{listed}</ol>' if listed else "")
        + (
            f'<details class="more"><summary>{_text(summary)}</summary><ul class="plain">{also}</ul></details>'
            if also
            else ""
        )
        + "</section>"
    )


def _proof(matter: ReportInputs, identity: str) -> str:
    """A further passage of a statement: the quote in its context, its source, when that was read."""
    passage = matter.passages[identity]
    source = matter.state.sources[passage.evidence.source_id]
    say = matter.words
    title = _text(matter.show(source.title)) or _text(say["untitled"])
    read = say.say("read_on", day=say.day(source.retrieved_at))
    where = " · ".join(filter(None, (_where(matter, source, passage), read)))
    return f'<div class="proof"><p class="origin">{title}</p><p>{_text(where)}</p>{_quote(passage)}</div>'


def _checks(matter: ReportInputs, text: ReportText, places: Collection[int]) -> dict[str, list[str]]:
    """What the check of each claim said, by the passage that shows it: the first one that the claim cites.

    Under the empty id those of claims without a passage. `places` are the numbers of the claims that the text leads
    from; a passage tells itself where it is cited.
    """
    shown = {passage.evidence.id for item in matter.cited for passage in item.passages}
    checks: dict[str, list[str]] = {}
    for index, claim in enumerate(text.claims, start=1):
        first = next((identity for identity in claim.evidence_ids if identity in shown), "")
        others = "".join(_proof(matter, identity) for identity in claim.evidence_ids if identity != first)
        made = check_of_claim(index, claim, others, matter.words, in_text=not first and index in places)
        checks.setdefault(first, []).append(made)
    return checks


def _loose_statements(matter: ReportInputs, checks: list[str]) -> str:
    """The statements that lead to no passage of the list of sources."""
    if not checks:
        return ""
    close = f'<a class="close" href="#reading">{_text(matter.words["close"])}</a>'
    listed = "".join(f'<li class="passage">{check}{close}</li>' for check in checks)
    return (
        f'<section class="apparatus" id="statements"{_chrome(matter)}><h2>{_text(matter.words["loose"])}</h2>'
        f'<ol class="loose">{listed}</ol></section>'
    )


def _fact(matter: ReportInputs, fact: Fact) -> str:
    value = _text(matter.show(fact.value))
    command = f" <code>{_text(fact.command)}</code>" if fact.command else ""
    items = "".join(f"<li>{_text(matter.show(item))}</li>" for item in fact.items)
    return f"<dt>{_text(fact.label)}</dt><dd>{value}{command}{f'<ul>{items}</ul>' if items else ''}</dd>"


def _method(matter: ReportInputs, text: ReportText) -> str:
    facts = "".join(_fact(matter, fact) for fact in [*verification_facts(text.claims, matter), *method_facts(matter)])
    return (
        f'<section class="apparatus" id="method"{_chrome(matter)}><h2>{_text(matter.words["method"])}</h2>'
        f'<dl class="method">{facts}</dl></section>'
    )


def compose_html(matter: ReportInputs, text: ReportText) -> str:
    """The whole page."""
    template, style, style_hash = _package_files()
    claims = place_claims(text.claims, text.body, text.body_start)
    body = render_body(text.body, text.body_marks, matter.registry, matter.words, claims)
    checks = _checks(matter, text, body.claims)
    title = plain_text(text.title)
    return template.substitute(
        language=_language(matter),
        style_hash=style_hash,
        style=style,
        page_title=_text(title),
        contents=_contents(matter, body.sections, loose="" in checks),
        contents_word=_text(matter.words["contents"]),
        skip=_text(matter.words["skip"]),
        kicker=_kicker(matter),
        title=_text(title),
        facts=_facts(matter),
        notice=_notice(matter),
        body=body.html,
        verdicts=filter_by_verdict(text.claims, matter.words, _chrome(matter)),
        sources=_sources(matter, text, body, checks),
        statements=_loose_statements(matter, checks.get("", [])),
        method=_method(matter, text),
        footer=_text(f"{matter.resolved.research_id} · durable-research {matter.product_version}"),
        chrome_language=_chrome(matter),
    )
