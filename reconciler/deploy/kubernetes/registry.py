"""Whether an image is in its registry, as far as that can be seen without a login.

Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

from reconciler.deploy.rest import NoAnswer, answer_to
from reconciler.model.base.errors import AnabranchError
from reconciler.model.base.files import UnreadableFile, parse_json
from reconciler.model.connection import hosts

_SECONDS = 10.0
_LARGEST = 2**20
_HUB, _HUB_API = "docker.io", "registry-1.docker.io"
_KINDS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


class ImageName(NamedTuple):
    """The parts of an image's name.

    Attributes:
        host: of the registry's API, with its port.
        repository: in the registry.
        reference: a tag or a digest.
    """

    host: str
    repository: str
    reference: str


class Seen(NamedTuple):
    """What a registry has of an image.

    Attributes:
        level: `ok`, it is there; `failure`, it is not; `warning`, it could not be looked up from here.
        found: in words.
    """

    level: Literal["ok", "failure", "warning"]
    found: str


def name_of(image: str) -> ImageName:
    """Return the parts of an image's name, as container engines read it: without a host it is Docker Hub's."""
    rest, _, digest = image.partition("@")
    head, _, tail = rest.rpartition("/")
    last, _, tag = tail.partition(":")
    path = f"{head}/{last}" if head else last
    host, slash, repository = path.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, repository = _HUB, path if slash else f"library/{path}"
    return ImageName(_HUB_API if host == _HUB else host, repository, digest or tag or "latest")


def look_up(image: str) -> Seen:
    """Return whether an image is in its registry; without a login, as one may be needed that only pods have."""
    name = name_of(image)
    scheme = "http" if hosts.is_loopback(hosts.host_of(name.host)) else "https"
    url = f"{scheme}://{name.host}/v2/{name.repository}/manifests/{name.reference}"
    try:
        code, challenge = _asked(url, {})
        if code == HTTPStatus.UNAUTHORIZED and (token := _token(challenge)):
            code, _ = _asked(url, {"Authorization": f"Bearer {token}"})
    except NoAnswer as error:
        return Seen("warning", f"{name.host} does not answer: {error}")
    except AnabranchError as error:
        return Seen("warning", error.problems[0].message)
    if code == HTTPStatus.NOT_FOUND:
        return Seen("failure", f"{name.host} has no {name.repository} with {name.reference}")
    if code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Seen("warning", f"{name.host} requires a login for {name.repository}, which pods may have")
    if code != HTTPStatus.OK:
        return Seen("warning", f"{name.host} answers with HTTP status {code}")
    return Seen("ok", f"{name.host} has {name.repository} with {name.reference}")


def _asked(url: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """Return status and challenge of an answer.

    Raises:
        NoAnswer: there is none.
        EnvironmentFault: AB309, it may not be connected to from here.
    """
    hosts.check("the image's registry", (), [url])
    request = urllib.request.Request(url, headers={"Accept": _KINDS, **headers}, method="HEAD")
    try:
        with answer_to(request, _SECONDS) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("WWW-Authenticate", "")


def _token(challenge: str) -> str:
    """Return a token for requests without a login; empty where there is none.

    Source: https://distribution.github.io/distribution/spec/auth/token/
    """
    kind, _, rest = challenge.partition(" ")
    told = dict(_PARAMETER.findall(rest))
    realm = told.pop("realm", "")
    if kind.lower() != "bearer" or urlsplit(realm).scheme not in ("http", "https") or hosts.leaves_in_clear(realm):
        return ""
    url = f"{realm}?{urlencode({key: told[key] for key in ('service', 'scope') if key in told})}"
    hosts.check("the image's registry", (), [url])
    try:
        with answer_to(urllib.request.Request(url), _SECONDS) as answer:
            found = parse_json(answer.read(_LARGEST).decode(errors="replace"))
    except (urllib.error.HTTPError, NoAnswer, UnreadableFile):
        return ""
    token = (found.get("token") or found.get("access_token")) if isinstance(found, dict) else None
    return token if isinstance(token, str) and token.isprintable() else ""
