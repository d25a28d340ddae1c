"""Limits that all workers keep together: rates of services, politeness towards hosts, circuits of endpoints."""
