"""What a probe says of its assignor's user data: nothing where a member said nothing, and no history of any."""

from __future__ import annotations

import pytest

from agent.decode.members import decode_subscription
from agent.decode.values import StickyUserData, Subscription
from agent.execute.probe_bytes import encode_sticky, encode_subscription, probe_bytes
from agent.values.observation import RawClassicGroup, RawMember
from assignors.problem import TopicPartition

OWNED = StickyUserData((TopicPartition("orders", 1),), 7)
NO_HISTORY = encode_sticky(StickyUserData((), None))


@pytest.mark.parametrize(
    ("protocol", "said", "cloned"),
    [
        pytest.param("sticky", None, None, id="sticky: nothing"),
        pytest.param("sticky", b"", b"", id="sticky: empty"),
        pytest.param("sticky", encode_sticky(OWNED), NO_HISTORY, id="sticky: a history"),
        pytest.param("cooperative-sticky", None, None, id="cooperative-sticky: nothing"),
        pytest.param("cooperative-sticky", b"", b"", id="cooperative-sticky: empty"),
        pytest.param("cooperative-sticky", encode_sticky(OWNED), NO_HISTORY, id="cooperative-sticky: a history"),
        pytest.param("range", b"left over", None, id="range: what is left over"),
        pytest.param("roundrobin", b"left over", None, id="roundrobin: what is left over"),
    ],
)
def test_a_probe_has_the_user_data_of_a_member_without_its_history(
    protocol: str, said: bytes | None, cloned: bytes | None
) -> None:
    subscription = Subscription(1, ("orders",), said, (TopicPartition("orders", 1),), None, None)
    member = RawMember("m", None, "c", "/h", encode_subscription(subscription), b"")
    probe = probe_bytes(RawClassicGroup("g", "Stable", "consumer", protocol, (member,), None))
    assert isinstance(probe, bytes)
    assert decode_subscription(probe) == subscription._replace(user_data=cloned, owned=())
