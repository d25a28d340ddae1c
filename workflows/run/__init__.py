"""The parts of a run: its facade, inbox, clock, budget, calls and records."""
