"""Run cases of recorded assignments: the input as Kafka saw it in, the output as Kafka gave it out."""
