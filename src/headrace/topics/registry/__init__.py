"""Schema registry: Confluent's REST API and rules over a Kafka topic, and a client for any."""
