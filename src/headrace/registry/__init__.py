"""The embedded schema registry with Confluent's REST API, and a client for any registry."""
