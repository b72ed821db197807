"""Where statements come from: a ksqlDB server, its command topic, files."""
