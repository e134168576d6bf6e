"""Topology files for the tests of the declaration: written to a folder, loaded, and what was said about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import declare
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.declared.topology import Topology

ALIASES = ("a", "b", "c", "d")
HEAD = "version: 1\nname: shop\nclusters:\n" + "".join(
    f'  {alias}: {{bootstrap: ["b1.{alias}.example:9092"]}}\n' for alias in ALIASES
)
HEAD_LINES = HEAD.count("\n")


def write(folder: Path, *texts: str) -> list[Path]:
    """Write each text to a file: `0.yaml`, `1.yaml` and so on."""
    paths = [folder / f"{index}.yaml" for index in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def load(folder: Path, *texts: str) -> Topology:
    """Load texts as one topology."""
    return declare.load(write(folder, *texts))


def flows(folder: Path, body: str) -> list[str]:
    """Return `source→target` of each flow that a topology with four clusters has."""
    return [f"{flow.source}→{flow.target}" for flow in load(folder, HEAD + body).flows]


def refused(folder: Path, *texts: str) -> tuple[Problem, ...]:
    """Return the problems that loading ends with."""
    with pytest.raises(DeclaredInputError) as caught:
        load(folder, *texts)
    return caught.value.problems


def said(folder: Path, *texts: str) -> list[str]:
    """Return each problem as `file:line:column (path) CODE`, the folder left out."""
    return [f"{place(problem, folder)} {problem.code}" for problem in refused(folder, *texts)]


def place(problem: Problem, folder: Path) -> str:
    """Return a problem's place without the folder."""
    return problem.where.replace(f"{folder}/", "")


def warnings(folder: Path, *texts: str) -> list[Problem]:
    """Return what is warned of."""
    told: list[Problem] = []
    declare.load(write(folder, *texts), warn=told.append)
    return told
