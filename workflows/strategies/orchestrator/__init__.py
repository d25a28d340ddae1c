"""The `orchestrator` strategy: it starts concurrent agents with a task each, and decides the next tasks."""
