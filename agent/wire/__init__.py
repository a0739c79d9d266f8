"""Calls on kafka-python's codecs that librdkafka lacks or cannot make safely, each with a hard deadline."""
