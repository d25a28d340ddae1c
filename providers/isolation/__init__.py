"""Functions run in child processes that can be killed: the child, and the pool of children."""
