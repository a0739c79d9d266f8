"""Elements of SVG as text: escaped, with presentation attributes and classes alone. Pure."""

from __future__ import annotations

from markupsafe import Markup, escape

from config.foreign_text import shortened

AttributeValue = str | int | float | None
"""A value of an attribute; None leaves the attribute out."""


def element(name: str, *children: str, **attributes: AttributeValue) -> Markup:
    """An element; ``class_`` is class, ``stroke_width`` is stroke-width. Children that are no Markup are escaped."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value) if key == "href" else _written(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(child if isinstance(child, Markup) else escape(shortened(child)) for child in children)
    return Markup(f"<{name}{written}>{inner}</{name}>")  # noqa: S704 (every part is escaped above)


def drawing(
    title: str, description: str, width: float, height: float, *children: str, class_: str = "", has_links: bool = False
) -> Markup:
    """A whole picture with its text alternative: ``title`` names it, ``description`` says what it shows.

    With links in it the picture is a group of them, since an image would hide them from screen readers.
    """
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=number(width),
        height=number(height),
        role="group" if has_links else "img",
        aria_label=f"{title}. {description}",
        class_=f"drawing {class_}".strip(),
    )


def group(*children: str, **attributes: AttributeValue) -> Markup:
    """Elements together."""
    return element("g", *children, **attributes)


def link(href: str, *children: str, class_: str = "") -> Markup:
    """A link around elements, named by the texts among them."""
    return element("a", *children, href=href, class_=class_ or None)


def text(x: float, y: float, words: str, **attributes: AttributeValue) -> Markup:
    """A text at a point."""
    return element("text", words, x=x, y=y, **attributes)


def number(value: float) -> str:
    """A coordinate to a hundredth: ``12``, ``12.5``."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def hatching(name: str) -> Markup:
    """The pattern of the unknown, to be used as ``fill="url(#name)"``; its colours are the style sheet's."""
    lines = element("path", d="M-2 2l4-4M0 8l8-8M6 10l4-4", class_="hatch-line")
    ground = element("rect", width=8, height=8, class_="hatch-ground")
    return element("defs", element("pattern", ground, lines, id=name, width=8, height=8, patternUnits="userSpaceOnUse"))


def _written(value: str | float) -> str:
    if isinstance(value, Markup):  # a path of many points is not shortened
        return str(value)
    return number(value) if isinstance(value, float) else str(escape(shortened(str(value))))
