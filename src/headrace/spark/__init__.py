"""The engine room: plan nodes as DataFrame programs, the session, sources, sinks, state."""
