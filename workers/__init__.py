"""Worker processes: settings, composition, pools, and the dev server."""
