"""What rackwise uses of kafka-python beyond its documented API. A release that changes it fails here, by name."""

from __future__ import annotations

import random
import time
from importlib import metadata
from typing import Any

import pytest

from agent.wire import protocol
from agent.wire.failure import UnusableAnswer
from agent.wire.protocol import ApiCall, decode, encode, error_name, operations, sasl_mechanism
from tests.wire.fake_broker import encode_body

APIS = {name: value for name, value in vars(protocol).items() if isinstance(value, ApiCall)}

KAFKA_KEYS = {
    "API_VERSIONS": (18, 3),
    "METADATA": (3, 12),
    "DESCRIBE_CLUSTER": (60, 2),
    "DESCRIBE_CONFIGS": (32, 4),
    "DESCRIBE_LOG_DIRS": (35, 5),
    "LIST_PARTITION_REASSIGNMENTS": (46, 0),
    "LIST_GROUPS": (16, 5),
    "DESCRIBE_GROUPS": (15, 6),
    "CONSUMER_GROUP_DESCRIBE": (69, 1),
    "STREAMS_GROUP_DESCRIBE": (89, 0),
    "DESCRIBE_SHARE_GROUP_OFFSETS": (90, 0),
    "FIND_COORDINATOR": (10, 4),
    "OFFSET_FETCH": (9, 8),
    "LIST_OFFSETS": (2, 7),
    "LIST_TRANSACTIONS": (66, 0),
    "DESCRIBE_TRANSACTIONS": (65, 0),
    "JOIN_GROUP": (11, 8),
    "LEAVE_GROUP": (13, 5),
    "ALTER_PARTITION_REASSIGNMENTS": (45, 1),
    "ELECT_LEADERS": (43, 2),
    "INCREMENTAL_ALTER_CONFIGS": (44, 1),
    "SASL_HANDSHAKE": (17, 1),
    "SASL_AUTHENTICATE": (36, 2),
}

FIELDS = [
    ("METADATA", "topics.error_code name topic_id is_internal partitions authorized_operations"),
    ("METADATA", "topics.partitions.partition_index leader_id replica_nodes isr_nodes offline_replicas"),
    ("DESCRIBE_CLUSTER", "error_code error_message cluster_id controller_id brokers authorized_operations"),
    ("DESCRIBE_CLUSTER", "brokers.broker_id host port rack is_fenced"),
    ("DESCRIBE_CONFIGS", "results.error_code error_message resource_name configs"),
    ("DESCRIBE_CONFIGS", "results.configs.name value config_source synonyms"),
    ("DESCRIBE_CONFIGS", "results.configs.synonyms.name value source"),
    ("ALTER_PARTITION_REASSIGNMENTS", "error_code error_message responses"),
    ("ALTER_PARTITION_REASSIGNMENTS", "responses.name partitions"),
    ("ALTER_PARTITION_REASSIGNMENTS", "responses.partitions.partition_index error_code error_message"),
    ("ELECT_LEADERS", "error_code replica_election_results"),
    ("ELECT_LEADERS", "replica_election_results.topic partition_result"),
    ("ELECT_LEADERS", "replica_election_results.partition_result.partition_id error_code error_message"),
    ("INCREMENTAL_ALTER_CONFIGS", "responses.error_code error_message resource_type resource_name"),
    ("DESCRIBE_LOG_DIRS", "error_code results"),
    ("DESCRIBE_LOG_DIRS", "results.error_code log_dir topics is_cordoned"),
    ("DESCRIBE_LOG_DIRS", "results.topics.name partitions"),
    ("DESCRIBE_LOG_DIRS", "results.topics.partitions.partition_index partition_size is_future_key"),
    ("LIST_PARTITION_REASSIGNMENTS", "error_code error_message topics"),
    ("LIST_PARTITION_REASSIGNMENTS", "topics.partitions.partition_index replicas adding_replicas removing_replicas"),
    ("LIST_GROUPS", "error_code groups"),
    ("LIST_GROUPS", "groups.group_id protocol_type group_state group_type"),
    ("DESCRIBE_GROUPS", "groups.error_code error_message group_id group_state protocol_type protocol_data members"),
    (
        "DESCRIBE_GROUPS",
        "groups.members.member_id group_instance_id client_id client_host member_metadata member_assignment",
    ),
    ("FIND_COORDINATOR", "coordinators.key node_id host port error_code error_message"),
    ("OFFSET_FETCH", "groups.group_id topics error_code"),
    ("OFFSET_FETCH", "groups.topics.name partitions"),
    ("OFFSET_FETCH", "groups.topics.partitions.partition_index committed_offset error_code"),
    ("LIST_OFFSETS", "topics.name partitions"),
    ("LIST_OFFSETS", "topics.partitions.partition_index offset error_code"),
    ("LIST_TRANSACTIONS", "error_code transaction_states"),
    ("LIST_TRANSACTIONS", "transaction_states.transactional_id transaction_state"),
    ("DESCRIBE_TRANSACTIONS", "transaction_states.error_code transactional_id topics"),
    ("DESCRIBE_TRANSACTIONS", "transaction_states.topics.topic partitions"),
    ("JOIN_GROUP", "error_code generation_id member_id"),
    ("LEAVE_GROUP", "error_code members"),
    ("LEAVE_GROUP", "members.member_id error_code"),
    ("SASL_HANDSHAKE", "error_code mechanisms"),
    ("SASL_AUTHENTICATE", "error_code error_message auth_bytes session_lifetime_ms"),
    ("CONSUMER_GROUP_DESCRIBE", "groups.members.rack_id member_epoch assignment target_assignment member_type"),
    ("STREAMS_GROUP_DESCRIBE", "groups.topology members group_epoch assignment_epoch"),
    ("DESCRIBE_SHARE_GROUP_OFFSETS", "groups.group_id topics error_code"),
    ("DESCRIBE_SHARE_GROUP_OFFSETS", "groups.topics.topic_name partitions"),
    ("DESCRIBE_SHARE_GROUP_OFFSETS", "groups.topics.partitions.partition_index start_offset error_code"),
]


def test_the_pinned_series_is_installed() -> None:
    assert metadata.version("kafka-python").startswith("3.0.")


def test_every_call_has_kafkas_number_and_a_version_that_is_new_enough() -> None:
    assert {name: api.key for name, api in APIS.items()} == {name: key for name, (key, _) in KAFKA_KEYS.items()}
    too_old = {name: api.newest for name, api in APIS.items() if api.newest < KAFKA_KEYS[name][1]}
    assert too_old == {}
    assert all(api.request.API_KEY == api.response.API_KEY for api in APIS.values())


@pytest.mark.parametrize(("name", "path"), [pytest.param(name, path, id=f"{name} {path}") for name, path in FIELDS])
def test_answers_have_the_fields_that_are_read(name: str, path: str) -> None:
    head, *names = path.split(" ")
    *way, first = head.split(".")
    fields = APIS[name].response.fields
    for step in way:
        fields = fields[step].fields
    assert set(fields) >= {first, *names}


@pytest.mark.parametrize("name", sorted(APIS))
def test_a_request_is_written_and_an_answer_is_read_in_every_version(name: str) -> None:
    api = APIS[name]
    for version in range(api.newest + 1):
        framed = encode(api.request(), version, 7, "rackwise")
        assert int.from_bytes(framed[:4]) == len(framed) - 4
        assert framed[4:12] == api.key.to_bytes(2) + version.to_bytes(2) + (7).to_bytes(4)
        assert type(decode(api, version, frame_of(api, api.response(), version))) is api.response


def frame_of(api: ApiCall, answer: Any, version: int) -> memoryview:
    """An answer with its header, as a broker sends it."""
    tags = b"\0" if api.response.flexible_version_q(version) and api is not protocol.API_VERSIONS else b""
    return memoryview((7).to_bytes(4) + tags + encode_body(api, answer, version))


def test_member_bytes_are_kept_as_bytes() -> None:
    api = APIS["DESCRIBE_GROUPS"]
    raw = bytes(range(256))
    member = api.response.DescribedGroup.DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_metadata=raw, member_assignment=b""
    )
    facts = {"group_id": "g", "group_state": "Stable", "protocol_type": "consumer", "protocol_data": "range"}
    group = api.response.DescribedGroup(error_code=0, members=[member], **facts)
    read = decode(api, 6, frame_of(api, api.response(groups=[group]), 6))
    assert read.groups[0].members[0].member_metadata == raw
    assert read.groups[0].members[0].member_assignment == b""


def test_bytes_that_are_no_answer_are_unusable_and_never_anything_worse() -> None:
    seeded = random.Random(69)
    began = time.process_time()
    unusable = 0
    for api in APIS.values():
        good = bytearray(frame_of(api, filled(api.response, api.newest), api.newest))
        for _ in range(400):
            bad = bytearray(good)
            for _ in range(seeded.randrange(1, 4)):
                bad[seeded.randrange(4, len(bad))] = seeded.choice((0, 1, 0x7F, 0x80, 0xFF, seeded.randrange(256)))
            frame = memoryview(bad)[: seeded.randrange(4, len(bad) + 1)] if seeded.random() < 0.3 else memoryview(bad)
            try:
                decode(api, api.newest, frame)
            except UnusableAnswer:
                unusable += 1
    assert unusable > 1000
    assert time.process_time() - began < 30


def filled(kind: Any, version: int) -> Any:
    """An answer with two of everything, so that a changed byte can hit a length."""
    values: dict[str, Any] = {}
    for name, field in kind.fields.items():
        if not field.for_version_q(version):
            continue
        if field.is_struct_array():
            values[name] = [filled(field.data_class, version) for _ in range(2)]
        elif field.is_struct():
            values[name] = filled(field.data_class, version)
        elif isinstance(field.default, str) or (field.default is None and "string" in repr(field)):
            values[name] = "text"
    return kind(**values)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0, None),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (14, "COORDINATOR_LOAD_IN_PROGRESS"),
        (15, "COORDINATOR_NOT_AVAILABLE"),
        (16, "NOT_COORDINATOR"),
        (29, "TOPIC_AUTHORIZATION_FAILED"),
        (30, "GROUP_AUTHORIZATION_FAILED"),
        (31, "CLUSTER_AUTHORIZATION_FAILED"),
        (33, "UNSUPPORTED_SASL_MECHANISM"),
        (34, "ILLEGAL_SASL_STATE"),
        (35, "UNSUPPORTED_VERSION"),
        (58, "SASL_AUTHENTICATION_FAILED"),
        (69, "GROUP_ID_NOT_FOUND"),
        (-1, "UNKNOWN_SERVER_ERROR"),
        (31999, "an unknown error code (31999)"),
        (32767, "an unknown error code (32767)"),
    ],
)
def test_errors_have_kafkas_names(code: int, name: str | None) -> None:
    assert error_name(code) == name


@pytest.mark.parametrize(
    ("field", "codes"),
    [
        pytest.param(None, None, id="the library's word for: not told"),
        pytest.param(-(2**31), None, id="Kafka's word for: not told"),
        pytest.param(0, frozenset(), id="nothing is allowed"),
        pytest.param({8, 10}, frozenset({8, 10}), id="as a set"),
        pytest.param(1 << 8 | 1 << 7, frozenset({7, 8}), id="as bits"),
    ],
)
def test_authorised_operations_are_told_from_none_told(field: object, codes: frozenset[int] | None) -> None:
    assert operations(field) == codes


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_mechanisms_have_the_methods_that_are_called(mechanism: str) -> None:
    arguments = {"sasl_mechanism": mechanism, "sasl_plain_username": "u", "sasl_plain_password": "p"}
    exchange = sasl_mechanism("host", arguments)
    assert exchange.is_done() is False
    assert isinstance(exchange.auth_bytes(), bytes)
