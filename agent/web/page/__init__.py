"""Pages for browsers: templates and static files."""
