"""The commands of `rackwise spark`: a module for each, with a function of its name."""
