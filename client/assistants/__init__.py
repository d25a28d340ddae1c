"""Tools for assistants, by the Model Context Protocol (MCP). Imported on first use: its SDK takes 26 MB of memory."""
