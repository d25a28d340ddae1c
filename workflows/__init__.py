"""Deterministic orchestration: workflows, the run facade, strategies, and their pure rules.

Workflow code touches no file, socket, clock of its own or random number; all of these are activities.
"""
