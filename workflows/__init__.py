"""Deterministic orchestration: workflows, the run facade, strategies, and the pure rules beside them.

Nothing here touches a file, a socket, a clock of its own or a random number; everything of the kind is an activity.
"""
