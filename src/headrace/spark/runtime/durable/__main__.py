"""`python -m headrace.spark.runtime.durable`: makes our jars ahead of the first start, as an image
needs it whose user cannot write to HEADRACE_HOME."""

from __future__ import annotations

import sys

from headrace.kafka.jars import ensure_jars
from headrace.model.errors import UnavailableError
from headrace.spark.runtime.durable import durable_jar
from headrace.spark.runtime.java import java_jar

if __name__ == "__main__":
    try:
        for jar in (durable_jar(ensure_jars(lambda line: None).spark), java_jar()):
            print(f"{jar.name} is in place.")
    except UnavailableError as failure:
        sys.exit(str(failure))
