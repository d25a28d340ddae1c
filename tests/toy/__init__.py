"""A strategy from outside the product, as another package would bring it: no product file knows it."""
