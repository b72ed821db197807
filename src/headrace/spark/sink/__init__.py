"""Where rows go: to Kafka, in transactions or not, and to clients."""
