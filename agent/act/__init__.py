"""act: carry out what the guard allowed. The only stage whose clients may change a cluster."""
