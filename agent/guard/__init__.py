"""guard: what may be done now. What is not surely safe is held, with the reason and its numbers."""
