"""Values that cross a process boundary: requests, state, results, events, names, roles and activity signatures.

Nothing here imports anything of ours, so every other package may rely on it.
"""
