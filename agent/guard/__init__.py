"""The guard: allows, holds or refuses proposals. What is not surely safe is held. Pure."""
