"""What is wrong with the racks, and by how much? Findings with their evidence and age, and an assessment per group."""
