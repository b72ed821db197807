"""Running queries: persistent and push queries, started, watched and restarted."""
