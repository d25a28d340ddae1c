"""Quality of sources, with reasons."""
