"""The names under which every session knows Java functions of ours (`spark/java`)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.functions.declare import Fallible

BOUNDED_EXTRACT = "headrace_regexp_extract"
BOUNDED_EXTRACT_ALL = "headrace_regexp_extract_all"
BOUNDED_REPLACE = "headrace_regexp_replace"
BOUNDED_SPLIT = "headrace_regexp_split"
BOUNDED_LIKE = "headrace_like"


def bounded(function: str, *args: Column) -> Fallible:
    """What a function that answers with a value and an error says."""
    said = F.call_function(function, *args)
    return Fallible(said.getField("value"), said.getField("error"))
