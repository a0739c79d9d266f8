"""Exceptions that Kafka's assignors and placers throw, under Kafka's names and with Kafka's messages."""

from __future__ import annotations

from typing import ClassVar


class KafkaRefusal(ValueError):  # noqa: N818 (Kafka's answer to the problem, not an error of this program)
    """Kafka gives no answer to this problem; ``str`` is its message."""

    kafka_name: ClassVar[str] = ""
    """Simple name of Kafka's exception class."""

    def output(self) -> dict[str, str]:
        """The refusal as recorded cases write it."""
        return {"error": self.kafka_name, "message": str(self)}


class InvalidReplicationFactorException(KafkaRefusal):
    """More replicas than brokers, or none at all."""

    kafka_name = "InvalidReplicationFactorException"


class InvalidPartitionsException(KafkaRefusal):
    """A number of partitions that a topic cannot have."""

    kafka_name = "InvalidPartitionsException"


class AdminOperationException(KafkaRefusal):
    """Brokers of which some have a rack and some have none."""

    kafka_name = "AdminOperationException"


class PartitionAssignorException(KafkaRefusal):
    """A subscription that the broker's assignor cannot serve."""

    kafka_name = "PartitionAssignorException"
