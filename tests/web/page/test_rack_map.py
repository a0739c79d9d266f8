"""The rack map: flows to scale, what is unknown hatched, and words that cover nothing."""

from __future__ import annotations

import pytest
from lxml.etree import _Element as HtmlElement

from agent.documents.cluster import RackDocument
from agent.documents.views import racks
from agent.documents.views_money import RackFlow, RackFlows
from agent.web.page.svg_rack_map import MOST_FLOWS, MOST_ROOMS, rack_map
from tests.web.page.answers import page_client, read, words
from tests.web.page.test_views import page
from tests.web.page.worlds import WORLDS


def test_the_rack_map_draws_flows_to_scale_and_leads_to_losses() -> None:
    picture = page("sick", "/racks").find(".//svg[@class='drawing rack-map']")
    assert len(picture.findall(".//a[@class='room']")) == 3
    flows = [one for one in picture.iter("polygon") if "band" in (one.get("class") or "")]
    titles = [words(one) for one in flows]
    assert "eu-1a to eu-1b, replicate: 7.6 MB/s, $13.13 a day" in titles
    assert any("move: 1 replica, rate unknown" in title for title in titles)
    assert all("is-unknown" in one.get("class") for one, title in zip(flows, titles, strict=True) if "unknown" in title)
    lost = page("sick", "/racks?rack=eu-1b")
    assert "2 partitions without a leader" in words(lost.find(".//section[@id='loss']"))
    names = [words(one.findall("td")[1]) for one in lost.findall(".//div[@id='table-loss']//tbody/tr")]
    assert names == ["clicks-1", "payments-1", "shop-app 0_3"]
    assert "no such rack" in words(read(page_client(WORLDS["sick"]()).get("/racks?rack=zz").text))


def test_a_quiet_pair_of_racks_is_hatched_where_something_is_unknown() -> None:
    unknown = page("unknown", "/racks")
    assert unknown.find(".//svg[@class='drawing rack-map']") is None
    assert "No rack is known" in words(unknown)
    healthy = page("healthy", "/racks").find(".//svg[@class='drawing rack-map']")
    assert not [one for one in healthy.iter("polygon") if "is-unknown" in (one.get("class") or "")]


def test_a_pair_whose_flows_are_too_small_to_be_drawn_is_not_called_quiet() -> None:
    flows = tuple(RackFlow(a, b, "consume", 1e6, None) for a in "abcdefgh" for b in "abcdefgh" if a != b)
    rows = [rack_row(name) for name in "abcdefgh"]
    picture = str(rack_map(rows, RackFlows(flows, (), is_measured=True)))
    assert picture.count("<polygon") == MOST_FLOWS < len(flows)
    assert "nothing crosses" not in picture
    some = RackFlows(flows[:1], (), is_measured=True)
    assert str(rack_map(rows, some)).count("nothing crosses") == 27
    assert "nothing crosses" not in str(rack_map(rows, some._replace(is_measured=False)))
    assert rack_map([rack_row(f"r{number}") for number in range(13)], some) is None


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("number", range(2, MOST_ROOMS + 1))
def test_no_words_of_the_rack_map_cover_words_or_a_room_or_are_cut(number: int, measured: bool) -> None:
    names = [f"eu-central-1{'abcdefghijkl'[at]}" for at in range(number - 1)] + [
        "a-rack-with-a-name-of-forty-letters-in-b"
    ]
    rates = {"replicate": 24e6, "consume": 7.3e6}
    flows = tuple(
        RackFlow(a, b, path, rate * (1 + (names.index(a) * 3 + names.index(b)) % 5), 1_234.56)
        for path, rate in rates.items()
        for a in names
        for b in names
        if a != b and (names.index(a) + names.index(b)) % 3
    )
    rows: list[RackDocument] = [{**rack_row(name), "absent_brokers": [8]} for name in names]
    ranked = tuple(sorted(flows, key=lambda flow: -(flow.bytes_per_s or 0.0)))
    page = f"<!doctype html><title>map</title>{rack_map(rows, RackFlows(ranked, (), is_measured=measured))}"
    picture = read(page).find(".//svg")
    assert picture is not None
    width, height = float(picture.get("width")), float(picture.get("height"))

    def box(rect: HtmlElement) -> tuple[float, float, float, float]:
        x, y, across, down = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        return x, y, x + across, y + down

    found = {
        kind: [box(one) for one in picture.iter("rect") if one.get("class") == kind] for kind in ("tag", "room-ground")
    }
    assert found["tag"]
    assert all(x >= 0 and y >= 0 and right <= width and down <= height for x, y, right, down in found["tag"])
    for at, one in enumerate(found["tag"]):
        for other in (*found["tag"][at + 1 :], *found["room-ground"]):
            apart = one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
            assert apart, (one, other)
    for room in picture.findall(".//a"):
        name, brokers = room.findall("text")[:2]
        assert words(brokers) == "2 brokers, 1 absent"
        if name.get("y") == brokers.get("y"):
            assert float(name.get("x")) + 7.6 * len(words(name)) <= float(brokers.get("x")) - 6.2 * len(words(brokers))
    assert words(picture.findall(".//a")[-1].find("text")).endswith("in-b"), "its end tells racks apart"


def rack_row(name: str) -> RackDocument:
    row = next(row for row in racks(WORLDS["healthy"]()) if row["rack"] == "eu-1a")
    return {**row, "rack": name}
