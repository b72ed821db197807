"""The language: text to syntax tree and back. Knows no catalog, no function, no engine."""
