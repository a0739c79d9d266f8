"""Reports of the folder of http.reports: listed, sent to be saved, and nothing else of the machine's files."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from agent.web.api import routes_work
from tests.web.api.agents import view_of
from tests.web.api.servers import client_of
from tests.web.api.test_api import CYCLE

ODD = 'a b\u202e"<script>.md'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("reports")
    (folder / "week.html").write_text("<script>alert(1)</script>")
    (folder / ODD).write_text("# odd")
    (folder / "secret.yaml").write_text("token: canary-51fe")
    (folder / "link.md").symlink_to("/etc/passwd")
    (folder / "folder.md").mkdir()
    with client_of(view_of(CYCLE, settings={"http.reports": str(folder)})) as client:
        yield client


def test_only_plain_files_of_a_report_s_format_are_listed(client: httpx.Client) -> None:
    listed = client.get("/api/v1/reports").json()
    assert [row["name"] for row in listed["items"]] == [ODD, "week.html"]


def test_a_report_is_saved_and_runs_nothing_in_this_site_s_name(client: httpx.Client) -> None:
    answer = client.get("/api/v1/reports/week.html")
    assert (answer.status_code, answer.text) == (200, "<script>alert(1)</script>")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"].startswith("sandbox;")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_name_of_any_characters_is_quoted(client: httpx.Client) -> None:
    name = client.get("/api/v1/reports").json()["items"][0]["name"]
    answer = client.get("/api/v1/reports/a%20b%E2%80%AE%22%3Cscript%3E.md")
    assert (name, answer.text) == (ODD, "# odd")
    assert answer.headers["content-disposition"] == ("attachment; filename*=UTF-8''a%20b%E2%80%AE%22%3Cscript%3E.md")


@pytest.mark.parametrize(
    "name", ["secret.yaml", "link.md", "folder.md", "..%2fweek.html", "%2fetc%2fpasswd", "week.html%00", "x", "%ff.md"]
)
def test_nothing_else_is_sent(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/api/v1/reports/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def test_a_report_that_is_too_large_is_not_sent(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes_work, "MOST_BYTES", 10)
    answer = client.get("/api/v1/reports/week.html")
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
