"""Kafka as Headrace uses it: the client side, an embedded broker, an embedded schema registry."""
