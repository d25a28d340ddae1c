"""Pure decisions: hits to read, duplicate sources, the ending of a run."""
