"""The release: locks that are what is declared, a list of components that is the lock, files known by their hashes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release import build
from release.closure import closure
from release.lock import BUILD, CONSTRAINTS, ROOT, RUNTIME, Pin, needed, normalised, read
from release.sbom import sbom

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = (RUNTIME, BUILD)
TINY = "anabranch-0.1.0-py3-none-any.whl"


def constraints() -> dict[str, str]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normalised(name): version for name, version in pins}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a release."""
    folder = tmp_path_factory.mktemp("release")
    release(folder)
    return folder


def release(folder: Path) -> None:
    # Whatever asks an index finds none.
    environment = os.environ | {"PIP_NO_INDEX": "1", "SOURCE_DATE_EPOCH": "1767225600"}
    line = [sys.executable, "-m", "release", "build", "--allow-dirty", "--into", str(folder)]
    subprocess.run(line, cwd=ROOT, env=environment, check=True, timeout=300)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_the_lock_is_what_the_declared_dependencies_lead_to(version: str, system: str) -> None:
    there = {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": system}
    assert [pin.name for pin in read(RUNTIME)] == sorted(closure(needed(PROJECT), there))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_the_locks_have_the_versions_that_the_tests_ran_with_and_hashes(lock: Path) -> None:
    pinned = constraints()
    assert {pin.name: pin.version for pin in read(lock)} == {pin.name: pinned[pin.name] for pin in read(lock)}
    assert all(pin.hashes for pin in read(lock))
    declared = {normalised(one.name): one for one in map(Requirement, needed(PROJECT))}
    assert all(declared[pin.name].specifier.contains(pin.version) for pin in read(lock) if pin.name in declared)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_the_locks_name_no_place_to_install_from(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert set(re.findall(r"--[a-z-]+", text)) == {"--hash"}


@pytest.mark.parametrize(
    "wrong", ["rich==15.0.0", "rich>=15 --hash=sha256:" + "0" * 64, "-r other.txt", "rich==1 --hash=md5:1"]
)
def test_a_lock_with_anything_else_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "some.lock").write_text(f"# A comment.\nok==1 \\\n    --hash=sha256:{'a' * 64}\n{wrong}\n")
    with pytest.raises(ValueError, match=r"some\.lock: expected name==version"):
        read(tmp_path / "some.lock")


def test_a_dependency_that_is_declared_and_not_locked_is_noticed() -> None:
    more = closure([*needed(PROJECT), "psutil"])
    assert set(more) - {pin.name for pin in read(RUNTIME)} == {"psutil"}


def test_a_release_holds_all_of_this_and_its_checksums(built: Path) -> None:
    version = PROJECT["version"]
    product = [f"anabranch-{version}-py3-none-any.whl", f"anabranch-{version}.cdx.json", f"anabranch-{version}.tar.gz"]
    everything = ["SHA256SUMS", *product, "anabranch.lock", "build.lock", "requirements.lock"]
    assert sorted(path.name for path in built.iterdir()) == everything
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=built, check=True)
    assert len((built / "SHA256SUMS").read_text().splitlines()) == len(everything) - 1
    assert read(built / "requirements.lock") == read(RUNTIME)
    assert read(built / "build.lock") == read(BUILD)
    (own,) = read(built / "anabranch.lock")
    assert own == Pin("anabranch", version, (hashlib.sha256((built / product[0]).read_bytes()).hexdigest(),))


def test_what_is_not_committed_gets_into_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_git", lambda *_: "?? reconciler/notes.py")
    with pytest.raises(SystemExit, match=r"not committed, and would be in the release:\n\?\? reconciler/notes\.py"):
        build.make(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_files_of_others_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(SystemExit, match="is not empty"):
        build.make(tmp_path, allow_dirty=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_wheel_carries_what_is_copied_beside_a_pipeline(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as held:
        for path in (*LOCKS, ROOT / "ci" / "install.sh"):
            assert held.read(f"reconciler/_data/ci/{path.name}") == path.read_bytes()


def test_the_same_input_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    release(tmp_path / "again")
    assert (tmp_path / "again" / "SHA256SUMS").read_bytes() == (built / "SHA256SUMS").read_bytes()


def test_the_list_of_components_is_the_lock(built: Path) -> None:
    document = json.loads((built / f"anabranch-{PROJECT['version']}.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    found = [
        Pin(one["name"], one["version"], tuple(sorted(hashed["content"] for hashed in one["hashes"])))
        for one in document["components"]
    ]
    assert found == [*read(RUNTIME)]
    for one in (*document["components"], document["metadata"]["component"]):
        assert one["purl"] == one["bom-ref"] == f"pkg:pypi/{one['name']}@{one['version']}"
        assert {hashed["alg"] for hashed in one["hashes"]} == {"SHA-256"}
        assert one["licenses"]
    assert document["metadata"]["component"]["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    (direct,) = (one for one in document["dependencies"] if one["ref"].startswith("pkg:pypi/anabranch@"))
    assert len(direct["dependsOn"]) == len(needed(PROJECT))


def test_a_list_of_components_needs_what_is_locked_to_be_installed() -> None:
    (rich,) = (pin for pin in read(RUNTIME) if pin.name == "rich")
    older = Pin(rich.name, "1.0", rich.hashes)
    with pytest.raises(ValueError, match=r"rich: the lock has 1\.0, installed is 15"):
        sbom(Pin("anabranch", PROJECT["version"], ("0" * 64,)), [older], {"rich": [], "anabranch": ["rich"]}, 0)


def test_a_list_of_components_that_is_none_by_the_schema_is_refused() -> None:
    (rich,) = (pin for pin in read(RUNTIME) if pin.name == "rich")
    no_hash = Pin(rich.name, rich.version, ("not a hash",))
    with pytest.raises(ValueError, match=r"not CycloneDX 1\.6.*not a hash"):
        sbom(Pin("anabranch", PROJECT["version"], ("0" * 64,)), [no_hash], {"rich": [], "anabranch": ["rich"]}, 0)


@dataclass(frozen=True)
class Folder:
    """A repository with `ci/` in it, and what pip finds outside of it."""

    ci: Path
    index: Path
    installed: Path

    def install(self) -> subprocess.CompletedProcess[str]:
        own = {"PIP_TARGET": self.installed, "PIP_FIND_LINKS": self.index, "PIP_NO_INDEX": 1}
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = os.environ | {"PATH": path} | {name: str(value) for name, value in own.items()}
        line = ["sh", "ci/install.sh"]
        return subprocess.run(
            line, cwd=self.ci.parent, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    def found(self) -> set[str]:
        return {path.name for path in self.installed.glob("*.py")}


def wheel(path: Path, files: Mapping[str, str]) -> str:
    """Write a wheel, and return the line that locks it."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as held:
        for file, text in files.items():
            held.writestr(file, text)
        held.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        held.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        held.writestr(f"{info}/RECORD", "")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a repository with the real script, and small wheels that it installs."""
    made = Folder(tmp_path / "ci", tmp_path / "index", tmp_path / "installed")
    made.ci.mkdir()
    made.index.mkdir()
    shutil.copy(ROOT / "ci" / "install.sh", made.ci)
    for lock, name in (("build.lock", "tools"), ("requirements.lock", "needed")):
        (made.ci / lock).write_text(wheel(made.index / f"{name}-1-py3-none-any.whl", {f"{name}.py": ""}))
    (made.ci / "anabranch.lock").write_text(wheel(made.ci / TINY, {"anabranch.py": ""}))
    return made


@pytest.mark.parametrize("in_repository", [True, False], ids=["in the repository", "at an index"])
def test_a_job_installs_what_the_locks_name(folder: Folder, in_repository: bool) -> None:
    if not in_repository:
        (folder.ci / TINY).rename(folder.index / TINY)
    ended = folder.install()
    assert ended.returncode == 0, ended.stderr
    assert folder.found() == {"tools.py", "needed.py", "anabranch.py"}


@pytest.mark.parametrize("where", ["tools-1", "needed-1", "anabranch-0.1.0"])
def test_a_job_installs_no_file_of_another_content(folder: Folder, where: str) -> None:
    (path,) = (*folder.index.glob(f"{where}*"), *folder.ci.glob(f"{where}*"))
    wheel(path, {"evil.py": ""})
    ended = folder.install()
    assert ended.returncode != 0
    assert "DO NOT MATCH THE HASHES" in ended.stderr
    assert not {"evil.py", "anabranch.py"} & folder.found()


def test_a_job_installs_no_strangers_package_of_our_name(folder: Folder) -> None:
    (folder.ci / TINY).unlink()
    wheel(folder.index / TINY, {"evil.py": ""})
    wheel(folder.index / TINY.replace("0.1.0", "99.0"), {"evil.py": ""})
    ended = folder.install()
    assert ended.returncode != 0
    assert "DO NOT MATCH THE HASHES" in ended.stderr
    assert folder.found() == {"tools.py", "needed.py"}


@pytest.mark.parametrize("lock", ["build.lock", "requirements.lock", "anabranch.lock"])
def test_a_job_installs_nothing_without_a_hash(folder: Folder, lock: str) -> None:
    line = (folder.ci / lock).read_text()
    (folder.ci / lock).write_text(line.partition(" ")[0] + "\n")
    ended = folder.install()
    assert ended.returncode != 0
    assert "Hashes are required in --require-hashes mode" in ended.stderr
    assert "anabranch.py" not in folder.found()


def test_a_job_says_what_is_missing(folder: Folder) -> None:
    (folder.ci / "anabranch.lock").unlink()
    ended = folder.install()
    assert (ended.returncode, folder.found()) == (1, set())
    assert ended.stderr.startswith("ci/anabranch.lock is missing: `make release` makes it")


def test_no_file_has_users_install_a_package_of_our_name_from_an_index() -> None:
    read_by_users = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "ci").rglob("*"),
    ]
    said = {
        path.name: found
        for path in read_by_users
        if path.is_file() and path.suffix != ".pyc"
        for found in re.findall(r"pip3? install [^\n`]*anabranch(?!-[*0-9])[^\n`]*", path.read_text(encoding="utf-8"))
    }
    assert said == {}
