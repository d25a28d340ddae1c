"""Presentation of a run to a person: texts, drawings, and the polling loop."""
