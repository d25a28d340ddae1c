"""The configuration of a process."""
