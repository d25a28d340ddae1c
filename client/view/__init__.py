"""Show a run to a person: words, drawings, and the loop that watches."""
