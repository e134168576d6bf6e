"""Where the workers' daemon imports PySpark from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from reconciler.replicator.spark.daemon import prefer_installed

PACKAGE = Path(pyspark.__file__).parent
ARCHIVES = sorted(map(str, (PACKAGE / "python" / "lib").glob("*.zip")))


def test_archives_of_an_installed_package_are_passed_over() -> None:
    assert len(ARCHIVES) == 2
    path = ["", *ARCHIVES, "/opt/app.zip", str(PACKAGE.parent), "/usr/lib"]
    prefer_installed(path)
    assert path == ["", "/opt/app.zip", str(PACKAGE.parent), "/usr/lib"]


def test_archives_of_another_spark_stay(tmp_path: Path) -> None:
    """That of a cluster may be of another version than what is installed beside the worker."""
    others = ["/opt/spark/python/lib/pyspark.zip", str(tmp_path / "pyspark/python/lib/pyspark.zip")]
    path = [*others, str(PACKAGE.parent)]
    prefer_installed(path)
    assert path == [*others, str(PACKAGE.parent)]


def test_pyspark_comes_from_its_package() -> None:
    """Nothing that the daemon imports before may import it from the archive."""
    code = (
        "import sys; from reconciler.replicator.spark.daemon import prefer_installed; print('pyspark' in sys.modules);"
        "prefer_installed(sys.path); import pyspark.daemon, py4j; print(pyspark.__file__, py4j.__file__)"
    )
    paths = os.pathsep.join([*ARCHIVES, *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    before, files = ended.stdout.splitlines()
    assert before == "False"
    assert ".zip" not in files
