"""The catalog of sources, types and queries, and the command log that it is built from."""
