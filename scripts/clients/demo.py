"""Uses the Python client against a demo: lists, a signed score, GraphQL, and the guard in a client of x402.

Usage: python demo.py URL
"""

import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.schemas import PaymentAbortedError, PaymentRequired

from repute_client import Client, ReputeError, StatementError, trust_guard, verify_statement

client = Client(sys.argv[1])
agents = list(client.agents(limit=2))
one = [agent["id"] for agent in client.agents(limit=200)]
assert [agent["id"] for agent in agents] == one[: len(agents)]  # the demo may register an agent between the two
trusted = next(agent for agent in agents if agent["status"] == "rated" and agent["low"] > 20)
distrusted = next(agent for agent in agents
                  if (agent["status"] != "rated" or agent["low"] < 20) and agent["owner"] != trusted["owner"])

signed = client.reputation(trusted["id"], signed=True)["signed"]
keys = client.get("/.well-known/repute-keys.json")["keys"]
assert verify_statement(signed, agent=trusted["id"], keys=keys, max_age=86400)["agentId"] == trusted["tokenId"]
try:
    verify_statement(signed, agent=distrusted["id"], keys=keys, max_age=86400)
    raise SystemExit("a statement about another agent was accepted")
except StatementError as error:
    assert error.fault == "agent", error

try:
    client.reputation("31337:999999")
    raise SystemExit("an agent that does not exist has a reputation")
except ReputeError as error:
    assert error.status == 404, error

document = "query($id: ID!) { agent(id: $id) { score } }"
assert client.graphql(document, id=trusted["id"])["agent"]["score"] == trusted["score"]

paying = x402ClientSync().on_before_payment_creation(trust_guard(client, min_score=20))
register_exact_evm_client(paying, Account.from_key("0x" + "11" * 32)).set_spend_controls(False)


def pay(pay_to: str) -> object:
    return paying.create_payment_payload(PaymentRequired.model_validate({
        "x402Version": 2,
        "resource": {"url": "https://shop.example/x", "description": "", "mimeType": "application/json"},
        "accepts": [{
            "scheme": "exact", "network": "eip155:31337", "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "amount": "1000", "payTo": pay_to, "maxTimeoutSeconds": 60, "extra": {"name": "USDC", "version": "2"},
        }],
    }))


def account(agent: dict) -> str:
    return agent["wallet"] or agent["owner"]


assert pay(account(trusted))
for payee, why in [(account(distrusted), "agent eip155:31337"), ("0x00000000000000000000000000000000000000aa", "no agent")]:
    try:
        pay(payee)
        raise SystemExit(f"{payee} was paid")
    except PaymentAbortedError as error:
        assert why in str(error), error
print(f"clients: Python read {len(agents)} agents, verified a statement and refused two payees")
