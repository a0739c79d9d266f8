"""Programs that make the files of a release."""
