"""Reading: from the address of a document to its bytes, and from these to its canonical text."""
