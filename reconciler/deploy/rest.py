"""JSON from the REST APIs of clusters that run drivers: at several addresses, of which one is in charge."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, parse_json
from reconciler.model.base.shape import Check, Misfit, fields
from reconciler.model.connection import hosts
from reconciler.model.connection.redirects import NoRedirects

_SECONDS = 15.0
_LARGEST = 2**24
_MOST_OF_A_LINE = 300


@dataclass(frozen=True)
class RestService:
    """A service at one or several addresses.

    Attributes:
        where: what problems are of, such as `Spark cluster spark://s1:7077`.
        kind: what answers, such as `a Spark master`.
        remedy: for one that does not answer.
        refusal: returns why a service does not do what it is asked, from its answer.
    """

    where: str
    kind: str
    remedy: str
    refusal: Callable[[Any], str]

    def first(
        self,
        urls: Iterable[str],
        shape: Mapping[str, Check],
        more: Mapping[str, Check] | None = None,
        body: Mapping[str, Any] | None = None,
        is_meant: Callable[[dict[str, Any]], bool] = lambda _: True,
    ) -> dict[str, Any]:
        """Return the answer at the first URL that gives the one that is meant.

        Args:
            urls: the same request at each address.
            shape: fields of an answer.
            more: further ones, which it may lack.
            body: of the request; None for one without.
            is_meant: whether an answer of that shape is that of the one in charge.

        Raises:
            EnvironmentFault: AB768, no answer is that; AB309, an address may not be connected to from here.
        """
        failures = []
        for url in urls:
            hosts.check(self.where, (), [url])
            base = "/".join(url.split("/")[:3])
            try:
                told = self._answer(url, body)
                found = fields(told, shape, more or {})
            except NoAnswer as error:
                failures.append(f"{base}: {error}")
            except (Misfit, UnreadableFile) as error:
                failures.append(f"{base}: its answer is none of {self.kind}: {error}")
            else:
                if is_meant(found):
                    return found
                failures.append(f"{base}: {self.refusal(told)}")
        raise EnvironmentFault(Problem("AB768", self.where, "; ".join(failures), self.remedy))

    def _answer(self, url: str, body: Mapping[str, Any] | None) -> Any:
        """Return an answer as JSON types.

        Raises:
            NoAnswer: there is none, or it is an error.
            UnreadableFile: it is no JSON.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json;charset=UTF-8", "Accept": "application/json"}
        request = urllib.request.Request(url, data, headers)
        try:
            with answer_to(request, _SECONDS) as answer:
                return parse_json(answer.read(_LARGEST).decode(errors="replace"))
        except urllib.error.HTTPError as error:
            # The body may hold a stack trace behind the first line.
            raise NoAnswer(self._said(error)) from None

    def _said(self, error: urllib.error.HTTPError) -> str:
        try:
            told = parse_json(error.read(_LARGEST).decode(errors="replace"))
            return f"HTTP status {error.code}: {self.refusal(told)}"
        except (OSError, HTTPException, UnreadableFile):
            return f"HTTP status {error.code}"


def first_line(text: Any) -> str:
    """Return the first line of a text, cut to what fits in a message; empty where there is none."""
    lines = str(text or "").splitlines()
    return lines[0][:_MOST_OF_A_LINE] if lines else ""


class NoAnswer(Exception):
    """A service gives no answer."""


@contextmanager
def answer_to(request: urllib.request.Request, seconds: float) -> Iterator[HTTPResponse]:
    """Yield the answer to a request, which follows no redirects.

    Args:
        request: over HTTP.
        seconds: that each wait for the service may take.

    Raises:
        HTTPError: its status is an error.
        NoAnswer: there is none.
    """
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=seconds) as answer:
            yield answer
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as error:
        raise NoAnswer(str(error.reason)) from None
    except (OSError, HTTPException) as error:
        raise NoAnswer(str(error) or type(error).__name__) from None
