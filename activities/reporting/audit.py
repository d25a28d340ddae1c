"""The audit: a report is checked again, offline, from nothing but its JSON and the stored documents.

Its input is untrusted, as a file may come from anybody: its size is limited where it is opened, and texts are compared
in a killable process.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

from pydantic import TypeAdapter

from activities.reporting.claims import Claim
from activities.reporting.inputs import RenderMaterial, ReportInputs, gather_inputs
from activities.reporting.passages import show_passage
from activities.reporting.picture import remove_pictures
from activities.reporting.references import REMOVED, KnownAddresses, addresses_of, find_addresses
from activities.reporting.render import write_document, write_html
from activities.reporting.report_tree import build_report, write_markdown
from activities.roles.claim_checking import UNUSABLE_REASONS
from activities.roles.grounding import evidence_at
from activities.verifying.material import NOT_REACHED, QUOTE_BREAK
from contracts.addresses import digest, evidence_id, finding_id, source_id, source_version_id
from contracts.evidence import CheckMethod, ClaimVerdict, Finding, PageList, Verdict
from contracts.outcome import Usage
from contracts.report import (
    HTML_FILE,
    MARKDOWN_FILE,
    MAX_REPORT_BYTES,
    Report,
    ReportClaim,
    ReportEvidence,
    ReportSource,
    claim_text,
    read_report,
    with_messages,
)
from contracts.sentences import SENTENCES
from contracts.state import ResearchState
from contracts.vocabulary import LIMITS, Outcome, StopReason
from providers.errors import ContentCorrupt, ContentMissing, ProviderError
from providers.isolation.pool import SubprocessPool

GetText = Callable[[str], Awaitable[str]]
GetBytes = Callable[[str], Awaitable[bytes]]

Texts = Mapping[str, str | None]

CONTEXT: Final = re.compile(r'<span class="context">[^<]*</span>')
"""The text around a quote in the HTML form, which comes from the stored text."""
NAME: Final = re.compile(r"(?<=\w\W)\W*[A-Z]|[a-z0-9][A-Z]|[A-Z]{2}")
"""A capital within a claim, as names have."""
COST_TOLERANCE: Final = 1e-6
"""US dollars by which a cost may differ from its parts, which are rounded before they are added."""
COMPARISON_SECONDS: Final = 120.0
"""Enough to compare the largest report, of a thousand sources, on a busy machine."""
DISTRUST: Final = (
    "do not rely on the report: it was changed, or written by something else; take it from the store again: "
    "`research report ID --format json --out report.json`"
)
ARCHIVE: Final = "compare the archive with a backup; `research run` with the same question reads the source again"
TRANSFER: Final = "do not use the bundle: it was changed after it was made; ask the sender for it again"
REMEDIES: Final[Mapping[str, str]] = {
    **{f"{kind}_{what}": ARCHIVE for kind in ("text", "original", "page_list") for what in ("differs", "missing")},
    **dict.fromkeys(("file_differs", "file_missing", "file_unlisted", "signature_differs"), TRANSFER),
    "signature_missing": "ask the sender for a bundle made with `research export ID --bundle --sign KEYFILE`",
    "markdown_differs": "write the file again: `research report ID --format md --out report.md`",
    "html_differs": "write the file again: `research report ID --format html --out report.html`",
    "report_differs": "the file was changed, or the run went on since: take the report from the store again",
    "report_missing": "write the report again: `research resume ID`",
    "report_damaged": "compare the store with a backup, or ask again: `research resume ID`",
}
"""Remedies by kind of problem; `DISTRUST` for all others, which are within the report."""
REPEATED: Final = frozenset(
    ("verdict_differs", "field_differs", "section_altered", "page_differs", "place_differs", "not_renderable")
)
"""Differences between a report and what the rules of the auditing version make of it."""
OTHER_RULES: Final = (
    "the report was written by durable-research {writer}, and this is {auditor}, whose rules may differ: audit it with "
    "the version that wrote it before you rely on it or reject it"
)


@dataclass(frozen=True)
class AuditProblem:
    """A difference between the report and its sources, or within the report."""

    kind: str
    id: str
    message: str
    remedy: str = ""


@dataclass
class AuditResult:
    """Counts of compared and of incomparable items, and every difference."""

    research_id: str = ""
    writer: str = ""  # version of the product that wrote the report
    auditor: str = ""
    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, int] = field(default_factory=dict)
    problems: list[AuditProblem] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if everything that was compared agreed."""
        return not self.problems

    @property
    def by_other_rules(self) -> bool:
        """True if another version of the product wrote the report."""
        return self.writer != self.auditor

    def count(self, noun: str) -> None:
        """Count an item that was compared."""
        self.checked[noun] = self.checked.get(noun, 0) + 1

    def skip(self, noun: str) -> None:
        """Count an item that could not be compared."""
        self.unchecked[noun] = self.unchecked.get(noun, 0) + 1

    def problem(self, kind: str, identity: str, message: str) -> None:
        """Add a difference."""
        remedy = REMEDIES.get(kind, DISTRUST)
        if kind in REPEATED and self.by_other_rules:
            remedy = OTHER_RULES.format(writer=self.writer, auditor=self.auditor)
        self.problems.append(AuditProblem(kind, identity, message, remedy))


async def audit(
    document: bytes,
    get_text: GetText | None,
    get_bytes: GetBytes | None,
    isolated: SubprocessPool,
    *,
    version: str,
    markdown: str | None = None,
    html: bytes | None = None,
    earlier: AuditResult | None = None,
) -> AuditResult:
    """Check every source, passage, citation, claim, number and address of a `report.json`.

    `version` is that of the auditing product: a report of another one may differ from what this one's rules give.
    `get_text` and `get_bytes` return a stored document by its hash and raise `ContentMissing` or `ContentCorrupt`; None
    for a bundle without such documents. `markdown` and `html` are the other forms, if available; `earlier` has earlier
    comparisons. Raises `InputUnprocessable` for a report that crashes its readers.
    """
    result = earlier or AuditResult()
    read = await isolated.call(READ, document, returns=REPORT)
    if not isinstance(read, Report):
        for path, problem in read:
            result.problem("malformed", path, problem)
        return result
    result.research_id = read.research_id
    result.writer = read.product_version
    result.auditor = version
    texts = {}
    pages = {}
    for source in read.sources:
        texts[source.id] = await _load("text", source, source.text_hash, get_text, result)
        if source.pages_hash is not None:
            pages[source.id] = await _load("page list", source, source.pages_hash, get_text, result)
        await _load("original", source, source.content_hash, get_bytes, result)
    page = None
    if html is not None:
        page, pictures = remove_pictures(html.decode("utf-8", "replace"))
        html = page.encode() if pictures else html
        for _ in range(pictures):
            result.skip("pictures of calls, which come from the histories of a server")
    _check_forms(read, markdown, html, result)
    arguments = (read, texts, pages, page, result)
    return await isolated.call(COMPARE, *arguments, returns=RESULT, seconds=COMPARISON_SECONDS)


READ: Final = f"{read_report.__module__}:{read_report.__name__}"
REPORT: Final = TypeAdapter[Report | list[tuple[str, str]]](Report | list[tuple[str, str]])
COMPARE: Final = f"{__name__}:compare"
RESULT: Final = TypeAdapter(AuditResult)


def compare(report: Report, texts: Texts, pages: Texts, page: str | None, result: AuditResult) -> AuditResult:
    """Return the result with every difference between a report, its page and the stored texts.

    `pages` are the offsets of pages, as JSON; both mappings are by the id of the source.
    """
    _Comparison(report, texts, pages, result).run(page)
    return result


async def _load(
    kind: str, source: ReportSource, name: str | None, get: Callable[[str], Awaitable[Any]] | None, result: AuditResult
) -> Any:
    """Load a stored document of a source and check its hash; a missing or altered one is a difference."""
    if name is None or get is None:
        result.skip(f"sources without a stored {kind}" if name is None else f"stored {kind}s that are left out")
        return None
    code = kind.replace(" ", "_")
    try:
        stored = await get(name)
        result.count(f"stored {kind}s")
    except ContentCorrupt:
        stored = ""
    except ContentMissing:
        result.problem(f"{code}_missing", source.id, f"the stored {kind} is gone")
        return None
    if name == digest(stored):
        return stored
    result.problem(f"{code}_differs", source.id, f"the stored {kind} is not what its hash says")
    return None


def _check_forms(report: Report, markdown: str | None, html: bytes | None, result: AuditResult) -> None:
    """Check that the three forms were rendered together; `html` has no pictures of calls."""
    text = digest(report.report.markdown)
    forms = report.forms
    for noun, kind, expected, actual in (
        ("text in report.json", "text_altered", forms.get(MARKDOWN_FILE), text),
        (MARKDOWN_FILE, "markdown_differs", text, None if markdown is None else digest(markdown)),
        (HTML_FILE, "html_differs", forms.get(HTML_FILE), None if html is None else digest(html)),
    ):
        if expected is None or actual is None:
            result.skip(noun)
            continue
        result.count(noun)
        if expected != actual:
            result.problem(kind, noun, "it is not what was rendered together with the other forms")


class _Comparison:
    """Compares the parts of a report with one another and with the stored texts."""

    def __init__(self, report: Report, texts: Texts, pages: Texts, result: AuditResult) -> None:
        self._report = report
        self._texts = texts
        self._pages = pages
        self._count = result.count
        self._skip = result.skip
        self._problem = result.problem
        self._sources = {source.id: source for source in report.sources}
        self._evidence = {item.id: item for item in report.evidence}
        quotes = (item.quote for item in report.evidence)
        self._registry = KnownAddresses.of(addresses_of(report.sources), report.query, quotes)

    def run(self, page: str | None) -> None:
        """Make every check; `page` is the HTML form."""
        if len(self._evidence) < len(self._report.evidence):  # a second entry would hide the first one
            self._problem("field_differs", "evidence", "two passages have one id")
        for source in self._report.sources:
            ids = {source_id(url) for url in (source.url, *source.aliases)}
            versions = {source_version_id(name, source.text_hash or "") for name in ids}
            if source.id not in ids | versions:
                self._problem("id_differs", source.id, "the id does not follow from an address of the source")
        for evidence in self._report.evidence:
            self._check_passage(evidence)
        for finding in self._report.findings:
            self._check_finding(finding)
        self._check_rendering(page)

    # --- passages and findings ---------------------------------------------------------------------------------------
    def _check_passage(self, evidence: ReportEvidence) -> None:
        """Check id, hash and place of a passage in the stored text of its source."""
        if evidence.id != evidence_id(evidence.source_id, evidence.start, evidence.end):
            self._problem("id_differs", evidence.id, "the id does not follow from the place of the passage")
        if (source := self._sources.get(evidence.source_id)) is None:
            self._problem("evidence_without_source", evidence.id, f"the source {evidence.source_id} is not listed")
            return
        if digest(evidence.quote) != evidence.quote_hash:
            self._problem("quote_differs", evidence.id, "the quote is not what its hash says")
        text = self._texts[evidence.source_id]
        if text is None:
            self._skip("passages without their text")
            if not source.text_hash:
                self._problem("evidence_without_text", evidence.id, "its source has no stored text")
            return
        self._count("passages")
        if text[evidence.start : evidence.end] == evidence.quote:
            self._check_location(evidence, text)
        elif (actual := text.find(evidence.quote)) >= 0:
            offsets = f"{evidence.start} to {evidence.end}; the words are at {actual} to {actual + len(evidence.quote)}"
            self._problem("offset_differs", evidence.id, f"the report says characters {offsets}")
        else:
            self._problem("quote_differs", evidence.id, "the stored text does not have these words")

    def _check_location(self, evidence: ReportEvidence, text: str) -> None:
        """Check the heading above a passage and the page on which it begins."""
        heading = evidence_at(evidence.source_id, text, evidence.start, evidence.end).heading
        if not heading and evidence.heading:
            self._skip("headings that the stored text does not have")
        elif self._registry.strip(heading) != evidence.heading:
            self._problem("place_differs", evidence.id, f"in the stored text it is below “{heading}”")
        starts = self._pages.get(evidence.source_id, "")
        if starts is None:  # missing, which is reported as a difference of its own
            return
        try:
            pages = PageList.read(starts) if starts else PageList()
        except ValueError:
            pages = PageList()
        page = pages.page_of(evidence.start)
        uncertain = pages.is_uncertain(evidence.start, evidence.end)
        if uncertain:
            self._skip("passages whose reading is uncertain: two readers of the page differ on their words")
        if uncertain != evidence.uncertain:
            self._problem("place_differs", evidence.id, "the report and its page list differ on its reading")
        if page != evidence.page:
            self._problem("place_differs", evidence.id, "it begins on another page" if page else "it has no page")

    def _check_finding(self, finding: Finding) -> None:
        """Check the sources and the id of a finding."""
        self._count("findings")
        cited = [self._evidence[key].source_id if key in self._evidence else "" for key in finding.evidence_ids]
        if finding.source_ids != list(dict.fromkeys(cited)):
            self._problem("finding_differs", finding.id, "its sources are not those of its passages")
        if REMOVED in finding.statement or find_addresses(finding.statement):
            self._skip("ids of findings with an address, which a report does not repeat as it was")
        elif finding.id != finding_id(finding.statement, finding.evidence_ids):
            self._problem("id_differs", finding.id, "the id does not follow from the statement and its passages")

    # --- claims ------------------------------------------------------------------------------------------------------
    def _check_claim(self, claim: ReportClaim, rejudged: Claim) -> None:
        """Compare the verdict on a claim with that of the same rules on the same text."""
        self._count("claims")
        if claim.method == CheckMethod.MODEL and rejudged.evidence_ids:
            self._check_support(claim, rejudged)
        elif not claim.evidence_ids:
            self._count("claims without a citation")
        elif claim.method == CheckMethod.NONE:
            self._skip("claims that no comparison of words can check")
        else:
            verbatim = claim.method == CheckMethod.VERBATIM
            self._count("word for word claims" if verbatim else "claims judged by rules")
        judged = rejudged.judged
        if (judged.verdict, judged.method, judged.reason) != (claim.verdict, claim.method, claim.reason):
            message = f"it is called {claim.verdict}; its words and passages give {judged.verdict}: {judged.reason}"
            self._problem("verdict_differs", claim.id, message)

    def _check_support(self, claim: ReportClaim, parsed: Claim) -> None:
        """Check that the passages of a claim have the words that a model's verdict quotes."""
        self._skip("verdicts of a model, which no rule gives again")
        items = [self._evidence[key] for key in parsed.evidence_ids]
        sources = [self._sources[item.source_id] for item in items]
        passages = [
            show_passage(item, source.title, self._text_of(source.id))
            for item, source in zip(items, sources, strict=True)
        ]
        start, end = SENTENCES["reason_passages_say"].split("{words}")
        if claim.reason.startswith(start):  # else it is in the model's own words
            for quote in claim.reason.removeprefix(start).removesuffix(end).split(QUOTE_BREAK):
                quoted = _squeeze(quote.removesuffix("…"))
                if not any(quoted in _squeeze(passage.text) for passage in passages):
                    self._problem("verdict_differs", claim.id, "its passages do not say what its reason quotes")

    # --- the text ----------------------------------------------------------------------------------------------------
    def _check_rendering(self, page: str | None) -> None:
        """Render the report again from its own fields, and compare all forms part by part."""
        try:
            inputs = self._gather_inputs()
            self._check_work(inputs.state)
            tree = build_report(inputs)
            written = write_markdown(tree)
            html = write_html(tree)
            document = json.loads(write_document(tree, written, html))
        except (ValueError, LookupError, ProviderError) as error:
            self._problem("not_renderable", "report", f"it cannot be rendered again: {type(error).__name__}")
            return
        report = self._report.model_dump(mode="json")
        document["report"]["markdown"] = report["report"]["markdown"]  # compared by section below
        for claim, rejudged in zip(self._report.claims, inputs.claims, strict=False):
            self._check_claim(claim, rejudged)
        unknown = {"forms", "changes"}  # the report from before a refresh is not part of this one
        if None in self._texts.values():
            unknown.add("evidence")  # without a stored text, the text around its passages is missing as well
        for name in sorted(report.keys() - unknown):
            self._count("fields of the report")
            if report[name] != document[name]:
                path = _first_difference(report[name], document[name], name)
                self._problem("field_differs", path, "it does not follow from the rest of the report")
        self._compare_sections(written.text)
        if page is None:
            return
        if None in self._texts.values():
            page = CONTEXT.sub("", page)
            html = CONTEXT.sub("", html)
        if page != html:
            self._problem("page_differs", HTML_FILE, "the HTML form shows something else than report.json")

    def _compare_sections(self, text: str) -> None:
        """Compare the text of the report with one that was rendered again, section by section."""
        rendered = _by_section(text)
        reported = _by_section(self._report.report.markdown)
        for name in dict.fromkeys((*rendered, *reported)):
            self._count("sections of the text")
            if rendered.get(name) != reported.get(name):
                self._problem("section_altered", name, "report.json gives other words for it")

    def _check_work(self, state: ResearchState) -> None:
        """Check that outcome, searches, usage and the changes since a refresh follow from the rest."""
        report = self._report
        cut_short = report.stop_reason in (*LIMITS, StopReason.USER_STOPPED) or report.failed_branches
        if cut_short and report.outcome == Outcome.COMPLETED and report.stop_reason != StopReason.ANSWERED_DIRECTLY:
            self._problem("outcome_differs", "outcome", "it is called completed, and a part of the work is missing")
        returned: Counter[str] = Counter()
        for record in state.evidence.query_ledger:
            returned[record.sub_query_id] += record.found
        for query in report.queries:
            if query.id in returned and query.result_count > returned[query.id]:
                self._problem("field_differs", query.id, "it has more results than were returned to it")
        self._check_usage(state.accounts.usage, state.accounts.usage_by_role)
        self._check_usage(state.accounts.usage, state.accounts.usage_by_phase)
        claims = {(claim_text(claim), claim.verdict) for claim in report.claims}
        for number, change in enumerate(report.changes.claims if report.changes else ()):
            if change.after and (change.after, change.verdict_after) not in claims:
                self._problem("field_differs", f"changes.claims.{number}", "the report makes no such statement")

    def _check_usage(self, whole: Usage, parts: Mapping[str, Usage]) -> None:
        """Check that the usage of parts, if there are any, adds up to that of the run."""
        if any(part.cost_usd is not None and part.partial_cost_usd for part in (*parts.values(), whole)):
            self._problem("field_differs", "usage", "a partial cost is given although the full cost is known")
        if not parts:
            return
        added = reduce(Usage.plus, parts.values(), Usage())
        for name in Usage.model_fields:
            total = getattr(added, name)
            stated = getattr(whole, name)
            if name == "active_seconds" or total == stated:  # parts do not count time
                continue
            if total is None or stated is None or abs(total - stated) > COST_TOLERANCE:
                self._problem("field_differs", f"usage.{name}", "the parts do not add up to it")

    def _gather_inputs(self) -> ReportInputs:
        """Gather the inputs of the report again. Raises ValueError, KeyError, `ProviderError`."""
        report = with_messages(self._report)
        texts = {source.text_hash: self._text_of(source.id) for source in report.sources if source.text_hash}
        inputs = gather_inputs(material_of(report, texts, unrepeatable_verdicts(report, self._texts)))
        summary = report.verification
        return replace(inputs, unresolved=summary.markers_removed, foreign_urls=[""] * summary.addresses_removed)

    def _text_of(self, source: str) -> str:
        """Return the stored text of a source; for a missing one, blanks with the passages at their places."""
        if (text := self._texts.get(source)) is not None:
            return text
        return text_with_passages(self._report, source)


def text_with_passages(report: Report, source: str) -> str:
    """Return blanks with the passages of a source at their places, in place of its stored text."""
    characters: list[str] = []
    for item in (entry for entry in report.evidence if entry.source_id == source):
        characters += " " * (min(item.end, MAX_REPORT_BYTES) - len(characters))
        characters[item.start : item.end] = item.quote
    return "".join(characters)


def unrepeatable_verdicts(report: Report, texts: Texts) -> list[ClaimVerdict]:
    """Return the verdicts that rules cannot reproduce: of a model, of claims that no checker reached, and of claims
    with a name whose pages are not stored: a name that a page explains is not missing in its passage.

    `texts` are the stored texts by the id of their source.
    """
    unreached = [(CheckMethod.NONE, Verdict.UNVERIFIED, reason) for reason in (NOT_REACHED, *UNUSABLE_REASONS)]
    sources = {item.id: item.source_id for item in report.evidence}

    def lacks_page(claim: ReportClaim) -> bool:
        return any(texts.get(sources[key]) is None for key in claim.evidence_ids if key in sources)

    return [
        ClaimVerdict.model_validate(claim.model_dump() | {"claim_id": claim.id})
        for claim in report.claims
        if claim.evidence_ids
        and (
            claim.method == CheckMethod.MODEL
            or (claim.method, claim.verdict, claim.reason) in unreached
            or (claim.method == CheckMethod.RULES and NAME.search(claim.text) and lacks_page(claim))
        )
    ]


def material_of(report: Report, texts: Mapping[str, str], verdicts: Sequence[ClaimVerdict]) -> RenderMaterial:
    """Return what a report is rendered from, made of its own fields; `texts` are stored texts by hash.

    Raises ValueError for a report whose fields are no state of a run.
    """
    shown = report.fidelity
    fidelity = {}
    if shown:
        fidelity = shown.model_dump(include={"dropped_content_ids", "content_archive_hashes"})
    sources = {
        source.id: source.model_dump()
        | {
            "sub_query_ids": source.query_ids,
            "raw": {"hash": source.content_hash, "media_type": source.media_type} if source.media_type else None,
            "text": {"hash": source.text_hash} if source.text_hash else None,
            "pages": {"hash": source.pages_hash} if source.pages_hash else None,
        }
        for source in report.sources
    }
    summary = report.verification
    state = ResearchState.model_validate(
        report.model_dump(exclude={"sources", "evidence", "fidelity"})
        | fidelity
        | {
            "resolved": report.effective_request,
            "iteration": report.iterations,
            "models_used": report.models,
            "started_at": report.started_at or "",
            "sources": sources,
            "evidence": {item.id: item.model_dump() for item in report.evidence},
            "fidelity": shown.phases if shown else {},
            "usage_by_role": report.usage.get("by_role", {}),
            "usage_by_phase": report.usage.get("by_phase", {}),
            "verification": {"summary": summary.model_dump(), "review": summary.review},
            "ending": report.model_dump() | {"outcome": report.outcome_before_check},
            "draft": {"document": {"hash": digest("")}, "kind": report.kind} if report.report.draft else None,
        }
    )
    return RenderMaterial(
        state=state,
        draft=report.report.draft or None,
        texts=dict(texts),
        skipped=report.skipped_files,
        product_version=report.product_version,
        verdicts=list(verdicts),
        corrections=summary.corrections,
        shortened=shown.shortened_calls if shown else [],
        answers=report.answers,
    )


def _squeeze(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def _by_section(markdown: str) -> dict[str, str]:
    """Return the parts of a text by their second-level headings; the part above them is named `title`."""
    parts: dict[str, str] = {}
    for part in re.split(r"(?m)^(?=## )", markdown):
        name = "title"
        if part.startswith("## "):
            name = part.partition("\n")[0].removeprefix("## ")
        parts[name] = parts.get(name, "") + part
    return parts


def _first_difference(reported: Any, rendered: Any, path: str) -> str:
    """Return the place of the first difference between two values in JSON."""
    if isinstance(reported, dict) and isinstance(rendered, dict):
        pairs = [(f"{path}.{key}", reported.get(key), rendered.get(key)) for key in {**reported, **rendered}]
    elif isinstance(reported, list) and isinstance(rendered, list) and len(reported) == len(rendered):
        pairs = [(f"{path}.{number}", *pair) for number, pair in enumerate(zip(reported, rendered, strict=True))]
    else:
        return path
    return next((_first_difference(mine, theirs, name) for name, mine, theirs in pairs if mine != theirs), path)
