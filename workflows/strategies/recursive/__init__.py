"""The `recursive` strategy: a scope authorized by a person, vetted sources, and a tree of executors."""
