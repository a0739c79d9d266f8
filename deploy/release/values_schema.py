"""Writes values.schema.json of the chart: the chart's own values, and below ``config`` the settings of rackwise.

Write it anew: python -m deploy.release.values_schema
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from config.document import settings_schema

CHART = Path(__file__).parents[1] / "helm" / "rackwise"
SCHEMA = CHART / "values.schema.json"

Schema = dict[str, Any]
_SETTINGS = "Settings"
_LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"
_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"


def _closed(properties: Schema, *required: str) -> Schema:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_ANY: Schema = {"type": "object"}
_RESOURCE_NAME: Schema = {"type": "string", "pattern": _NAME}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_DIRECTORY: Schema = {
    "type": "string",
    "pattern": r"^/",
    "not": {"enum": ["/", "/tmp", "/etc", "/etc/rackwise/config"]},  # noqa: S108 refused
}
_LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string", "pattern": _LABEL_VALUE}}

_VALUES: Schema = {
    "config": {"$ref": f"#/$defs/{_SETTINGS}"},
    "replicas": {"type": ["integer", "null"], "minimum": 0, "maximum": 10},
    "mounts": _list_of(
        {
            "oneOf": [
                _closed({"secret": _RESOURCE_NAME, "path": _DIRECTORY}, "secret", "path"),
                _closed({"configMap": _RESOURCE_NAME, "path": _DIRECTORY}, "configMap", "path"),
            ]
        }
    ),
    "env": _list_of(
        _closed(
            {
                "name": {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$"},
                "valueFrom": {**_ANY, "minProperties": 1, "maxProperties": 1},
            },
            "name",
            "valueFrom",
        )
    ),
    "image": _closed(
        {
            "repository": {"type": "string", "minLength": 1},
            "tag": _TEXT,
            "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
        }
    ),
    "imagePullSecrets": _list_of(_closed({"name": _RESOURCE_NAME}, "name")),
    "nameOverride": _TEXT,
    "fullnameOverride": _TEXT,
    "podLabels": _LABELS,
    "podAnnotations": _TEXTS,
    "serviceAccount": _closed({"create": {"type": "boolean"}, "name": _TEXT, "annotations": _TEXTS}),
    "http": _closed(
        {
            "bind": {"type": "string", "minLength": 1},
            "pages": {"type": "boolean"},
            "allowedHosts": _list_of(_TEXT),
        }
    ),
    "service": _closed(
        {"type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]}, "port": _PORT, "annotations": _TEXTS}
    ),
    "resources": _closed({"requests": _ANY, "limits": _ANY, "claims": {"type": "array"}}),
    "podDisruptionBudget": _closed({"enabled": {"type": "boolean"}}),
    "networkPolicy": _closed(
        {
            "enabled": {"type": "boolean"},
            "kafkaPorts": {**_list_of(_PORT), "minItems": 1},  # a rule without ports would allow all of them
            "kafkaTo": _list_of(_ANY),
            "from": _list_of(_ANY),
            "egress": _list_of(_ANY),
        }
    ),
    "serviceMonitor": _closed(
        {
            "enabled": {"type": "boolean"},
            "interval": {"type": "string", "pattern": r"^(\d+(ms|s|m|h))+$"},
            "labels": _LABELS,
            "tlsConfig": _ANY,
        }
    ),
    "nodeSelector": _TEXTS,
    "tolerations": _list_of(_ANY),
    "affinity": _ANY,
    "topologySpreadConstraints": {"type": ["array", "null"], "items": _ANY},
    "priorityClassName": _TEXT,
    "global": _ANY,
}


def values_schema() -> Schema:
    """The JSON Schema of the chart's values."""
    settings = settings_schema()
    definitions = settings.pop("$defs")
    dialect = settings.pop("$schema")
    return {
        "$schema": dialect,
        "title": "Values of the chart rackwise",
        **_closed(_VALUES),
        "$defs": {**definitions, _SETTINGS: settings},
    }


def text() -> str:
    """The file's text."""
    return json.dumps(values_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(text(), encoding="utf-8")
