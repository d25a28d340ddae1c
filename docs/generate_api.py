"""Write `api.md`: the interface for programs, with the JSON Schemas of the models and the examples as they are run.

usage: python docs/generate_api.py      (a test compares the page with what this script would write)
"""  # noqa: INP001 - a folder of pages is no package

import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from contracts.messages import DocumentPiece, DocumentPieceRequest
from contracts.outcome import EventPage, ResearchResult, ResearchStatus
from contracts.report import QuestionThread
from contracts.request import ResearchRequest

PAGE = Path(__file__).with_name("api.md")
WIDTH = 118
EXAMPLES = PAGE.parents[1] / "examples"
MODELS: dict[str, tuple[type[BaseModel], str, str]] = {
    "Request": (ResearchRequest, "validation", "The one argument of the workflow `deep-research`."),
    "Result": (ResearchResult, "serialization", "What it returns, and the first detail of a failure that carries one."),
    "Status": (ResearchStatus, "serialization", "Answer of the query `status`."),
    "Events": (EventPage, "serialization", "Answer of the query `events(after)`."),
    "Thread": (
        QuestionThread,
        "serialization",
        "What `research thread ID --json` prints, oldest question first.",
    ),
    "Document": (DocumentPieceRequest, "validation", "The one argument of the workflow `research-document`."),
    "Piece of a document": (DocumentPiece, "serialization", "What that one returns."),
}
HEAD = """# Interface for programs

For programs that start runs. [Requests](requests.md) explains the fields of a request, [reports](reports.md) those of
`report.json`. `docs/generate_api.py` generates this page; a test runs its examples.

Names are stable: workflow types `deep-research`, `research-agent` (a child of a run) and `research-document`, task
queue `research-workflows`, workflow id = research id. A failed run is a failed workflow: the type of its failure is
the stop reason for a refused run, `TimedOut` or `ResearchFailed` for the others, and its first detail is a result.
The package `durable_research` is the one name that is installed; it is typed (`py.typed`), and its modules are those
of the repository with this name in front.

## With one call

`research` asks one question as `research run` does, and returns an object with the report. In a notebook `await` it
in a cell, whose last line shows the report with its sources and verdicts; elsewhere `asyncio.run` takes it. It starts
a server and workers where none run, and they end with it.

```python
{single}```

| argument | |
|---|---|
| `corpus` | a folder of documents, or the name of a corpus; without one the web is searched |
| `model`, `model_url`, `config` | as `--model`, `--model-url` and `--config` |
| `research_id` | the id of the run; that of an earlier run joins or resumes it, or returns its stored report |
| `progress` | called with each line of progress; without it a notebook or a terminal shows the newest one |
| all others | fields of the [request](#request): `strategy="living"`, `web=True`, `exclude=["gas boilers"]` |

| of what it returns | |
|---|---|
| `markdown`, `report` | the report as text, and the content of `report.json` |
| `sources` | the cited sources in the order of their numbers |
| `outcome`, `cost_usd`, `research_id`, `result` | how the run ended |
| `ask("…")` | a follow-up question, which returns an object of the same kind |
| `save(folder)` | writes `report.md`, `report.html` and `report.json` |

Where no report comes of it, `ResearchError` has the sentence of the command line and, as `exit_code`, its [exit
code](requests.md#how-a-run-ends). A cancelled call, Ctrl-C and the stop button of a notebook cancel the run, and its
state is saved: the same call with its `research_id` continues it (on a cluster such a call only detaches, and the run
goes on). The work is done by a process of its own, so that cells may take as long as they like. Runs that wait for a
person (`gates`) are better started with the handle below, or on [the page](page.md).

## With Temporal's client alone

```python
{plain}```

`static_summary` shows the question in the lists of the web UI. Without it the question is in the memo (`question`)
and in the current details of the run.

## With the typed handle

`ResearchHandle` (`client/handle.py`) needs the contracts, `temporalio` and `rich`. `follow()` yields events until the
run ends, `result()` always returns a `ResearchResult`, `document(name)` a whole stored document through the server:
`report.md`, `report.html`, `report.json`, `session.json`, `draft.md`, a source id, or the hash of a text of a live
report. Where texts are [encrypted](operations.md#encryption), connect with
`data_converter=durable_research.data_converter()`, which has the keys of the configuration.

```python
{typed}```

## Seven events for front ends of agents

`agent_events()` of the handle, and `research watch ID --events agent` as JSON lines, give the log of a run from its
beginning as seven types of events (`client/agent_events.py`), during the run and after it:

| `type` | when | fields besides `seq` and `time` |
|---|---|---|
| `AgentInput` | the question, guidance, an approval, an edit | `input[]`, `current_agent_name`, `plan` of an edit |
| `AgentStream` | once a turn, if it has a text | `delta` and `response` (the whole text), `current_agent_name` |
| `AgentOutput` | the end of a turn; a person is asked | `response`, `tool_calls[]`, `current_agent_name` |
| `ToolCall` | a tool is called | `tool_id`, `tool_name`, `tool_kwargs` |
| `ToolCallResult` | one answer to each call | the same, and `tool_output`: `content`, `is_error`, `raw_output` |
| `StopEvent` | the end | `status`, `result` (see below), `is_error` with `message` for a failure |
| `WorkflowCancelledEvent` | the end of a cancelled run | `status`, `research_id`, `resumable`, `message` |

`raw_output` has a schema by tool. `decompose_query`, for every version of the plan that the planner made: `version`,
`clarifying_questions`, `expanded_queries`, `outline`, `assumptions`. `web_search`: `pages[]` with `page`, `url`,
`title`, `snippet`. `fetch_url`: `url`, `title`, `file_id`, `content_type`, `characters`. `parse_content`: `url`,
`title`, `authors`, `notes` by number. `update_report`, for every update: `new_report_markdown` (the whole text after
it; `null` if it is no longer stored), its hash `report`, `heading`, `inserted`, `removed`; a refused update leaves the
text unchanged. Each of the last four has the answer as the agent got it in `reason`. Every other tool: `text`.

A run has its last 400 log entries, also after `research resume`. If its log has lost its beginning, the events begin
with the question, the plan in force, its approval and the newest text. The stream ends with its run; if the workers
end with it, as those of `research run` do, the last entries before the end may be missing.

The document `session.json` has the rest: `resolved` (the question and the settings), `plan`, `sources` with
`file_id`, `notes` and `retrieved_at`, and `artifacts[]`; `draft.md` is the newest text. `session_status` maps the
status of a run to that of such front ends, and `STATUSES` maps back:

| `status` | status of the run |
|---|---|
| `planning` | `created`, `queued`, `running` before a plan was made and approved |
| `awaiting_approval` | `awaiting_clarification`, `awaiting_approval` |
| `running` | `running` |
| `completed` | `completed`, `partial`, `empty` |
| `failed` | `failed`, `refused`, `timed_out` |
| `cancelled` | `cancelled` |

## Documents through the server

Workflow `research-document` serves a piece of at most 1,000,000 characters; `next_offset` is where the next one
begins, `null` after the last. A document that does not exist is a failure of the type `ContentMissing`.

## Other formats

`client/exchange` converts a `report.json`, without a server or a store: `read_report` (`contracts/report.py`) returns
the report, or place and problem of everything malformed; `to_docx`, `to_pdf`, `to_bibtex` and `to_csl` return bytes.
`compose_bundle` and `BundleReader` write and read [bundles](reports.md#handing-a-report-on); the reader raises
`BundleUnusable` for a file that is not safe to read. `research audit FILE --json` prints `passed`, `checked`,
`unchecked` and `problems[]` with `kind`, `id`, `message` and `remedy`.

## Schemas
"""


def page() -> str:
    """The whole page."""
    examples = {"single": "one_question.py", "plain": "plain_client.py", "typed": "typed_handle.py"}
    parts = [HEAD.format_map({name: _body(EXAMPLES / file) for name, file in examples.items()})]
    for title, (model, mode, meaning) in MODELS.items():
        schema = _laid_out(_schema(model, mode))
        parts.append(f"### {title}\n\n{meaning}\n\n```json\n{schema}\n```\n")
    return "\n".join(parts)


def _body(path: Path) -> str:
    """The function `main` of an example with its imports, without the frame of a program."""
    text = path.read_text(encoding="utf-8")
    return text[text.index("import asyncio") : text.index("\n\nif __name__")].replace("import sys\n", "")


def _schema(model: type[BaseModel], mode: Any) -> Any:
    return _without_titles(TypeAdapter(model).json_schema(mode=mode))


def _without_titles(value: Any) -> Any:
    """Titles repeat the names of fields."""
    if isinstance(value, list):
        return [_without_titles(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: each for key, each in value.items() if key != "title" or not isinstance(each, str)}
    return {key: _without_titles(each) for key, each in kept.items()}


def _laid_out(value: Any, indent: str = "") -> str:
    """JSON with what is short on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = f"{indent}  "
    if isinstance(value, list):
        inside = [f"{deeper}{_laid_out(each, deeper)}" for each in value]
    else:
        inside = [f"{deeper}{json.dumps(key)}: {_laid_out(each, deeper)}" for key, each in value.items()]
    opening, closing = ("[", "]") if isinstance(value, list) else ("{", "}")
    return "\n".join([opening, ",\n".join(inside), f"{indent}{closing}"])


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
