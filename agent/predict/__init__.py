"""What will a group's own assignor give it? The parity assignors, asked about a group of a snapshot."""
