"""A data centre goes over to another version while records flow, and back; one that does not run changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.deployed_site import Site, longest_break
from tests.support.replicator.copying import assert_copied
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_600)]

ROOT = Path(__file__).parents[3]
RECORDS = 100_000
NEWER, BROKEN = "0.1.1", "0.1.2"
# Ends a `replicate` of that version as soon as it begins.
FAULT = "\nimport sys\nif 'replicate' in sys.argv:\n    sys.exit('this version has lost its way')\n"


def installed(folder: Path, version: str, fault: str = "") -> str:
    """Build a version from this tree, install it beside the dependencies of this one, and return its interpreter."""
    source, wheels, prefix = folder / f"source-{version}", folder / f"wheels-{version}", folder / f"prefix-{version}"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if not name.startswith("tests/") and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    for name in ("pyproject.toml", "reconciler/__init__.py"):
        path = source / name
        text = path.read_text()
        assert text.count(f'"{reconciler.__version__}"') == 1, name
        path.write_text(text.replace(f'"{reconciler.__version__}"', f'"{version}"'))
    with (source / "reconciler" / "__init__.py").open("a") as file:
        file.write(fault)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=600)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], check=True, timeout=600)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(packages)
    # Behind its own package, which is found first.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return str(prefix / "bin" / "python")


@pytest.fixture
def site(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, site_name: str
) -> Iterator[Site]:
    made = Site(tmp_path, {"east": source_cluster, "west": target_cluster}, site_name)
    yield made
    made.write(kind="none")
    ended = made.apply()
    assert ended.code == 0, ended


def test_a_newer_version_and_the_former_one_take_turns_while_records_flow(
    site: Site, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    newer, broken = installed(tmp_path, NEWER), installed(tmp_path, BROKEN, FAULT)
    traffic = Traffic(source_cluster, site.name, 2, RECORDS, 2_000, per_second=200)
    traffic.start()
    assert site.apply().code == 0
    eventually("records are copied", site.copied)
    for python, version in ((newer, NEWER), (None, reconciler.__version__)):
        site.write(**({} if python is None else {"python": python}))
        planned = anabranch("plan", site.file)
        assert f"→ {version}" in planned.stdout, planned
        longest, replaced = longest_break(site)
        print(f"longest time without progress on the way to {version}: {longest:.1f} s")
        assert replaced.code == 0, replaced
        assert "  done      dc2  replace replicate" in replaced.stdout.splitlines()
        assert site.processes()["replicate"]["facts"]["version"] == version
        assert anabranch("drift", site.file, "--detailed-exitcode").code == 0
    before = site.pids()
    site.write(python=broken)
    failed = site.apply()
    assert failed.code == 1, failed
    assert "this version has lost its way" in failed.stderr
    assert (site.pids(), site.processes()["replicate"]["facts"]["version"]) == (before, reconciler.__version__)
    site.write()
    traffic.finish()
    eventually("all is copied", site.copied, lambda copied: copied >= RECORDS)
    east, west = Cluster("east", (source_cluster.bootstrap,)), Cluster("west", (target_cluster.bootstrap,))
    assert_copied(east, site.name, west, f"east.{site.name}", RECORDS)
