"""The person of an HTTP request, with the roles that say what it may do.

Invariants: a role includes those before it. A name is short, on one line and visible; two spellings that look alike to
Unicode (NFKC) are one name, so that one person is not two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, cast

from starlette.requests import Request

from agent.web.access.request_checks import AccessRefused
from config.foreign_text import is_mark, is_unsafe
from config.http_settings import RoleSettings

MOST_NAME = 128
"""Characters of a name."""
ANY = "*"


class AccessRole(StrEnum):
    """What a person may do, the least first."""

    VIEW = "view"
    """Look at everything."""
    APPROVE = "approve"
    """Also approve, cancel and roll back plans."""
    OPERATE = "operate"
    """Also pause and resume."""


class SignInWay(StrEnum):
    """The way in which a person was identified."""

    NONE = "none"
    """Not signed in."""
    TOKEN = "token"  # noqa: S105 the name of a way
    OIDC = "oidc"
    PROXY = "proxy"
    CERTIFICATE = "certificate"


class SignedInPerson(NamedTuple):
    """The person of a request, with its roles."""

    name: str
    """As the journal names the person; empty for someone who is not signed in."""
    roles: frozenset[AccessRole]
    via: SignInWay

    @property
    def signed_in(self) -> bool:
        """Whether the person is identified."""
        return self.via is not SignInWay.NONE

    def may(self, role: AccessRole) -> bool:
        """Whether the person has that role."""
        return role in self.roles


NO_ONE = SignedInPerson("", frozenset(), SignInWay.NONE)
"""Not signed in where people sign in: sees nothing."""
VIEWER = SignedInPerson("", frozenset((AccessRole.VIEW,)), SignInWay.NONE)
"""Everyone on the machine, where the server listens on loopback and no sign-in is set."""


def up_to(role: AccessRole | None) -> frozenset[AccessRole]:
    """A role with those that it includes; none for None."""
    every = list(AccessRole)
    return frozenset() if role is None else frozenset(every[: every.index(role) + 1])


def roles_of(values: Iterable[str], rules: RoleSettings) -> frozenset[AccessRole]:
    """The roles of someone with these values, such as groups."""
    held = {*values, ANY}
    lists = ((AccessRole.OPERATE, rules.operate), (AccessRole.APPROVE, rules.approve), (AccessRole.VIEW, rules.view))
    return up_to(next((role for role, wanted in lists if held.intersection(wanted)), None))


def person_name(text: object) -> str | None:
    """The name in its one form; None for what is no name: empty, long, with controls, bidirectional or unseen marks."""
    if not isinstance(text, str) or not text or len(text) > MOST_NAME:
        return None
    name = unicodedata.normalize("NFKC", text).strip()
    if not name or len(name) > MOST_NAME or any(is_unsafe(char) or is_mark(char) for char in name):
        return None
    return name


def person_of(request: Request) -> SignedInPerson:
    """The person of this request, as the access middleware has identified them."""
    return cast("SignedInPerson", getattr(request.state, "person", NO_ONE))


def require(role: AccessRole) -> Callable[[Request], SignedInPerson]:
    """A check for routes: the person, or AccessRefused. As ``Depends(require(role))`` or ``require(role)(request)``."""

    def check(request: Request) -> SignedInPerson:
        person = person_of(request)
        if not person.may(role):
            raise not_allowed(person, role)
        return person

    return check


def not_allowed(person: SignedInPerson, role: AccessRole) -> AccessRefused:
    """The refusal where a person lacks a role: 401 where signing in may help, else 403."""
    if not person.signed_in and person.may(AccessRole.VIEW):
        return AccessRefused(
            403,
            "No sign-in is set up, so nothing can be written",
            why="every user of this machine may look, and none of them is known by name",
            todo="Set http.auth.tokens_file (rackwise token new), or use the command line.",
        )
    if not person.signed_in:
        return AccessRefused(401, "Sign in first", todo="Sign in, or send a token as Authorization: Bearer.")
    return AccessRefused(
        403,
        f"{person.name} lacks the role {role.value}",
        why=f"roles of {person.name}: {', '.join(one for one in AccessRole if one in person.roles) or 'none'}",
        todo="Ask an administrator of rackwise for the role (docs/access.md).",
    )
