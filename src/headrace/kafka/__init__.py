"""Kafka: clients, topics, records, and an embedded broker."""
