"""Headrace: streaming SQL on Spark, in ksqlDB's language and wire protocol."""

__version__ = "0.1.0"
