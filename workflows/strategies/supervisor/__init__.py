"""The `supervisor` strategy: its loop, gates and transitions."""
