"""Dates and times: patterns, parsing, formatting, zones."""
