"""The page at `/` and its files; none of them holds data, so they are given without a token."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.staticfiles import StaticFiles

from reconciler.report.pictures.svg_style import stylesheet

_FOLDER = Path(__file__).parent / "page"

router = APIRouter(include_in_schema=False)
files = StaticFiles(directory=_FOLDER)


@router.get("/")
def get_page() -> Response:
    """Return the page."""
    return Response((_FOLDER / "index.html").read_bytes(), media_type="text/html")


@router.get("/page/picture.css")
def get_picture_style() -> Response:
    """Return the stylesheet of the topology's picture."""
    return Response(stylesheet(), media_type="text/css")
