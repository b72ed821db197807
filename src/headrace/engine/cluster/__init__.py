"""Servers of one service: their identity, the lease to run queries, and standbys."""
