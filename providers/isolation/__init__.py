"""Functions run in child processes that can be killed: the child, the pool of children, calls that give up."""
