"""Write the files of a report, and print its summary on the terminal."""

import json
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from rich.text import Text

from client.cli.context import CommandContext
from client.cli.output import CommandError, ExitCode, print_json, print_progress, print_result
from client.run_results import shortcomings_of
from client.view.console import render_ending
from client.view.picture import illustrate
from client.view.words import change_summary, fidelity_text, pasteable, printable
from contracts.addresses import normalize
from contracts.outcome import ResearchResult
from contracts.report import ReportChanges, ReportFidelity
from contracts.texts import from_markdown, visible
from contracts.tokens import Band, sum_totals
from contracts.vocabulary import Outcome
from workers.own_process import files_of_user

FORMATS: Final = {"html": "report.html", "md": "report.md", "json": "report.json"}
VERDICT_LABELS: Final = {"unverified": "not checked", "not_enough_information": "not decided"}
SLUG_CHARACTERS: Final = 48
MAX_SUMMARY_LINES: Final = 20
LINE_CHARACTERS: Final = 100
LEAD: Final = re.compile(r"[ >]*(?:(?:[-*+]|\d{1,9}[.)]) )?")
"""Where a line of Markdown has its own text: after signs of quotes and of a list item."""


def default_folder(question: str, research_id: str) -> Path:
    """Return `reports/DATE-SLUG`, with the id appended if another run's report is already there."""
    plain = normalize("NFKD", question).encode("ascii", "ignore").decode().lower()
    slug = "-".join(re.findall(r"[a-z0-9]+", plain)) or "report"
    if len(slug) > SLUG_CHARACTERS:
        slug = slug[: SLUG_CHARACTERS + 1].rpartition("-")[0] or slug[:SLUG_CHARACTERS]
    folder = Path("reports") / f"{datetime.now().astimezone():%Y-%m-%d}-{slug}"
    existing = folder / FORMATS["json"]
    if not existing.is_file() or f'"{research_id}"' in existing.read_text(encoding="utf-8", errors="replace"):
        return folder
    return folder.with_name(f"{folder.name}-{research_id}")


def write_report(folder: Path, documents: Mapping[str, bytes]) -> dict[str, Path]:
    """Write the forms of a report (`md`, `html`, `json`) into a folder and return their paths. Raises OSError."""
    paths = {form: folder / FORMATS[form] for form in documents}
    for form, data in documents.items():
        write_atomically(paths[form], data)
    return paths


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or not at all, creating a missing folder. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_for_person(path: Path, data: bytes) -> None:
    """Write a file with the permissions of the person and print its path. Raises OSError, `CommandError`."""
    if path.is_dir():
        raise CommandError(f"{path} is a folder: name a file in it")
    with files_of_user():
        write_atomically(path, data)
    print_progress(str(path))


async def deliver_report(
    context: CommandContext,
    result: ResearchResult,
    folder: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    resume: str,
    whole: bool = False,
) -> int:
    """Write the report into a folder, if given; print a summary or one JSON document; return the exit code.

    `resume` is the command that continues the run, empty if that is impossible. The summary has the `whole` text of
    the report, or its first section. Raises OSError.
    """
    documents = await context.report_documents(result)
    paths = {}
    if folder is not None:
        illustrated = await illustrate(documents, await context.handle_if_running(result.research_id))
        with files_of_user():
            paths = write_report(folder, illustrated)
    if as_json:
        document = result.model_dump(mode="json")
        if folder is not None:
            document["paths"] = {form: str(path) for form, path in paths.items()}
        print_json(document)
    elif quiet:
        for path in paths.values():
            print_result(str(path))
    else:
        _print_summary(result, documents, paths, resume, whole=whole)
    return ExitCode.of(result.outcome, result.stop_reason)


def _print_summary(
    result: ResearchResult,
    documents: Mapping[str, bytes],
    paths: Mapping[str, Path],
    resume: str,
    *,
    whole: bool,
) -> None:
    """Print a report, its first section unless `whole`, how the run ended, verdicts, paths and the next commands."""
    report = {}
    if "json" in documents:
        report = json.loads(documents["json"])
        for line in shown_text(report, whole=whole):
            print_result(line)
    print_result(render_ending(result))
    counts = result.verification.verdict_counts
    verdicts = ", ".join(f"{count} {VERDICT_LABELS.get(name, name)}" for name, count in counts.items())
    if verdicts:
        print_result(f"  claims checked: {verdicts}")
    for line in shortcomings_of(result):
        print_result(Text(pasteable(f"  {line}"), style="yellow"))
    fidelity = fidelity_in(documents)
    if fidelity is not None and fidelity.band is not Band.FULL:
        print_result(Text(f"  shown to models: {fidelity_text(sum_totals(fidelity.phases.values()))}", style="yellow"))
    if report.get("changes"):
        changes = ReportChanges.model_validate(report["changes"])
        print_result(pasteable(f"  changed since {changes.since[:10]}: {change_summary(changes)}"))
    main_path = paths.get("html") or paths.get("md")
    if main_path is not None:
        others = ", ".join(form for form in paths if paths[form] != main_path)
        print_result(f"  {main_path}   ({others} beside it)" if others else f"  {main_path}")
    if documents:
        print_result(pasteable(f"  next: research open {result.research_id} · research audit {result.research_id}"))
    if result.advice:
        print_result(pasteable(f"  what helps: {result.advice}"))
    elif resume:
        ways = f"continue: {resume}"
        if not documents and result.outcome is not Outcome.REFUSED:
            ways += f" · report now: {resume} --now"
        print_result(pasteable(f"  {ways}"))


def fidelity_in(documents: Mapping[str, bytes]) -> ReportFidelity | None:
    """Return the share of content shown to models, from `report.json`; None if it is not recorded."""
    fidelity = json.loads(documents.get("json", b"{}")).get("fidelity")
    return fidelity and ReportFidelity.model_validate(fidelity)


def shown_text(report: Mapping[str, Any], *, whole: bool) -> list[str]:
    """Return the text of a `report.json` up to its sources, or its first section; then the sources that it cites.

    A section alone has at most 20 lines.
    """
    _, heading, body = str(report["report"]["markdown"]).partition("\n## ")
    section = []
    if heading and whole:
        own = report["report"]["sections"][-2 if report["citations"] else -1]
        answer = f"## {body}".partition(f"\n## {own}\n")[0]
        section = [visible(from_markdown(line)) for line in answer.splitlines()]
    elif heading:
        section = [visible(from_markdown(line)) for line in body.partition(heading)[0].splitlines()]
    lines = [piece for line in section for piece in wrapped(line)]
    lines = lines if whole or len(lines) <= MAX_SUMMARY_LINES else [*lines[:MAX_SUMMARY_LINES], "…"]
    numbers = {int(number) for number in re.findall(r"\[(\d+)\]", "\n".join(lines))}
    titles = {source["id"]: printable(source["title"]) for source in report["sources"]}
    cited = [item for item in report["citations"] if item["number"] in numbers]
    sources = [f"[{item['number']}] {titles.get(item['source_id'], item['source_id'])}" for item in cited]
    text = "\n".join(lines).rstrip().splitlines()
    if sources:
        text += ["", *sources]
    return [*text, ""]


def wrapped(line: str) -> list[str]:
    """Return a line of text in pieces of at most 100 characters; a quote stays one, a list item is indented."""
    start = LEAD.match(line)
    lead = start[0] if start else ""
    pieces = wrap(
        line[len(lead) :],
        LINE_CHARACTERS,
        initial_indent=lead,
        subsequent_indent=re.sub("[^ >]", " ", lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return pieces or [line.rstrip()]
