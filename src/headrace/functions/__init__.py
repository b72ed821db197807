"""Functions: every one of them declared once, found by name, chosen by its arguments' types."""

from headrace.functions.extensions import udaf, udf, udtf

__all__ = ["udaf", "udf", "udtf"]
