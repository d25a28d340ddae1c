"""Roles: one paid activity each; prompts as Markdown files."""
