"""The strategy `orchestrator`: it sends agents with a task each, side by side, and decides what to ask next."""
