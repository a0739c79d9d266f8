"""Why is something found, proposed or not proposed, and what does it cost? Pure."""
