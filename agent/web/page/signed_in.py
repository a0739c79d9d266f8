"""Who asks for a page, and the token of its forms: the one place where the page meets `agent.web.access`."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from agent.web.access.middleware import SIGN_OUT, csrf_token
from agent.web.access.person import AccessRole
from agent.web.access.person import person_of as signed_in_person


class PersonShown(NamedTuple):
    """A person as pages show it."""

    name: str | None
    """None for a visitor without a name."""
    roles: frozenset[AccessRole] = frozenset()
    sign_out: str = ""
    """Where a form signs out; empty where there is no session to end."""

    @property
    def role_words(self) -> str:
        """The highest role, which includes the others."""
        return next((role.value for role in reversed(AccessRole) if role in self.roles), "no role")

    def may(self, role: AccessRole | str) -> bool:
        """Whether the person has this role; templates name it by its word."""
        return AccessRole(role) in self.roles


def person_shown(request: Request) -> PersonShown:
    """The person of the request."""
    person = signed_in_person(request)
    has_session = bool(getattr(request.state, "session", ""))
    return PersonShown(person.name or None, person.roles, SIGN_OUT if has_session else "")


def form_token(request: Request) -> str:
    """The token that a form of this person sends; empty where the server has no gate, and so takes no form."""
    return csrf_token(request) if getattr(request.state, "gate", None) is not None else ""
