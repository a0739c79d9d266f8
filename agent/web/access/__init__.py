"""Access to pages and API: the person of a request, its roles, and requests that are refused."""
