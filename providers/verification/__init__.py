"""Rules that check whether a sentence follows from its cited passages: numbers, names, negation, words."""
