"""The engine without a language model: every statement of fact is quoted word for word."""

from providers.extractive.engine import ExtractiveEngine

__all__ = ["ExtractiveEngine"]
