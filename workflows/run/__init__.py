"""What a run is made of: its facade, inbox, clock, budget, calls and records."""
