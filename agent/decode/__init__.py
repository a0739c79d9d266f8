"""What do the members' bytes say? Foreign bytes become a value or `Undecodable`, never an exception."""

from agent.decode.members import decode_members
from agent.decode.values import DecodedGroup, DecodedGroups, DecodedMember, Undecodable, UndecodableReason

__all__ = ["DecodedGroup", "DecodedGroups", "DecodedMember", "Undecodable", "UndecodableReason", "decode_members"]
