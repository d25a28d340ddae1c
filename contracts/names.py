"""Stable names; they are stored data, so changing one needs a decision record."""

from typing import Final

PACKAGES: Final = ("contracts", "workflows", "activities", "providers", "workers", "client")
MODULE_PREFIX: Final = __name__.rpartition("contracts.")[0]
"""Begins the full name of each module of the product: empty in the repository, `durable_research.` once installed.

It is never part of what is stored or sent, so that processes of both forms work on the same runs.
"""

# Workflow types (the plain `temporal` CLI and other SDKs start runs by these names).
DEEP_RESEARCH: Final = "deep-research"
RESEARCH_AGENT: Final = "research-agent"
RESEARCH_DOCUMENT: Final = "research-document"
RESEARCH_PREVIEW: Final = "research-preview"
DEEP_RESEARCH_PLAN: Final = "deep-research-plan"
RESEARCH_METADATA: Final = "research-metadata"
RESEARCH_REFRESH: Final = "research-refresh"
RESEARCH_NOTICE: Final = "research-notice"

DEPLOYMENT: Final = "durable-research"
"""Name of the worker deployment, whose versions are the builds of the pool `workflows`."""

SCHEMA_VERSION: Final = 3
"""Version of the stored state of a run: sessions have it."""

# Task queues, one per worker pool.
WORKFLOWS_QUEUE: Final = "research-workflows"
MODELS_QUEUE: Final = "research-models"
SEARCH_QUEUE: Final = "research-search"
READING_QUEUE: Final = "research-reading"
RECORDS_QUEUE: Final = "research-records"

POOLS: Final[dict[str, str]] = {
    queue.removeprefix("research-"): queue
    for queue in (WORKFLOWS_QUEUE, MODELS_QUEUE, SEARCH_QUEUE, READING_QUEUE, RECORDS_QUEUE)
}

# Search attributes: keywords and one double, never user text (SQL visibility has few slots).
PHASE_ATTRIBUTE: Final = "ResearchPhase"
STRATEGY_ATTRIBUTE: Final = "ResearchStrategy"
OUTCOME_ATTRIBUTE: Final = "ResearchOutcome"
TENANT_ATTRIBUTE: Final = "ResearchTenant"
COST_ATTRIBUTE: Final = "ResearchCostUsd"
KEYWORD_ATTRIBUTES: Final = (PHASE_ATTRIBUTE, STRATEGY_ATTRIBUTE, OUTCOME_ATTRIBUTE, TENANT_ATTRIBUTE)

# Memo of a run, shown by the server: the start of its question, its strategy, its tenant and, at the end, its outcome.
QUESTION_MEMO: Final = "question"
STRATEGY_MEMO: Final = "strategy"
TENANT_MEMO: Final = "tenant"
OUTCOME_MEMO: Final = "outcome"
QUEUED_MEMO: Final = "queued"
"""Set on the continuation of a run that moved to another version while it was queued: its work has not begun."""
STATUS_MEMO: Final = "status"
"""Status of a run that continues in a new history: it is shown until a worker has loaded its state there."""
MEMO_CHARACTERS: Final = 400

# Messages to a run.
STEER: Final = "steer"
STOP_AND_REPORT: Final = "stop_and_report"
ANSWER_CLARIFICATION: Final = "answer_clarification"
REPLY: Final = "reply"
REVISE_PLAN: Final = "revise_plan"
APPROVE_PLAN: Final = "approve_plan"
REJECT_PLAN: Final = "reject_plan"
UPGRADE: Final = "upgrade"
"""Asks a run to move to the version of the code that new runs get, at its next pause."""
TURN: Final = "turn"
"""Tells a queued run its place, or that it may start."""
STATUS: Final = "status"
PLAN: Final = "plan"
REPORT: Final = "report"
DECISIONS: Final = "decisions"
SOURCES: Final = "sources"
SESSION: Final = "session"
EVENTS: Final = "events"

CORPUS_SCHEME: Final = "corpus:"
CORPUS_PROVIDER: Final = "corpus"
SERVER_SCHEME: Final = "mcp:"
"""Scheme of documents of the servers that the operator names: `mcp:NAME/ID`."""
SERVER_PREFIX: Final = "mcp."
"""Of the provider that searches such a server: `mcp.NAME`."""
OWN_SCHEMES: Final = (CORPUS_SCHEME, SERVER_SCHEME)
"""Schemes of documents of the operator, which have no host; `NAME` is their collection."""

FAIRNESS_KEY_CHARACTERS: Final = 64
"""Longest fairness key that the server accepts; tenant names are cut to it."""
