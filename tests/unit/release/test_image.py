"""What is handed to whatever builds the image: files of one release, options, and errors before anything is built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from release import image
from tests.support.programs import write_program

pytestmark = pytest.mark.slow

ENGINE = """\
#!/usr/bin/env python3
import json, pathlib, sys
context = pathlib.Path(sys.argv[-1])
told = {"arguments": sys.argv[1:], "files": sorted(path.name for path in context.iterdir())}
pathlib.Path(__file__).with_name("told.json").write_text(json.dumps(told))
sys.exit(int("--fails" in sys.argv))
"""
FILES = ("anabranch-1.0-py3-none-any.whl", "anabranch.lock", "requirements.lock", "anabranch-1.0.cdx.json")


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    write_program(path, ENGINE)
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    for name in (*FILES, "SHA256SUMS"):
        (folder / name).write_text(name)
    return folder


def test_an_engine_gets_the_release_and_its_options(engine: Path, release: Path) -> None:
    command = image.engine_of(f"{engine} --root /images -- --isolation=chroot")
    image.make(command, "images.example/debian:12", "here/anabranch:7", release, allow_dirty=False)
    told = json.loads((engine.parent / "told.json").read_text())
    assert set(told["files"]) == {*FILES, "Containerfile", "entrypoint.sh", "install.sh"}
    arguments = told["arguments"]
    assert arguments[:4] == ["--root", "/images", "build", "--isolation=chroot"]
    assert arguments[arguments.index("--tag") + 1] == "here/anabranch:7"
    given = {arguments[at + 1] for at, one in enumerate(arguments) if one == "--build-arg"}
    assert given == {"VERSION=7", "BASE=images.example/debian:12"}


def test_what_stands_against_it_ends_it_before(engine: Path, release: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no command missing-engine; install podman"):
        image.make(["missing-engine"], None, image.tag(), release, allow_dirty=False)
    with pytest.raises(SystemExit, match="holds no release; `make release` makes one"):
        image.make([str(engine)], None, image.tag(), tmp_path / "release" / "none", allow_dirty=False)
    assert not (engine.parent / "told.json").exists()
    with pytest.raises(subprocess.CalledProcessError):
        image.make([str(engine), "--fails"], None, image.tag(), release, allow_dirty=False)


def test_its_command_has_all_of_that(engine: Path, release: Path) -> None:
    root = Path(image.__file__).parents[1]
    command = [sys.executable, "-m", "release", "image", "--engine", str(engine), "--release", str(release)]
    subprocess.run(command, cwd=root, check=True)
    arguments = json.loads((engine.parent / "told.json").read_text())["arguments"]
    assert arguments[arguments.index("--tag") + 1] == image.tag()
    assert image.tag().startswith("localhost/anabranch:")
    assert not any(one.startswith("BASE=") for one in arguments)
