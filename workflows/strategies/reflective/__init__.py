"""The `reflective` strategy: one step at a time, with a reflection after each."""
