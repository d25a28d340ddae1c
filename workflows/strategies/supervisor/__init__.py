"""The strategy `supervisor`: its loop, its gates and its transitions."""
