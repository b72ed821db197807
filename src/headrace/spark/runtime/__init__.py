"""The Spark session and what a query keeps on disk: jars, workers, sources, checkpoints."""
