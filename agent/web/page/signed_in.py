"""Who asks for a page, and the token of its forms: the one place where the page meets `agent.web.access`."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request


class PersonShown(NamedTuple):
    """A person as the header shows it."""

    name: str | None
    """None for a visitor without a name."""
    roles: tuple[str, ...] = ()
    via: str = ""
    """How the person signed in."""
    sign_out: str = ""
    """Where a form signs out; empty where nothing is to be signed out."""
    sign_in: str = ""
    """Where a person may sign in; empty where that is not offered."""

    def may(self, role: str) -> bool:
        """Whether the person has this role."""
        return role in self.roles


def person_of(request: Request) -> PersonShown:
    """The person of the request."""
    person = getattr(request.state, "person", None)
    if person is None:
        return PersonShown(None)
    return PersonShown(person.name or None, tuple(sorted(str(role) for role in person.roles)), str(person.via))


def csrf_of(request: Request) -> str:
    """The token that a form of this person sends; empty where nothing can be written."""
    return str(getattr(request.state, "csrf_token", ""))
