"""Values that cross a process boundary: requests, state, results, events, names, roles and activity signatures.

It imports no other package of the product, so every other package may import it.
"""
