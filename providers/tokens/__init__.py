"""The content of a model call within the room of a window: counting, allotting and shortening. Pure."""
