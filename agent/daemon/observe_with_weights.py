"""A look and, at the same time, what the pipeline weighed: the look is taken through here where weights are asked for.

Apart from `agent.daemon.start`, so that a command which looks once does not load the whole daemon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from agent.record.weights import WeightsReader
from agent.values.observation import Observation
from config.settings import Settings

if TYPE_CHECKING:
    from agent.loop import Look


@contextmanager
def weights_beside(settings: Settings) -> Iterator[Callable[[Look], Observation]]:
    """What a look is taken through, so that it has the weights of the pipeline where they are asked for."""
    if not settings.weights.enabled:
        yield lambda look: look()
        return
    reader = WeightsReader(settings.kafka.confluent(), settings.weights_topic, prefix=settings.topics.prefix)
    with closing(reader):
        yield reader.beside
