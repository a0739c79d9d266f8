"""detect: what is wrong with the racks, and by how much."""
