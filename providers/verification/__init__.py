"""True if a sentence follows from the passages that it cites, judged by rules: numbers, names, negation, words."""
