"""What the list of groups of an older broker tells: classic groups alone, or groups whose type it cannot tell."""

from __future__ import annotations

from typing import Any

import pytest

from agent.values.observation import Gap, GapCause, ObservationPart
from agent.wire.client import WireClient
from agent.wire.protocol import API_VERSIONS, CONSUMER_GROUP_DESCRIBE, DESCRIBE_CLUSTER, LIST_GROUPS, ApiCall
from tests.wire.fake_broker import Answer, FakeBroker, encode_body

CONSUMER_GROUP_HEARTBEAT = 68
BEFORE_4_0 = {API_VERSIONS.key: 3, DESCRIBE_CLUSTER.key: 1, LIST_GROUPS.key: 4}
KIP_848_BEFORE_TYPES = BEFORE_4_0 | {CONSUMER_GROUP_HEARTBEAT: 0}
TYPES_ARE_TOLD = BEFORE_4_0 | {LIST_GROUPS.key: 5, CONSUMER_GROUP_DESCRIBE.key: 0}
UNTOLD = Gap.of_several(
    ObservationPart.GROUPS,
    GapCause.UNSUPPORTED,
    "group types",
    "ListGroups v4 reports no group types, so the types of groups that are not classic are unknown",
)


def offering(newest: dict[int, int]) -> Answer:
    row = API_VERSIONS.response.ApiVersion
    rows = [row(api_key=key, min_version=0, max_version=version) for key, version in newest.items()]
    return lambda version, _: encode_body(API_VERSIONS, API_VERSIONS.response(error_code=0, api_keys=rows), version)


def listing(*names: str) -> Answer:
    def answer(version: int, _body: memoryview) -> bytes:
        row = LIST_GROUPS.response.ListedGroup
        kind = {"group_type": "consumer"} if version >= 5 else {}
        rows: list[Any] = [row(group_id=name, protocol_type="consumer", group_state="Stable", **kind) for name in names]
        api: ApiCall = LIST_GROUPS
        return encode_body(api, api.response(error_code=0, groups=rows), version)

    return answer


@pytest.mark.parametrize(
    ("newest", "kind", "gaps"),
    [
        pytest.param(BEFORE_4_0, "classic", (), id="a broker without any call of KIP-848 has classic groups alone"),
        pytest.param(KIP_848_BEFORE_TYPES, None, (UNTOLD,), id="a broker with KIP-848 that tells no types is a gap"),
        pytest.param(TYPES_ARE_TOLD, "consumer", (), id="a broker that tells types is believed"),
    ],
)
def test_the_type_of_a_group_is_unknown_only_where_there_may_be_another(
    newest: dict[int, int], kind: str | None, gaps: tuple[Gap, ...]
) -> None:
    with (
        FakeBroker({API_VERSIONS.key: offering(newest), LIST_GROUPS.key: listing("g")}) as broker,
        WireClient(broker.arguments) as wire,
    ):
        wire.describe_brokers(5_000)
        listed = wire.list_groups(5_000)
    assert [(row.group_id, row.group_type) for row in listed.groups] == [("g", kind)]
    assert listed.gaps == gaps


def test_no_type_is_missed_where_there_is_no_group() -> None:
    with (
        FakeBroker({API_VERSIONS.key: offering(KIP_848_BEFORE_TYPES), LIST_GROUPS.key: listing()}) as broker,
        WireClient(broker.arguments) as wire,
    ):
        wire.describe_brokers(5_000)
        assert wire.list_groups(5_000).gaps == ()
