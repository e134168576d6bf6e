"""`make image`: the image that deployments run in, from the files of a release."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release import build
from release.lock import ROOT

_PARTS = (ROOT / "deploy" / "image" / "Containerfile", ROOT / "deploy" / "image" / "entrypoint.sh")
_INSTALLS = ROOT / "ci" / "install.sh"
_OF_RELEASE = ("*.whl", "*.lock", "*.cdx.json")


def tag() -> str:
    """Return what the image of this version is called on the machine that builds it."""
    return f"localhost/{build.NAME}:{build.declared_project()['version']}"


def make(engine: Sequence[str], base: str | None, name: str, release: Path | None, *, allow_dirty: bool) -> None:
    """Build the image.

    Args:
        engine: the command that builds, and its options: `podman`, `docker` or what takes the same arguments.
        base: image of Debian that it stands on; None for that of the Containerfile.
        name: of the image, with its tag.
        release: folder with what `make release` built; None to build it now.
        allow_dirty: whether files that are not committed may be in a release that is built now.

    Raises:
        SystemExit: there is no such engine, or no release in the folder.
        subprocess.CalledProcessError: the build has failed; the engine has printed why.
    """
    if shutil.which(engine[0]) is None:
        message = f"there is no command {engine[0]}; install podman, or name another one with --engine"
        raise SystemExit(message)
    with tempfile.TemporaryDirectory(prefix="anabranch-image-") as folder:
        context = Path(folder) / "context"
        context.mkdir()
        if release is None:
            release = Path(folder) / "release"
            build.make(release, allow_dirty=allow_dirty)
        copied = [path for pattern in _OF_RELEASE for path in sorted(release.glob(pattern))]
        if {path.suffix for path in copied} != {".whl", ".lock", ".json"}:
            message = f"{release} holds no release; `make release` makes one"
            raise SystemExit(message)
        for path in (*_PARTS, _INSTALLS, *copied):
            shutil.copy(path, context)
        version = name.rpartition(":")[2]
        arguments = ["--file", str(context / "Containerfile"), "--tag", name, "--build-arg", f"VERSION={version}"]
        arguments += [] if base is None else ["--build-arg", f"BASE={base}"]
        subprocess.run([*engine[:1], *_build(engine), *arguments, str(context)], check=True)


def _build(engine: Sequence[str]) -> list[str]:
    """Return the options of an engine and its word for building; further options of the word may stand behind `--`."""
    options = list(engine[1:])
    cut = options.index("--") if "--" in options else len(options)
    return [*options[:cut], "build", *options[cut + 1 :]]


def engine_of(text: str) -> list[str]:
    """Read a command line such as `podman --root /var/images -- --isolation=chroot`."""
    return shlex.split(text)
