#!/bin/sh
# What the image runs. Spark's operator for Kubernetes calls it with `driver` and arguments of spark-submit; everybody else
# with arguments of `anabranch`, or with a program's path.
set -eu
case "${1:-}" in
driver)
    shift
    # As Spark's own images do: the driver listens at the address of its pod.
    exec tini -s -- "$SPARK_HOME/bin/spark-submit" \
        --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:?is set by Spark}" \
        --deploy-mode client "$@"
    ;;
executor)
    echo "this image runs drivers alone: tasks run in the driver's pod" >&2
    exit 64
    ;;
/*)
    exec tini -s -- "$@"
    ;;
*)
    exec tini -s -- anabranch "$@"
    ;;
esac
