"""How a consumer of rackwise's own topics is set up: it joins no group, commits nothing and creates nothing.

It is the one set of settings of everything that reads these topics; who needs another value puts it on top.
"""

from __future__ import annotations


def reader_config(group: str) -> dict[str, str | int | float | bool]:
    """What such a consumer has beside the settings of its connection; the group of that name is never joined.

    Partitions are to be assigned by hand. The end of a partition is told as an error of its own.
    """
    return {
        "group.id": group,  # the library wants one; without subscription and commits none is made
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "isolation.level": "read_committed",
    }
