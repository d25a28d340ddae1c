"""The engine without a language model: every statement of fact is quoted word for word."""
