"""The model of the cluster: observations and decoded bytes become one immutable, sorted snapshot."""
