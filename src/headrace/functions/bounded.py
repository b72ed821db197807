"""Names under which sessions register Headrace's own Java functions (`spark/runtime/java`)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare.declaration import Fallible

BOUNDED_EXTRACT = "headrace_regexp_extract"
BOUNDED_EXTRACT_ALL = "headrace_regexp_extract_all"
BOUNDED_REPLACE = "headrace_regexp_replace"
BOUNDED_SPLIT = "headrace_regexp_split"
BOUNDED_LIKE = "headrace_like"


def bounded(function: str, *args: Column) -> Fallible:
    """The call of a Java function that returns a value and an error."""
    said = F.call_function(function, *args)
    return Fallible(said.getField("value"), said.getField("error"))
