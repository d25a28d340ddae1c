"""The dev server: Temporal's development server, started and kept up by the product itself."""
