"""The SQL parser and printer. They know no catalog, no functions, no engine."""
