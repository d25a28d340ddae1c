"""The scribe's module: without a model the product's own brief is written, so it needs no functions."""
