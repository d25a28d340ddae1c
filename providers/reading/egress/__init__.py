"""The only way out to hosts named by users, models and pages."""
