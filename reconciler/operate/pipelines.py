"""The pipelines of `ci/`, written into a repository for GitHub or GitLab; nothing that is there is overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from reconciler.model.base.errors import Problem, Refused

Forge = Literal["github", "gitlab"]

_INCLUDED = "ci/gitlab/anabranch.gitlab-ci.yml"
INCLUDE = f"include:\n  - local: {_INCLUDED}\n"
"""What GitLab's own file needs; where there is one, it is not changed."""
_OF_GITLAB = Path(".gitlab-ci.yml")
_LEFT_OUT = ("__pycache__", ".pyc")


def write_pipelines(folder: Path, forge: Forge) -> tuple[Path, ...]:
    """Write the pipelines of a forge below a folder; files that are there as they would be written stay.

    Returns:
        What was written, relative to the folder.

    Raises:
        Refused: AB457, a file is there with another content; nothing is written.
        OSError: the folder cannot be written.
    """
    wanted = dict(_files(forge))
    changed = [
        path
        for path, content in wanted.items()
        if path != _OF_GITLAB and _content(folder / path) not in (None, content)
    ]
    if changed:
        remedy = "merge by hand what is new, or move the file and run this again"
        message = "it is there already, with another content"
        raise Refused([Problem("AB457", str(folder / path), message, remedy) for path in changed])
    written = [path for path in wanted if not (folder / path).exists()]
    for path in written:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(wanted[path])
        (folder / path).chmod(0o755 if path.suffix == ".sh" else 0o644)
    return tuple(written)


def _files(forge: Forge) -> Iterator[tuple[Path, bytes]]:
    """Yield each file with the path that it has in a repository of topologies."""
    from reconciler.declare.documents.resources import locate

    root = locate("ci")
    others = {"github", "gitlab"} - {forge}
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_dir() or inside.parts[0] in others or any(part.endswith(_LEFT_OUT) for part in inside.parts):
            continue
        if forge == "github" and inside.parts[0] == forge:
            yield Path(".github", "workflows", inside.name), path.read_bytes()
        else:
            yield Path("ci", inside), path.read_bytes()
    if forge == "gitlab":
        yield _OF_GITLAB, INCLUDE.encode()


def lacks_include(folder: Path) -> bool:
    """Return whether GitLab's own file is there and does not name the pipeline."""
    content = _content(folder / _OF_GITLAB)
    return content is not None and _INCLUDED.encode() not in content


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else b"" if path.exists() else None
