"""Execute mode: carries out allowed reassignments, rebalances and commands; its clients alone change a cluster."""
