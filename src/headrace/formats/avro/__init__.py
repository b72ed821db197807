"""AVRO: records of a registered schema as rows and columns."""
