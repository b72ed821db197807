"""Runs statements: resolves, plans, provisions, records them, and keeps their queries going."""
