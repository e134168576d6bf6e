#!/bin/sh
# Installs what the jobs run, each file only if it has the hash that a lock beside this script names: wherever it
# comes from, nothing runs here that was not looked at. docs/gitops.md says where the locks and the wheel come from.
set -eu
cd "$(dirname "$0")"
if [ ! -f anabranch.lock ]; then
    echo "ci/anabranch.lock is missing: \`make release\` makes it with the wheel; docs/gitops.md says where both go" >&2
    exit 1
fi
install() {
    python -m pip install --quiet --require-hashes "$@"
}
install --only-binary :all: --requirement build.lock
# PySpark is published as source alone. pip would fetch what builds it without a hash: it takes what was installed above.
install --only-binary :all: --no-binary pyspark --no-build-isolation --requirement requirements.lock
for wheel in anabranch-*.whl; do
    if [ -f "$wheel" ]; then
        install --no-deps --no-index --find-links . --requirement anabranch.lock
        exit
    fi
done
# It is not here: the index that pip is configured for may have it. The hash keeps out what has its name alone.
install --no-deps --only-binary :all: --requirement anabranch.lock
