"""The strategy `orchestrator`: agents with a task each work in isolation; an orchestrator decides what is asked next."""
