"""How a consumer of rackwise's own topics is set up: it joins no group, commits nothing and creates nothing.

It is the one set of settings of everything that reads these topics; who needs another value puts it on top.
"""

from __future__ import annotations

from agent.values.kafka import ALLOW_CREATE_TOPICS, AUTO_COMMIT, AUTO_OFFSET_STORE, GROUP_ID, OFFSET_RESET


def reader_config(group: str) -> dict[str, str | int | float | bool]:
    """What such a consumer has beside the settings of its connection; the group of that name is never joined.

    Partitions are to be assigned by hand. The end of a partition is told as an error of its own.
    """
    return {
        GROUP_ID: group,  # the library wants one; without subscription and commits none is made
        AUTO_COMMIT: False,
        AUTO_OFFSET_STORE: False,
        "enable.partition.eof": True,
        OFFSET_RESET: "earliest",
        ALLOW_CREATE_TOPICS: False,
        "isolation.level": "read_committed",
    }
