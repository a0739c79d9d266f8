"""The fenced package on kafka-python: calls that librdkafka lacks or cannot make safely, each with a hard deadline."""
