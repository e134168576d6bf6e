"""The image of deployments, built by podman on a Debian that debootstrap makes, and run as an orchestrator would."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
BASE, IMAGE = "localhost/anabranch-base:test", "localhost/anabranch:test"
_MIRROR = "http://deb.debian.org/debian"
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_LIMITS = {"nofile": min(20_000, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), "nproc": 4_096}
# Rights, memory for files and limits as in pods: nothing is writable but what is listed.
_CONFINED = (
    "--network=host",
    "--read-only",
    "--tmpfs=/tmp:rw,exec,size=1g",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    # podman's own are higher than what every machine allows.
    *(f"--ulimit={name}={most}:{most}" for name, most in _LIMITS.items()),
)


def lacking() -> str:
    """Return what is missing to build and run it; empty where nothing is."""
    missing = [name for name in ("podman", "runc", "debootstrap") if shutil.which(name) is None]
    if missing:
        return f"there is no {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "debootstrap needs root"


class Podman:
    """A podman with images and containers of its own.

    Args:
        folder: for them.
    """

    def __init__(self, folder: Path) -> None:
        self._options = ["podman", "--root", str(folder / "images"), "--runroot", str(folder / "run")]
        self._options += ["--cgroup-manager", "cgroupfs", "--runtime", str(shutil.which("runc"))]
        self._folder = folder

    def build(self) -> None:
        """Build the image, on a Debian that trusts what this machine trusts."""
        root = self._folder / "debian"
        included = "--include=ca-certificates"
        subprocess.run(["debootstrap", "--variant=minbase", included, "bookworm", str(root), _MIRROR], check=True)
        shutil.copy(Path("/") / _CERTIFICATES, root / _CERTIFICATES)
        trusts = f"ENV PIP_CERT=/{_CERTIFICATES}"
        with subprocess.Popen(["tar", "-C", str(root), "-c", "."], stdout=subprocess.PIPE) as packed:
            self._podman("import", "--change", trusts, "-", BASE, stdin=packed.stdout)
        shutil.rmtree(root)
        engine = " ".join([*self._options, "--", "--isolation=chroot"])
        build = [sys.executable, "-m", "release", "image", "--engine", engine, "--base", BASE, "--tag", IMAGE]
        subprocess.run([*build, "--allow-dirty"], cwd=ROOT, check=True)

    def run(self, *arguments: str, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run the image to its end, confined."""
        command = [*self._options, "run", "--rm", *_CONFINED, *options, IMAGE, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def start(self, name: str, *arguments: str, options: Sequence[str] = ()) -> None:
        """Start a container that goes on, confined."""
        self._podman("run", "--detach", "--name", name, *_CONFINED, *options, IMAGE, *arguments)

    def kill(self, name: str) -> None:
        """Kill what runs in a container."""
        self._podman("kill", "--signal", "KILL", name)

    def again(self, name: str) -> None:
        """Start an ended container again."""
        self._podman("start", name)

    def stop(self, name: str, seconds: int) -> int:
        """End a container in order, and return its exit code; 137 where it had to be killed."""
        self._podman("stop", "--time", str(seconds), name)
        return int(self.inspect(name, "{{.State.ExitCode}}"))

    def remove(self, name: str) -> None:
        """Remove a container, whatever it does."""
        subprocess.run([*self._options, "rm", "--force", "--time", "5", name], capture_output=True, check=False)

    def log(self, name: str) -> str:
        """Return what a container printed."""
        command = [*self._options, "logs", name]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout

    def inspect(self, name: str, template: str) -> str:
        """Return one fact of a container or image."""
        return self._podman("inspect", "--format", template, name).strip()

    def close(self) -> None:
        """Remove containers, images and what podman mounted for them."""
        for word in ("rm", "rmi"):
            subprocess.run([*self._options, word, "--all", "--force"], capture_output=True, check=False)
        subprocess.run(["umount", str(self._folder / "images" / "overlay")], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    def packed(self) -> int:
        """Return the bytes of the image as a registry keeps it, packed."""
        with subprocess.Popen([*self._options, "save", IMAGE], stdout=subprocess.PIPE) as saved:
            packing = subprocess.Popen(["gzip", "--stdout"], stdin=saved.stdout, stdout=subprocess.PIPE)
            counted = subprocess.run(["wc", "-c"], stdin=packing.stdout, capture_output=True, text=True, check=True)
            packing.wait()
        return int(counted.stdout)

    def _podman(self, *arguments: str, stdin: IO[bytes] | None = None) -> str:
        source = stdin or subprocess.DEVNULL
        ended = subprocess.run([*self._options, *arguments], stdin=source, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise AssertionError(ended.stderr)
        return str(ended.stdout)
