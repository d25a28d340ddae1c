"""What a watcher sees of a run."""
