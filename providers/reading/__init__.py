r"""Reading: from the bytes of a document to its canonical text, the one that every quote is a slice of.

The canonical text is a light Markdown, the same for every kind of document and the same on every reading:

- `#` lines are headings, so that a heading path can be recovered at any offset; blank lines part blocks;
- a paragraph is one line; list items start with `- ` or a number; the term of a definition is on the line above
  its text; tables are Markdown rows; captions of figures and tables are paragraphs;
- code and program output are between fences; `^` and `_` mark superscripts and subscripts (`2^32`);
- navigation, scripts, hidden text and invisible characters are gone; NFC; `\n` line ends.

The functions here are pure and run in killable children (`providers.isolation.pool`).
"""
