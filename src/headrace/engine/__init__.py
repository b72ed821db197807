"""Runs statements, keeps their queries running, and recovers both at start."""
