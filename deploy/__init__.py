"""What an operator deploys beside rackwise, and the code that generates parts of it."""
