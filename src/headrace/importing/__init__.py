"""Moving in from ksqlDB: reads what a ksqlDB has, assesses it, and sends it to a server."""
