"""The clauses of a query, each planned by its own module."""
