"""A policy class in a distribution that pip has really installed: found by every command, told when it is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.security.installing import documented_class, documented_entry_points, install, with_path
from tests.unit.declare.declaring import HEAD, HEAD_LINES

pytestmark = pytest.mark.slow

POLICY = "policy: {type: class, class: by-region, options: {region: emea}}\n"
BODY = HEAD + POLICY + "replication: [{active-active: [a, b]}]\n"


def anabranch(site: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "reconciler.cli.main", *map(str, arguments)]
    return subprocess.run(
        command, env=with_path(site), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_documented_class_works_once_it_is_installed(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(BODY)
    missing = anabranch(tmp_path, "validate", file)
    assert missing.returncode == 1
    assert f"shop.yaml:{HEAD_LINES + 1}:30: expected a policy class; no entry point by-region" in missing.stderr
    assert "(policy.class) [AB120]" in missing.stderr

    site = install(tmp_path, documented_class(), documented_entry_points())
    assert anabranch(site, "validate", file).stdout == "shop: 4 clusters, 2 flows: valid\n"
    assert "→ b   .*   named by by-region" in anabranch(site, "graph", file).stdout

    (site / "acme_naming.py").write_text("import no_such_module_of_acmes\n")
    broken = anabranch(site, "plan", file)
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_of_acmes'" in broken.stderr
    assert "Traceback" not in broken.stderr
