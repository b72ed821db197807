"""JSON and JSON_SR: rows in Python, columns in Spark."""
