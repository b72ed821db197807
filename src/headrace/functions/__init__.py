"""SQL functions: each is declared once, and found by its name and argument types."""

from headrace.functions.extensions import udaf, udf, udtf

__all__ = ["udaf", "udf", "udtf"]
