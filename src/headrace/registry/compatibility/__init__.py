"""Compatibility checks between schemas, one module for each schema language."""
