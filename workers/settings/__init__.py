"""Configuration of a process."""
