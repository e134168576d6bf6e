"""The rules of the house, measured: what the model may import, how long files and functions may be, whose paths."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
# Every option of a command is a parameter, and a test may ask for many fixtures.
MANY_PARAMETERS = ("reconciler/cli/", "tests/")

MOST_FILES = 20
# Folders that are larger for now, and by how much: these numbers may only fall.
LARGE_FOLDERS = {
    "reconciler/cli": 34,
}

# A folder of one machine or one person; tests may invent the user `u`.
PLACES = re.compile(r"/(?:home|Users)/(?!u\b)\w|/(?:root|work)/")
TEXTS = {".cfg", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(*suffixes: str) -> Iterator[Path]:
    """Yield the repository's own files; folders of tools and builds are hidden or ignored by git."""
    ignored = {"__pycache__", "build", "dist", "spark-warehouse", "metastore_db"}
    found: list[Path] = []
    for folder, below, names in os.walk(ROOT):
        # Tools keep tens of thousands of files: those are not even looked through.
        below[:] = [name for name in below if name not in ignored and (name == ".ci" or not name.startswith("."))]
        found += [Path(folder, name) for name in names]
    yield from sorted(path for path in found if path.suffix in suffixes and path.is_file())


PYTHON = [path.relative_to(ROOT).as_posix() for path in files(".py")]


def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


@cache
def functions(name: str) -> list[Function]:
    return [node for node in ast.walk(tree(name)) if isinstance(node, Function)]


def imports(name: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relative to itself"
            found.add(node.module or "")
    return found


def lines(function: Function) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def parameters(function: Function) -> int:
    named = function.args
    count = len([*named.posonlyargs, *named.args, *named.kwonlyargs])
    first = (named.posonlyargs + named.args)[:1]
    return count - bool(first and first[0].arg in ("self", "cls"))


def test_the_house_is_here() -> None:
    rooms = {
        "reconciler/model/tasks/spec.py",
        "reconciler/replicator/task/task.py",
        "ci/scripts/plan.py",
        "tests/unit/house/test_house.py",
    }
    assert rooms <= set(PYTHON)


@pytest.mark.parametrize("name", [name for name in PYTHON if name.startswith("reconciler/model/")])
def test_the_model_imports_the_standard_library_and_itself(name: str) -> None:
    others = {
        module
        for module in imports(name)
        if module.split(".")[0] not in sys.stdlib_module_names and not module.startswith("reconciler.model")
    }
    # Names are matched in linear time, which `re` does not promise.
    assert others == ({"re2"} if name == "reconciler/model/names/patterns.py" else set())


@pytest.mark.parametrize("name", [name for name in PYTHON if name.startswith("ci/")])
def test_what_users_copy_imports_the_standard_library_and_itself(name: str) -> None:
    others = {module for module in imports(name) if module.split(".")[0] not in sys.stdlib_module_names}
    assert {module for module in others if not module.startswith("gitops.")} == set()


def test_folders_are_small() -> None:
    counts = Counter(name.rpartition("/")[0] for name in PYTHON)
    assert {folder: count for folder, count in counts.items() if count > LARGE_FOLDERS.get(folder, MOST_FILES)} == {}
    assert {folder for folder in LARGE_FOLDERS if counts[folder] <= MOST_FILES} == set(), "no exception any more"


def test_a_class_name_stands_for_one_thing() -> None:
    """Two classes of one name, each right in its own file, are one name too few to whoever reads both."""
    found: dict[str, list[str]] = {}
    for name in PYTHON:
        if name.startswith("reconciler/"):
            for node in tree(name).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


# One test for all files: thousands of files as thousands of tests take a minute to hand out.


def test_files_are_short() -> None:
    counts = {name: len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in PYTHON}
    assert {name: count for name, count in counts.items() if count > MAX_FILE_LINES} == {}


def test_functions_are_short() -> None:
    found = {(name, f.name): lines(f) for name in PYTHON for f in functions(name)}
    assert {place: count for place, count in found.items() if count > MAX_FUNCTION_LINES} == {}


def test_functions_have_few_parameters() -> None:
    names = [name for name in PYTHON if not name.startswith(MANY_PARAMETERS)]
    found = {(name, f.name): parameters(f) for name in names for f in functions(name)}
    assert {place: count for place, count in found.items() if count > MAX_PARAMETERS} == {}


def test_no_file_names_a_place_on_one_machine() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): PLACES.findall(path.read_text(encoding="utf-8", errors="replace"))
        for path in files(*TEXTS)
    }
    assert {name: places for name, places in found.items() if places} == {}
