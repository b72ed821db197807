"""`python -m headrace.spark.durable`: makes the jar ahead of the first start, as an image needs it
whose user cannot write to HEADRACE_HOME."""

from __future__ import annotations

import sys

from headrace.model.errors import UnavailableError
from headrace.spark.durable import durable_jar
from headrace.topics.jars import ensure_jars

if __name__ == "__main__":
    try:
        print(f"{durable_jar(ensure_jars(lambda line: None).spark).name} is in place.")
    except UnavailableError as failure:
        sys.exit(str(failure))
