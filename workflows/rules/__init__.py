"""Pure decisions: which hits are read, what is the same, how a run ends."""
