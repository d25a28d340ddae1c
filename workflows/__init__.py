"""Deterministic orchestration: workflows, the run facade, strategies, and their pure rules.

Workflow code uses no files, sockets, wall clock or random numbers; activities do.
"""
