"""Asks the page for its views without a server, and reads what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import html5lib
import httpx
from lxml.etree import _Element as HtmlElement
from starlette.applications import Starlette

from agent.simulate.evaluation import StageEvaluation
from agent.web.page.page_request import PageView
from agent.web.page.routes import VIEWS, page_routes
from tests.web.page.worlds import clock, viewed


class PageClient:
    """Asks the page of an agent, as a browser without script does; redirects are not followed."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def get(
        self, path: str, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """The answer to one request."""
        return self._ask("GET", path, params=params, headers=headers)

    def post(self, path: str, data: Mapping[str, str], headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer to a form."""
        return self._ask("POST", path, data=dict(data), headers=headers)

    def _ask(self, method: str, path: str, **more: object) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **more)  # type: ignore[arg-type] # the callers above name them

        return asyncio.run(asked())


def page_client(look: StageEvaluation | None, *, views: Sequence[PageView] = VIEWS, age_ms: int = 3_000) -> PageClient:
    """A client of the page of an agent whose last look is this."""
    return PageClient(Starlette(routes=page_routes(viewed(look, age_ms=age_ms), clock, views)))


def read(html: str) -> HtmlElement:
    """The document, by HTML's own parser. Raises html5lib's ParseError where it is not valid."""
    parser = html5lib.HTMLParser(tree=html5lib.getTreeBuilder("lxml"), strict=True, namespaceHTMLElements=False)
    root = parser.parse(html).getroot()
    for element in root.iter():
        if isinstance(element.tag, str):  # of SVG, too, by its plain name
            element.tag = element.tag.rpartition("}")[2]
    return root


def words(element: HtmlElement) -> str:
    """Its text, with single blanks."""
    return " ".join(" ".join(element.itertext()).split())
