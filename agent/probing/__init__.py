"""When is a rebalance of a Streams application worth asking for (KIP-441)? Pure."""
