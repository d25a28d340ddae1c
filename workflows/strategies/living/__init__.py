"""The `living` strategy: a person approves a plan, then an agent researches while one report grows."""
