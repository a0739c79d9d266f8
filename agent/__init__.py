"""rackwise: an agent that keeps Kafka's partitions, leaders and tasks in the right rack.

One package a stage:

    observe -> decode -> model -> detect -> plan -> propose -> guard -> act -> record
    (I/O)      pure      pure     pure      pure    pure       pure     (I/O)  (I/O)
"""
