"""Stateful steps as plain Python state machines, one bucket of keys at a time.

Each module is one kernel with exactly Kafka Streams' semantics; `spark.state.bucket` runs them.
"""
