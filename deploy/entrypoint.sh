#!/bin/bash
# What a container does: an executor if Spark started it (it then says "executor", and the rest in
# variables), a command of headrace otherwise.
set -eu

case "${1:-}" in
  # As ksqlDB's image does: KSQL_BOOTSTRAP_SERVERS is bootstrap.servers, and so on.
  start | run) exec headrace "$1" --environment "${@:2}" ;;
  executor) ;;
  *) exec headrace "$@" ;;
esac

home=$(python -c 'import importlib.util as u, os; print(os.path.dirname(u.find_spec("pyspark").origin))')
# The options are in numbered variables, to be given in the order of the numbers.
mapfile -t options < <(env | grep '^SPARK_JAVA_OPT_' | sort -t_ -k4 -n | cut -d= -f2-)
exec java "${options[@]}" \
  "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "$home/jars/*${SPARK_CONF_DIR:+:$SPARK_CONF_DIR}" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
