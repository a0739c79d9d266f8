"""Kafka's own names, spelled only here: config keys, assignors (KIP-429, KIP-881), protocols, states and errors."""

from __future__ import annotations

# Config keys of brokers, topics and groups.
AUTO_CREATE_TOPICS = "auto.create.topics.enable"
AUTO_LEADER_REBALANCE = "auto.leader.rebalance.enable"
BROKER_RACK = "broker.rack"
CLEANUP_POLICY = "cleanup.policy"
COMPACT, DELETE = "compact", "delete"
"""The two values that `cleanup.policy` lists."""
DEFAULT_REPLICATION_FACTOR = "default.replication.factor"
FOLLOWER_RATE = "follower.replication.throttled.rate"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
GROUP_STANDBYS = "streams.num.standby.replicas"
GROUP_STANDBYS_DEFAULT = "group.streams.num.standby.replicas"
"""Of brokers: for groups that do not set `streams.num.standby.replicas`."""
LEADER_RATE = "leader.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
MAX_MESSAGE_BYTES = "max.message.bytes"
MAX_MESSAGE_BYTES_DEFAULT = 1_048_588
"""Of topics, and of brokers under their name `message.max.bytes`."""
MAX_TOPIC_CHARS = 249
"""Characters of the longest topic name."""
MIN_INSYNC_REPLICAS = "min.insync.replicas"
NUM_PARTITIONS = "num.partitions"
OFFSETS_REPLICATION_FACTOR = "offsets.topic.replication.factor"
REMOTE_STORAGE = "remote.storage.enable"
REPLICA_SELECTOR = "replica.selector.class"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value of `replica.selector.class` with which a consumer reads from its own rack (KIP-392)."""
RETENTION_MS = "retention.ms"
STREAMS_INITIAL_DELAY = "group.streams.initial.rebalance.delay.ms"
"""Of brokers from Kafka 4.2 on: the release in which KIP-1071's assignor changed."""
TIMESTAMP_TYPE = "message.timestamp.type"
CREATE_TIME, LOG_APPEND_TIME = "CreateTime", "LogAppendTime"
"""The two values of `message.timestamp.type`."""
UNCLEAN_ELECTION = "unclean.leader.election.enable"

# Config keys of clients; librdkafka's where it has other names than Java's clients.
ACCEPTABLE_LAG = "acceptable.recovery.lag"
ACKS = "acks"
ALLOW_CREATE_TOPICS = "allow.auto.create.topics"
AUTO_COMMIT = "enable.auto.commit"
AUTO_OFFSET_STORE = "enable.auto.offset.store"
BOOTSTRAP_SERVERS = "bootstrap.servers"
CLIENT_ID = "client.id"
CLIENT_RACK = "client.rack"
COMPRESSION_TYPE = "compression.type"
DELIVERY_TIMEOUT_MS = "delivery.timeout.ms"
FETCH_WAIT_MS = "fetch.wait.max.ms"
GROUP_ID = "group.id"
GROUP_INSTANCE_ID = "group.instance.id"
GROUP_PROTOCOL = "group.protocol"
LINGER_MS = "linger.ms"
MAX_IN_FLIGHT = "max.in.flight.requests.per.connection"
MESSAGE_TIMEOUT_MS = "message.timeout.ms"
NUM_STANDBYS = "num.standby.replicas"
OFFSET_RESET = "auto.offset.reset"
PARTITION_ASSIGNMENT_STRATEGY = "partition.assignment.strategy"
RACK_AWARE_STRATEGY = "rack.aware.assignment.strategy"
RACK_AWARE_TAGS = "rack.aware.assignment.tags"
RETRY_BACKOFF_MS = "retry.backoff.ms"
STREAM_THREAD = "-StreamThread-"
"""Between the client id of a KafkaStreams instance and the number of a thread, in that thread's client id."""

# Values of rack.aware.assignment.strategy (KIP-925).
NO_STRATEGY = "none"
MIN_TRAFFIC = "min_traffic"
BALANCE_SUBTOPOLOGY = "balance_subtopology"

# Group types (KIP-848, KIP-932, KIP-1071), which are the values of group.protocol too, and the classic protocol type.
CLASSIC_GROUP = "classic"
CONSUMER_GROUP = "consumer"
SHARE_GROUP = "share"
STREAMS_GROUP = "streams"
CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type of members with the embedded consumer protocol; Streams groups use it too."""

# Group states.
DEAD = "Dead"
EMPTY = "Empty"
STABLE = "Stable"
"""The only state in which assignments may be compared: while a rebalance runs, old and new ones overlap."""
MEMBERLESS_STATES = frozenset((EMPTY, DEAD))
SETTLED_STATES = frozenset((STABLE, EMPTY, DEAD))
"""Group states in which no rebalance is going on."""

# Assignors, by the names under which members offer them.
COOPERATIVE_STICKY = "cooperative-sticky"
RANGE = "range"
ROUND_ROBIN = "roundrobin"
STICKY = "sticky"
"""Of classic consumer groups; KIP-1071's only assignor has the same name."""
STREAMS_PROTOCOL = "stream"
"""The assignor name of every classic Kafka Streams group."""
UNIFORM = "uniform"
"""Of KIP-848 groups, beside `range`."""
COOPERATIVE_ASSIGNORS = frozenset({COOPERATIVE_STICKY, STREAMS_PROTOCOL})
"""Protocol names under which a rebalance revokes nothing that does not move (KIP-429)."""
EAGER_ASSIGNORS = frozenset({RANGE, ROUND_ROBIN, STICKY})
"""Protocol names under which a rebalance revokes everything first."""
RACK_AWARE_ASSIGNORS = frozenset({RANGE, STICKY, COOPERATIVE_STICKY})
"""Assignors that match racks of members and replicas (KIP-881)."""
RACK_BLIND_ASSIGNORS = frozenset({ROUND_ROBIN})
COOPERATIVE_STICKY_CLASS = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
FIRST_WITH_RACK = "kafka-clients 3.5 or librdkafka 2.2.0"
"""The releases that first sent a rack in their subscription (KIP-881, subscription version 3)."""

# Errors, by the names that Kafka's class Errors gives them.
ELECTION_NOT_NEEDED = "ELECTION_NOT_NEEDED"
INVALID_REPLICATION_FACTOR = "INVALID_REPLICATION_FACTOR"
TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR"
UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID"
UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
