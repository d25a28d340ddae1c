"""Fitting the content of a model call into a window: counting, allotting and shortening. Pure."""
