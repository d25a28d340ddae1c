"""The engine without a language model: every statement of fact is quoted word for word."""

from providers.engines.extractive.engine import ExtractiveEngine

__all__ = ["ExtractiveEngine"]
