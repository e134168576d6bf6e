"""Folders of runs: of this user alone, held as long as their processes live, and swept once those are gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.cli.replicate import made_state_dir
from reconciler.replicator.spark import run_folders
from reconciler.replicator.spark.run_folders import KEPT_LOGS, LOG, make, remove, sweep
from reconciler.state.journals import process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells enough of processes")

RUN = "20261126T103355-some-host-{}"
HOLDER = """
import sys
from pathlib import Path
from reconciler.replicator.spark import run_folders
run_folders.make(Path(sys.argv[1]))
(Path(sys.argv[1]) / "checkpoints").mkdir()
(Path(sys.argv[1]) / "checkpoints" / "offsets").write_text("7")
if len(sys.argv) > 2:
    (Path(sys.argv[1]) / run_folders.LOG).write_text("it ended")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold a folder; it is killed at the end, as by somebody who gives no notice."""
    command = [sys.executable, "-c", HOLDER, str(folder), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield holder
        finally:
            holder.kill()


def killed(folder: Path, *options: str) -> Path:
    with holding(folder, *options):
        pass
    return folder


def mark(folder: Path, **change: str) -> None:
    """Change what a folder says of its process."""
    path = folder / ".process"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def of_another(field: int) -> str:
    fields = process.own_name().split("/")
    fields[field] += "x"
    return "/".join(fields)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_no_other_user_may_look_into_it(tmp_path: Path, umask: int) -> None:
    folder, before = tmp_path / RUN.format(1), os.umask(umask)
    try:
        make(folder)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]
    with pytest.raises(FileExistsError):
        make(folder)
    assert list(tmp_path.iterdir()) == [folder], "nothing is left of what was not made"
    remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_who_lives_keeps_its_folder_and_who_was_killed_does_not(tmp_path: Path) -> None:
    gone = killed(tmp_path / "shop" / RUN.format(1))
    mine = tmp_path / "shop" / RUN.format(3)
    make(mine)
    try:
        with holding(tmp_path / "bank" / RUN.format(2)) as holder:
            sweep(tmp_path)
            assert sorted(path.name for path in tmp_path.glob("*/*")) == [RUN.format(2), RUN.format(3)]
            assert (tmp_path / "bank" / RUN.format(2) / "checkpoints" / "offsets").exists()
            holder.kill()
            holder.wait()
            sweep(tmp_path)
    finally:
        remove(mine)
    assert not gone.exists()
    assert list(tmp_path.glob("*/*")) == []


def test_logs_of_the_last_that_were_killed_stay(tmp_path: Path) -> None:
    made = [killed(tmp_path / "shop" / RUN.format(number), "log") for number in range(KEPT_LOGS + 2)]
    for number, folder in enumerate(made):
        os.utime(folder / ".process", (number, number))
    for _ in range(2):
        sweep(tmp_path)
        assert sorted(path.name for path in (tmp_path / "shop").iterdir()) == [one.name for one in made[2:]]
        assert {path.name for one in made[2:] for path in one.iterdir()} == {LOG, ".process"}
    assert (made[-1] / LOG).read_text() == "it ended"


@pytest.mark.parametrize("field", range(3))
def test_of_other_machines_and_boots_nothing_is_swept(tmp_path: Path, field: int) -> None:
    folder = killed(tmp_path / "shop" / RUN.format(1))
    # Another name of the host, or another namespace, under this very kernel: nobody holds it there either.
    goes = field != 1
    mark(folder, process=of_another(field), machine="")
    sweep(tmp_path)
    assert folder.exists() is not goes


def test_behind_a_boot_of_this_machine_nobody_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folders, "_machine", lambda: "this")
    folder = killed(tmp_path / "shop" / RUN.format(1))
    for machine, is_there in (("another", True), ("", True), ("this", False)):
        mark(folder, process=of_another(1), machine=machine)
        sweep(tmp_path)
        assert folder.exists() is is_there


def test_a_container_of_this_machine_that_lives_keeps_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "shop" / RUN.format(1)
    with holding(folder):
        mark(folder, process=of_another(2))
        sweep(tmp_path)
        assert folder.exists()


def test_nothing_else_is_touched(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("here")
    state = tmp_path / "state"
    gone = killed(state / "shop" / RUN.format(1))
    moved = gone.rename(tmp_path / RUN.format(7))
    # Links to a folder that would be swept, a folder without a mark, one that is no run's, and broken marks.
    (state / "shop" / RUN.format(2)).symlink_to(moved)
    (state / "linked").symlink_to(tmp_path)
    (state / "shop" / RUN.format(3)).mkdir()
    killed(state / "shop" / RUN.format(4)).rename(state / "shop" / "notes")
    for number, text in enumerate(
        ["", "[" * 3000, '{"process": 7, "machine": ""}', '{"process": "a/b", "machine": ""}']
    ):
        folder = state / "shop" / RUN.format(10 + number)
        folder.mkdir()
        (folder / ".process").write_text(text)
    linked = state / "shop" / RUN.format(20)
    linked.mkdir()
    (linked / ".process").symlink_to(moved / ".process")
    before = sorted(tmp_path.rglob("*"))
    sweep(state)
    sweep(tmp_path / "nowhere")
    assert sorted(tmp_path.rglob("*")) == before
    assert (precious / "file").read_text() == "here"


def test_links_within_are_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("here")
    for options in ((), ("log",)):
        folder = killed(tmp_path / "state" / "shop" / RUN.format(len(options)), *options)
        (folder / "linked").symlink_to(precious)
        (folder / "file").symlink_to(precious / "file")
    sweep(tmp_path / "state")
    assert (precious / "file").read_text() == "here"
    assert [path.name for path in (tmp_path / "state" / "shop").iterdir()] == [RUN.format(1)]
    assert {path.name for path in (tmp_path / "state" / "shop" / RUN.format(1)).iterdir()} == {LOG, ".process"}


def test_the_place_of_all_of_them_is_private_and_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    gone = killed(tmp_path / "anabranch" / "shop" / RUN.format(1))
    assert made_state_dir(None) == tmp_path / "anabranch"
    assert not gone.exists()
    assert (tmp_path / "anabranch").stat().st_mode & 0o777 == 0o700
