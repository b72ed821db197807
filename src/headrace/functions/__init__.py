"""Functions: every one of them declared once, found by name, chosen by its arguments' types."""
