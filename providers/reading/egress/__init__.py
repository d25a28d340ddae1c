"""The one way out to hosts that users, models and pages name."""
