"""Requests to a server: tried again when it is busy, read page by page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.parse import quote

import httpx

from .openapi import Agent, DecisionAnswer, ErrorBody, Feedback, ReputationAnswer

_RETRIED = {429, 502, 503, 504}
_SAFE = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}

Params = Mapping[str, str | int | float | bool]


class ReputeError(Exception):
    """An answer that is an error. problem is what the server says; None when it is no problem document."""

    def __init__(self, status: int, problem: ErrorBody | None) -> None:
        self.status = status
        self.problem = problem
        text = f"the server answers with status {status}"
        if problem is not None:
            text = problem.get("detail") or problem["title"]
            if hint := problem.get("hint"):
                text += f" ({hint})"
        super().__init__(text)


class GraphQLError(Exception):
    """An answer of GraphQL that has errors, with their messages."""


class Client:
    """A client of one server. Safe for use by several threads.

    base_url is the server's URL; token, an API key or token, is sent as Authorization: Bearer. A request is tried
    again at most retries times, each try takes at most timeout seconds, and a Retry-After above max_wait seconds ends
    the tries. transport and sleep are for tests.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        retries: int = 3,
        timeout: float = 10.0,
        max_wait: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=base_url, headers=headers, timeout=timeout, transport=transport)
        self._retries, self._max_wait, self._sleep = retries, max_wait, sleep

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def request(
        self, method: str, path: str, *, params: Params | None = None, json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Returns the JSON of an answer. Raises ReputeError, or httpx.TransportError when there is none.

        A request that changes something is sent again only when the server refused it (429, 503) or when it has an
        Idempotency-Key: the answer to it may be lost, not the change.
        """
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in (params or {}).items()}
        repeatable = method in _SAFE or any(name.lower() == "idempotency-key" for name in headers or {})
        tried = 0
        while True:
            pause = 0.5 * 2**tried
            try:
                answer = self._http.request(method, path, params=query, json=json, headers=headers)
            except httpx.TransportError:
                if tried >= self._retries or not repeatable:
                    raise
            else:
                refused = answer.status_code in (429, 503)
                again = answer.status_code in _RETRIED and tried < self._retries and (refused or repeatable)
                pause = _wait_of(answer.headers.get("Retry-After"), pause)
                if not again or pause > self._max_wait:
                    return _body_of(answer)
            self._sleep(pause)
            tried += 1

    def get(self, path: str, **params: str | int | float | bool) -> Any:
        """Returns the JSON that a route answers. openapi has the types of answers by their names in the document."""
        return self.request("GET", path, params=params)

    def items(self, path: str, **params: str | int | float | bool) -> Iterator[Any]:
        """Yields all that a list holds; the next page is asked for when the one before was read."""
        while True:
            page = self.get(path, **params)
            yield from page["items"]
            if page["next"] is None:
                return
            params["cursor"] = page["next"]

    def agents(self, **params: str | int | float | bool) -> Iterator[Agent]:
        """Yields agents by the parameters of GET /agents."""
        return self.items("/agents", **params)

    def feedback(self, agent: str, **params: str | int | float | bool) -> Iterator[Feedback]:
        """Yields an agent's ratings."""
        return self.items(f"/agents/{quote(agent, safe='')}/feedback", **params)

    def reputation(self, agent: str, **params: str | int | float | bool) -> ReputationAnswer:
        """Returns how far an agent can be trusted."""
        return cast(ReputationAnswer, self.get(f"/agents/{quote(agent, safe='')}/reputation", **params))

    def decision(self, agent: str, **params: str | int | float | bool) -> DecisionAnswer:
        """Returns whether an agent passes demands, and why not."""
        return cast(DecisionAnswer, self.get(f"/agents/{quote(agent, safe='')}/decision", **params))

    def graphql(self, document: str, **variables: Any) -> dict[str, Any]:
        """Returns the data of a GraphQL document. Raises GraphQLError with all messages."""
        answer = self.request("POST", "/graphql", json={"query": document, "variables": variables})
        if errors := answer.get("errors"):
            raise GraphQLError("; ".join(error["message"] for error in errors))
        return cast(dict[str, Any], answer["data"])


def _wait_of(header: str | None, default: float) -> float:
    """Returns the seconds that a Retry-After names, in seconds or as a date."""
    if header is None:
        return default
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return default
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max(0.0, (date - datetime.now(timezone.utc)).total_seconds())


def _body_of(answer: httpx.Response) -> Any:
    """Returns the JSON of a success, and raises the error of any other answer."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if answer.is_success and body is not None:
        return body
    known = isinstance(body, dict) and "status" in body and "title" in body
    raise ReputeError(answer.status_code, cast(ErrorBody, body) if known else None)
