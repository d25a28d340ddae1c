"""A private source: the notes of a SQLite file, found by one tool of the Model Context Protocol.

`python notes_server.py NOTES.sqlite`, over standard input and output; the file has a table `notes` of number, title,
body, link and day.
"""

import sqlite3
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer

server: MCPServer[Any] = MCPServer("notes")
FIND = "SELECT number, title, body, link, day FROM notes WHERE {} LIMIT ?"


@server.tool()
def find(words: str, most: int = 10) -> list[dict[str, Any]]:
    """Find notes that have one of the words."""
    terms = words.split()
    condition = " OR ".join(["body LIKE '%' || ? || '%'"] * len(terms)) or "1"
    with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(FIND.format(condition), (*terms, most))]


if __name__ == "__main__":
    server.run()
