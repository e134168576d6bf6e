"""Requests over HTTP that carry secrets go where they were sent, and nowhere else."""

from __future__ import annotations

from urllib.request import HTTPRedirectHandler


class NoRedirects(HTTPRedirectHandler):
    """Follows no redirects: urllib would send headers, with their secrets, wherever an answer points to."""

    def redirect_request(self, *_arguments: object, **_options: object) -> None:
        """Decline each redirect; urllib then raises it as an HTTPError."""
