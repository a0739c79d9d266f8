"""fleet: plans for many clusters at once, each group's exact optimum worked out on its own."""
