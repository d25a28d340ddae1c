"""Pure decisions: which hits are read, which sources are equal, how a run ends."""
