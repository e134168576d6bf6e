"""Facts about the machine and the versions, for the head of a report. It names no host and no path."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

import reconciler
from reconciler.embedded.jars import KAFKA_VERSION, MIRROR_MAKER_VERSION, java_executable


def facts() -> dict[str, str]:
    """Return what a reader needs to judge figures, by name."""
    return {
        "processors": f"{os.cpu_count()} ({_processor()})",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Kafka": KAFKA_VERSION,
        "MirrorMaker 2": MIRROR_MAKER_VERSION,
        "Java": _java(),
        "Python": platform.python_version(),
        "PySpark": version("pyspark"),
        "Anabranch": reconciler.__version__,
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1) if found else platform.machine()


def _java() -> str:
    told = subprocess.run([str(java_executable()), "-version"], capture_output=True, text=True, check=True)
    return told.stderr.splitlines()[0]
