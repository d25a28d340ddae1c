"""The strategy `recursive`: a scope that a person authorizes, vetted sources, and a tree of executors."""
