"""Commands of operators: who gave them, what they change, and how they are answered. Pure."""
