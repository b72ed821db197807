"""The command line: `headrace start`, `headrace cli` and the other commands of `commands.py`."""
