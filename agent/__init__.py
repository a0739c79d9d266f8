"""rackwise: the agent that keeps Kafka's work in the right rack.

The straight line, one module or package a stage:

    observe -> decode -> model -> detect -> plan -> propose -> guard -> act -> record
    (I/O)      pure      pure     pure      pure    pure       pure     (I/O)  (I/O)
"""
