"""The outside world behind Protocols: engines, search, reading, stores. Plain asynchronous Python, no Temporal."""
