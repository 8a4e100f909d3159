"""What the client does with answers of a server that these tests script: python -m unittest discover tests"""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable
from typing import Any

import httpx
from eth_account import Account
from eth_account.messages import encode_typed_data

from repute_client import Client, GraphQLError, ReputeError, StatementError, TrustedKey, trust_guard, verify_statement
from repute_client import statement as statements

PROBLEM = {"type": "about:blank", "title": "Bad Request", "status": 400, "code": "invalid", "detail": "tier: out of range",
           "hint": "0 to 4", "errors": []}


class Scripted:
    """A server that answers with what answer returns for a request and its number."""

    def __init__(self, answer: Callable[[httpx.Request, int], httpx.Response]) -> None:
        self.asked: list[httpx.Request] = []
        self.slept: list[float] = []
        self._answer = answer
        self.client = Client("http://index.example", token="secret", transport=httpx.MockTransport(self._take),
                             sleep=self.slept.append)

    def _take(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self._answer(request, len(self.asked))


class Requests(unittest.TestCase):
    def test_busy_server_is_asked_again(self) -> None:
        s = Scripted(lambda _, n: httpx.Response(429, headers={"Retry-After": "2"}) if n < 3 else httpx.Response(200, json={}))
        s.client.get("/status")
        self.assertEqual((len(s.asked), s.slept), (3, [2.0, 2.0]))

    def test_tries_end(self) -> None:
        s = Scripted(lambda *_: httpx.Response(503, json=PROBLEM | {"status": 503}))
        with self.assertRaises(ReputeError) as raised:
            s.client.get("/status")
        self.assertEqual((raised.exception.status, len(s.asked), s.slept), (503, 4, [0.5, 1.0, 2.0]))

    def test_change_is_sent_once_unless_it_has_an_idempotency_key(self) -> None:
        s = Scripted(lambda *_: httpx.Response(502))
        with self.assertRaises(ReputeError):
            s.client.request("POST", "/v1/tasks", json={"goal": "x"})
        self.assertEqual(len(s.asked), 1)
        with self.assertRaises(ReputeError):
            s.client.request("POST", "/v1/tasks", json={"goal": "x"}, headers={"Idempotency-Key": "one"})
        self.assertEqual(len(s.asked), 5)

    def test_lost_connections_are_tried_again(self) -> None:
        def answer(_: httpx.Request, n: int) -> httpx.Response:
            if n == 1:
                raise httpx.ConnectError("refused")
            return httpx.Response(200, json={"ok": True})
        s = Scripted(answer)
        self.assertEqual(s.client.get("/status"), {"ok": True})

    def test_long_retry_after_ends_the_tries(self) -> None:
        s = Scripted(lambda *_: httpx.Response(429, headers={"Retry-After": "3600"}))
        with self.assertRaises(ReputeError):
            s.client.get("/status")
        self.assertEqual(len(s.asked), 1)

    def test_errors_have_the_problem_and_no_token(self) -> None:
        s = Scripted(lambda *_: httpx.Response(400, json=PROBLEM))
        with self.assertRaises(ReputeError) as raised:
            s.client.get("/status")
        self.assertEqual(str(raised.exception), "tier: out of range (0 to 4)")
        self.assertNotIn("secret", repr(vars(raised.exception)))

    def test_answers_that_are_no_json_are_errors(self) -> None:
        for status in (200, 404):
            with self.assertRaises(ReputeError) as raised:
                Scripted(lambda *_: httpx.Response(status, text="<html>")).client.get("/status")
            self.assertIsNone(raised.exception.problem)

    def test_items_reads_page_after_page(self) -> None:
        pages = {None: ([1, 2], "b"), "b": ([], "c"), "c": ([3], None)}

        def answer(request: httpx.Request, _: int) -> httpx.Response:
            found, following = pages[request.url.params.get("cursor")]
            return httpx.Response(200, json={"items": found, "next": following})
        s = Scripted(answer)
        self.assertEqual(list(s.client.agents(minScore=50, active=True)), [1, 2, 3])
        for request in s.asked:
            self.assertEqual(request.url.params["active"], "true")
            self.assertEqual(request.headers["Authorization"], "Bearer secret")

    def test_graphql_errors_are_raised(self) -> None:
        with self.assertRaisesRegex(GraphQLError, "Cannot query"):
            Scripted(lambda *_: httpx.Response(200, json={"errors": [{"message": "Cannot query field"}]})).client.graphql("{x}")


PAY_TO = "0x00000000000000000000000000000000000000aa"


class Wanted:
    def __init__(self, network: str) -> None:
        self.pay_to, self.network = PAY_TO, network


class Payment:
    def __init__(self, network: str = "eip155:8453") -> None:
        self.selected_requirements = Wanted(network)


def index(agents: list[str], decide: Callable[[str], httpx.Response]) -> Scripted:
    def answer(request: httpx.Request, _: int) -> httpx.Response:
        if request.url.path == "/agents":
            found = agents if request.url.params.get("wallet") == PAY_TO else []
            return httpx.Response(200, json={"items": [{"id": agent} for agent in found], "next": None})
        return decide(request.url.path.split("/")[2])
    return Scripted(answer)


def allow(_: str) -> httpx.Response:
    return httpx.Response(200, json={"decision": "allow", "reasons": []})


def deny(_: str) -> httpx.Response:
    return httpx.Response(200, json={"decision": "deny", "reasons": [{"id": "x", "text": "low is 3"}]})


class Guard(unittest.TestCase):
    def check(self, s: Scripted, payment: Payment | None = None, **more: Any) -> str | None:
        answer = trust_guard(s.client, min_score=20, **more)(payment or Payment())
        return None if answer is None else str(answer.reason)

    def test_pays_whom_the_index_trusts(self) -> None:
        s = index(["a"], allow)
        self.assertIsNone(self.check(s))
        self.assertEqual(s.asked[0].url.params["chainId"], "8453")
        self.assertEqual(s.asked[1].url.params["minScore"], "20")

    def test_refuses(self) -> None:
        for s, payment, reason in [
            (index(["a", "b"], lambda agent: allow(agent) if agent == "a" else deny(agent)), None, "agent b: low is 3"),
            (index([], allow), None, "no agent"),
            (index([str(n) for n in range(51)], allow), None, "more than 50"),
            (index(["a"], allow), Payment("base"), "CAIP-2"),
            (Scripted(lambda *_: httpx.Response(503)), None, "cannot be read"),
            (Scripted(lambda *_: httpx.Response(200, text="<html>")), None, "cannot be read"),
            (index(["a"], lambda _: httpx.Response(200, json={})), None, "cannot be read"),
        ]:
            with self.subTest(reason):
                self.assertIn(reason, self.check(s, payment) or "paid")

    def test_unknown_payee_passes_only_when_asked_to(self) -> None:
        self.assertIsNone(self.check(index([], allow), allow_unknown=True))


ACCOUNT = Account.from_key("0x" + "11" * 32)
HASH = "0x" + "ab" * 32
AGENT = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7"
KEYS: list[TrustedKey] = [{"address": ACCOUNT.address, "from": None, "to": None}]


def signed(**changes: Any) -> dict[str, Any]:
    message = {
        "agentId": "7", "status": "rated", "scoreMilli": 52000, "lowMilli": -1, "highMilli": 60000, "confidenceMicro": 900000,
        "tier": 3, "guarded": False, "blockNumber": 10, "blockHash": HASH, "blockTime": 900, "holdsBlock": 12,
        "holdsTime": 1000, "verifiedTo": 12, "epoch": 2, "scorer": "1", "params": HASH, "tags": HASH, "roots": HASH,
        "links": HASH, "sources": HASH, "credentials": HASH, "fileScales": HASH, "evidence": HASH, "issuedAt": 1010,
        "expiresAt": 4610, **changes,
    }
    domain = {"name": "repute trust score", "version": "6", "chainId": 8453,
              "verifyingContract": "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}
    typed = {"types": {"EIP712Domain": statements._DOMAIN, "TrustScore": statements._TRUST_SCORE},
             "primaryType": "TrustScore", "domain": domain, "message": {**message, "agentId": 7}}
    signature = ACCOUNT.sign_message(encode_typed_data(full_message=typed)).signature
    return {"domain": domain, "message": message, "signer": ACCOUNT.address, "signature": "0x" + bytes(signature).hex()}


class Statements(unittest.TestCase):
    def verify(self, statement: dict[str, Any], **more: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"agent": AGENT, "keys": KEYS, "max_age": 3600, "now": 1100} | more
        return verify_statement(statement, **given)

    def test_verifies(self) -> None:
        self.assertEqual(self.verify(signed())["scoreMilli"], 52000)

    def test_refuses(self) -> None:
        good = signed()
        other = json.loads(json.dumps(good))
        other["domain"]["version"] = "5"
        cases: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            ("signature", good | {"message": good["message"] | {"scoreMilli": 90000}}, {}),
            ("signature", good | {"signer": PAY_TO}, {}),
            ("signature", good | {"signature": good["signature"][:20]}, {}),
            ("signature", good | {"message": {}}, {}),
            ("version", other, {}),
            ("signer", good, {"keys": [{"address": PAY_TO, "from": None, "to": None}]}),
            ("signer", good, {"keys": [{"address": ACCOUNT.address, "from": None, "to": "1970-01-01T00:16:50Z"}]}),
            ("agent", good, {"agent": AGENT[:-1] + "8"}),
            ("expired", good, {"now": 4671}),
            ("early", good, {"now": 900}),
            ("old", good, {"now": 4600, "max_age": 3599}),
            ("unverified", signed(verifiedTo=11), {}),
        ]
        for fault, statement, more in cases:
            with self.subTest(fault, **more), self.assertRaises(StatementError) as raised:
                self.verify(statement, **more)
            self.assertEqual(raised.exception.fault, fault)


if __name__ == "__main__":
    unittest.main()
