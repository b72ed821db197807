"""The only place that reaches into PySpark's, Py4J's and Spark's private parts."""
