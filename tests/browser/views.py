"""The views of the page, by the names of their pictures."""

from __future__ import annotations

from typing import NamedTuple


class ShownView(NamedTuple):
    """A view: the name of its picture, its path, and a link on that path that leads on to it, if any."""

    name: str
    path: str
    follow: str = ""
    """CSS selector of the link that leads to the view itself."""


VIEWS = (
    ShownView("overview", "/"),
    ShownView("rack-map", "/racks"),
    ShownView("groups", "/groups"),
    ShownView("group", "/groups/group?id=shop"),
    ShownView("warm-ups", "/warmups"),
    ShownView("findings", "/findings"),
    ShownView("proposals", "/proposals"),
    ShownView("proposal", "/proposals?q=payments", "main a[href*='/proposals/proposal']"),
    ShownView("moves", "/moves"),
    ShownView("time-line", "/timeline?hours=1"),
    ShownView("what-if", "/whatif?remove_rack=c"),
    ShownView("reports", "/reports"),
)
