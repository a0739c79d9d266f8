"""What the errors of the journal's writer mean: fenced for good, gone, or not to be had now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from agent.act.journal.journal_topic import unavailable
from agent.errors import FencedOut, JournalUnavailable

FENCED = (
    KafkaError._FENCED,  # noqa: SLF001 librdkafka's own public codes begin with an underscore
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


@contextmanager
def untangled() -> Iterator[None]:
    """The client raises a fatal error in the middle of its own callbacks, and Python then makes another one of it."""
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def fenced_out(topic: str, why: str) -> FencedOut:
    """The error for a writer that is no longer the newest."""
    return FencedOut(
        "Another agent took over", why=f"the journal {topic} has a newer writer ({why})", todo="Start this one again."
    )


def for_writer(failed: KafkaException, topic: str) -> JournalUnavailable:
    """The error for one of the client's that ends no writer."""
    found = unavailable(failed, topic)
    return found if isinstance(found, JournalUnavailable) else gone(topic)


def gone(topic: str) -> JournalUnavailable:
    """For a topic that was there when this writer began; should it come back, it has forgotten."""
    return JournalUnavailable(f"The journal {topic} is gone", why="the topic was deleted")
