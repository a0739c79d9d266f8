"""Say what Kafka's own assignor will give.

One module per assignor or placer of Kafka, each a pure function from a problem to a result that equals Kafka's, tie for
tie where Kafka's answer is determined by its input. The problems hold what the class of that name sees, so they are
richer than those of ``assignors.problem``: generations, instance ids, lags, configurations.
"""
