"""Tokens for SASL OAUTHBEARER from an endpoint, requested with the client's credentials (RFC 6749, 4.4).

`tokens` imports it when a cluster needs it: HTTP and TLS take long to import.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.redirects import NoRedirects
from reconciler.model.connection.references import URL, Reference, settled
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.connection.token_provider import no_token

# A task's loop stands still meanwhile.
_ENDPOINT_SECONDS = 3.0
_LARGEST_ANSWER = 2**20


def ask(security: Security, oauth: OAuth, where: str) -> tuple[str, float | None]:
    """Return a token, and for how many seconds it is valid; None where the answer does not have that.

    Args:
        security: with the authority of the endpoint's certificate, if one is declared.
        oauth: with the endpoint, and the client's credentials.
        where: whose token it is, for the error.

    Raises:
        EnvironmentFault: AB307 no token can be had, AB304 a reference cannot be resolved.
    """
    endpoint, client = settled(oauth.token_endpoint or "", where, URL), settled(oauth.client_id or "", where)
    secret = oauth.client_secret.resolve(where) if oauth.client_secret else ""
    form = {"grant_type": "client_credentials"} | ({"scope": settled(oauth.scope, where)} if oauth.scope else {})
    basic = base64.b64encode(f"{client}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "Accept": "application/json"}
    try:
        request = urllib.request.Request(endpoint, urllib.parse.urlencode(form).encode(), headers)
    except ValueError as error:
        raise _no_address(where, endpoint, error) from None
    try:
        answer = _answer(request, security, where)
        text = str(answer["access_token"])
        seconds = float(said) if (said := answer.get("expires_in")) else None
    except urllib.error.HTTPError as error:
        # The rest of the answer may repeat the request, with its secret.
        reason = f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        reason = str(error.reason)
    except http.client.InvalidURL as error:
        raise _no_address(where, endpoint, error) from None
    except (OSError, TimeoutError) as error:
        # Also a connection that was closed, which is an HTTPException as well.
        reason = str(error) or type(error).__name__
    except http.client.HTTPException:
        reason = "its answer is no HTTP; is it https?"
    except (KeyError, TypeError, ValueError):
        reason = "its answer is no JSON with an access_token"
    else:
        return text, seconds
    remedy = "check security.oauth: token-endpoint, client-id, client-secret and scope"
    raise no_token(where, f"{_shown(endpoint)} gives client {oauth.client_id} no token: {reason}", remedy) from None


def _shown(endpoint: str) -> str:
    """Return an address without what follows the path: that may hold a secret."""
    return re.split("[?#]", endpoint, maxsplit=1)[0]


def _answer(request: urllib.request.Request, security: Security, where: str) -> dict[str, Any]:
    handlers: list[type[urllib.request.BaseHandler] | urllib.request.BaseHandler] = [NoRedirects]
    if request.type == "https":
        context = ssl.create_default_context()
        if security.ca is not None:
            # An endpoint may have a certificate of the same authority, or of a public one.
            context.load_verify_locations(security.ca.path, cadata=_text_of(security.ca, where))
        handlers.append(urllib.request.HTTPSHandler(context=context))
    with urllib.request.build_opener(*handlers).open(request, timeout=_ENDPOINT_SECONDS) as answer:
        found: dict[str, Any] = json.loads(answer.read(_LARGEST_ANSWER))
        return found


def _text_of(ca: Reference, where: str) -> str | None:
    """Return the certificates themselves where they are not in a file of their own."""
    return None if ca.path else ca.resolve(where)


def _no_address(where: str, endpoint: str, error: Exception) -> EnvironmentFault:
    said = str(error).replace(endpoint, _shown(endpoint))
    return no_token(where, f"{_shown(endpoint)} is no address: {said}", "correct security.oauth: token-endpoint")
