"""What do the members' bytes say? Foreign bytes become a value or `Undecodable`, never an exception."""
