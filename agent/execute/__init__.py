"""What execute mode decides: reassignments, rebalances and commands, each as pure functions of what was seen."""
