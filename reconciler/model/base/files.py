"""Files and folders of ours: made for this user alone, written whole, and read within bounds.

The content of a file that a command reads is not trusted: however large it is, however deep it is nested and whatever
numbers it holds, reading it ends with a value or with one reason in words. What is written may hold names, positions
and records of others, so no other user of the machine may read it, whatever the umask, and no link that stands at a
name is followed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

MOST_BYTES = 64 * 2**20
"""How many bytes a file that a command reads may have, unless another limit is given."""
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS = 0o077
_TOO_DEEP = "is nested too deeply"


MOST_DEPTH = 100
"""How deep what a file holds may be nested; nothing of ours is nested deeper than some ten."""


class UnreadableFile(ValueError):
    """The content of a file is not usable; the message gives the reason, and repeats nothing of the content.

    Attributes:
        line: of the file, from 1; 0 where that is not known.
    """

    def __init__(self, why: str, line: int = 0) -> None:
        super().__init__(why)
        self.line = line

    def where(self, path: Path) -> str:
        """Return the place in words."""
        return f"{path}:{self.line}" if self.line else str(path)


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Return the text of a UTF-8 file, line breaks as they are.

    Args:
        path: of the file.
        most: bytes that it may have; no more are read.

    Raises:
        OSError: it cannot be read.
        UnreadableFile: it is larger, or no UTF-8 text.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        message = f"is larger than {most} bytes"
        raise UnreadableFile(message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text at byte {error.start}"
        raise UnreadableFile(message) from None


def parse_json(text: str, finite: bool = True) -> Any:
    """Return the value of a JSON text; nothing in it is nested deeper than `MOST_DEPTH`.

    Args:
        text: of the file. No whole number in it may be longer than Python takes (4,300 digits).
        finite: whether all other numbers must be finite; where not, Python's NaN and Infinity come through, for callers
            that check each number and report its place.

    Raises:
        Unreadable: it is no JSON (RFC 8259), nested too deeply, or holds such a number.
    """
    try:
        floats, constants = (_finite, _no_constant) if finite else (None, None)
        value = json.loads(text, parse_float=floats, parse_constant=constants)
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg}"
        raise UnreadableFile(message, error.lineno) from None
    except RecursionError:
        raise UnreadableFile(_TOO_DEEP) from None
    except UnreadableFile:
        raise
    except ValueError:
        # Python refuses whole numbers of thousands of digits, and does not report where.
        message = "has a number that is too long"
        raise UnreadableFile(message) from None
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [one for outer in level for one in _within(outer) if isinstance(one, dict | list)]
        if not level:
            return value
    raise UnreadableFile(_TOO_DEEP)


def _within(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Return the value of a JSON file; raises as `read_text` and `parse_json` do."""
    return parse_json(read_text(path, most))


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        message = "has a number that is too large"
        raise UnreadableFile(message)
    return number


def _no_constant(name: str) -> float:
    message = f"is not JSON: {name} is no number"
    raise UnreadableFile(message)


def state_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where this user's programs keep state, by the XDG base directory specification.

    Args:
        environ: the variables of a process.
    """
    base = environ.get("XDG_STATE_HOME")
    return Path(base) if base else Path.home() / ".local" / "state"


def make_private(folder: Path) -> None:
    """Make a folder that no other user may read; folders above it are made as usual.

    One of this user that is there is closed to others. A link, or another's, stays as it is (`is_private` reports it).

    Raises:
        OSError: it cannot be made, or something else is there.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise
    about = folder.lstat()
    if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) != _PRIVATE_FOLDER:
        folder.chmod(_PRIVATE_FOLDER)


def is_private(folder: Path) -> bool:
    """Return whether a folder is one of this user that no other may read, and no link to one."""
    try:
        about = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & _OTHERS


def open_private(path: Path, mode: str = "w") -> IO[str]:
    """Open a file for writing that no other user may read, made where it is missing; no link is followed.

    Args:
        path: of the file.
        mode: `w` or `a`; neither takes away what is there before the caller has checked it: `w` does not truncate.

    Raises:
        OSError: it cannot be opened, or is a link, or is another user's.
    """
    flags = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_WRONLY | os.O_APPEND if mode == "a" else os.O_RDWR)
    number = os.open(path, flags, _PRIVATE_FILE)
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            message = "is no file of this user"
            raise PermissionError(0, message, str(path))
        os.fchmod(number, _PRIVATE_FILE)
        return os.fdopen(number, "a" if mode == "a" else "r+", encoding="utf-8")
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(number)
        raise


def write_private(path: Path, text: str) -> None:
    """Write a file as a whole, beside the old one, which it then replaces; so it is never half written.

    What replaces a link is a file.

    Raises:
        OSError: it cannot be written.
    """
    with beside(path) as file:
        file.write(text)


def replace_text(path: Path, text: str) -> None:
    """Write a file of the user anew as a whole, with the rights that it has; of a link, what it leads to.

    Raises:
        OSError: it cannot be written.
    """
    path = path.resolve()
    with beside(path) as file:
        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        file.write(text)


@contextlib.contextmanager
def beside(path: Path) -> Iterator[IO[str]]:
    """Give a file to write to that takes the place of `path` at the end, unless the block fails.

    Raises:
        OSError: it cannot be written.
    """
    number, name = tempfile.mkstemp(prefix=f".{path.name[:100]}-", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            os.fchmod(number, _PRIVATE_FILE)
            yield file
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
