"""Writes deploy/grafana/dashboards anew.

`make dashboards` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.acting import acting
from deploy.grafana.costs import costs
from deploy.grafana.groups import groups
from deploy.grafana.overview import overview
from deploy.grafana.streams import streams

FOLDER = Path(__file__).with_name("dashboards")


def dashboards() -> Mapping[str, str]:
    """File name -> the dashboard as Grafana imports it."""
    pages = {"overview": overview(), "groups": groups(), "streams": streams(), "acting": acting(), "costs": costs()}
    return {
        f"rackwise-{name}.json": json.dumps(one.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"
        for name, one in pages.items()
    }


if __name__ == "__main__":
    for name, text in dashboards().items():
        (FOLDER / name).write_text(text)
