"""Runs on the real development server, which ends with the last test of this folder in each process of the suite."""
