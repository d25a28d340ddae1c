"""Reading: from the address of a document to its bytes, and from them to its canonical text."""
