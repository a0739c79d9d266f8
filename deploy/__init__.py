"""What rackwise is delivered as: packages, and the programs that make them."""
