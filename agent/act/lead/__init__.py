"""Leadership among agents: the lease, one term of leadership, and the journal and commands that go with it."""
