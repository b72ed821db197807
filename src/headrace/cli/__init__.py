"""The command line: `headrace start`, `headrace cli`, and whatever else is in the table."""
