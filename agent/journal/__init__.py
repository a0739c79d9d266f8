"""What the journal says: frozen values, each kind of entry in a module of its own. Pure."""
