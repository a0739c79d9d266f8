"""The manual: the documents of docs/ as a site."""
