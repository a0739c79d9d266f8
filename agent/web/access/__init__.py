"""Access to pages and API: who asks, with which role, and which requests are refused."""
