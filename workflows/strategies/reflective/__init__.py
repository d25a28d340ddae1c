"""The strategy `reflective`: one step at a time, a reflection after each."""
