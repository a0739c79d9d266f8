"""Who asks for a page, and the token of its forms: the one place where the page meets `agent.web.access`."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from agent.web.access import person as access
from agent.web.access.gate import AccessGate
from agent.web.access.middleware import SIGN_IN, SIGN_OUT, csrf_token
from agent.web.access.person import AccessRole


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
    person = access.person_of(request)
    gate: AccessGate | None = getattr(request.state, "gate", None)
    if gate is None:
        return PersonShown(person.name or None)
    roles = tuple(role.value for role in AccessRole if person.may(role))
    if person.signed_in:
        in_session = gate.session_cookie in request.cookies
        return PersonShown(person.name, roles, person.via.value, sign_out=SIGN_OUT if in_session else "")
    offered = gate.tokens is not None or gate.oidc is not None
    return PersonShown(None, roles, sign_in=SIGN_IN if offered else "")


def csrf_of(request: Request) -> str:
    """The token that a form of this person sends; empty where nothing can be written."""
    return csrf_token(request) if hasattr(request.state, "gate") else ""
