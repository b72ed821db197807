"""Runs a job on Flink SQL. It is run by the Python that has PyFlink, not by Headrace's.

The argument is JSON: settings, and passes of statements of which the last one inserts. Prints the
seconds of each pass, from the submission of its job to its end; the first ones warm up.
"""

import json
import sys

from pyflink.table import (  # type: ignore[import-not-found]  # not in our environment
    EnvironmentSettings,
    TableEnvironment,
)


def main() -> None:
    wanted = json.loads(sys.argv[1])
    for statements in wanted["passes"]:
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for name, value in wanted["settings"].items():
            tables.get_config().set(name, value)
        *declared, insert = statements
        for statement in declared:
            tables.execute_sql(statement)
        job = tables.execute_sql(insert).get_job_client()
        print(job.get_job_execution_result().result().get_net_runtime() / 1000, flush=True)


if __name__ == "__main__":
    main()
