"""A hook of x402 clients that refuses to pay whom the index does not trust."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from .client import Client

_CAIP2 = re.compile(r"eip155:([1-9]\d{0,14})")


class Refusal(Exception):
    """Why a payee is not paid."""


def trust_guard(client: Client, *, min_score: float, tier: int | None = None, verified: bool = False,
                allow_unknown: bool = False, max_agents: int = 50) -> Callable[[Any], Any]:
    """Returns the hook for on_before_payment_creation of x402ClientSync:

        x402ClientSync().on_before_payment_creation(trust_guard(client, min_score=20))

    The payee is every agent whose verified wallet, or else whose owner, is pay_to on the chain of the payment. The one
    that is trusted least decides, because an account is not better than what its agents did. Whatever cannot be found
    out is a refusal: the index is away, the network is no EVM chain by its CAIP-2 name, the chain is not indexed.
    min_score is compared with the lower bound of the score; a payee with more than max_agents agents is refused.
    """
    from x402.schemas import AbortResult  # only who pays needs the package x402

    demands: dict[str, Any] = {"minScore": min_score}
    if tier is not None:
        demands["tier"] = tier
    if verified:
        demands |= {"verified": True, "at": "finalized"}

    def hook(context: Any) -> Any:
        wanted = context.selected_requirements
        try:
            _check(client, demands, wanted.pay_to, str(wanted.network), allow_unknown, max_agents)
        except Refusal as refusal:
            return AbortResult(reason=str(refusal))
        except Exception as error:  # whatever fails is a refusal: the guard must not pay by accident
            return AbortResult(reason=f"the payee's reputation cannot be read: {error}")
        return None

    return hook


def async_trust_guard(client: Client, **demands: Any) -> Callable[[Any], Awaitable[Any]]:
    """Returns trust_guard for x402Client; the index is asked in a thread."""
    guard = trust_guard(client, **demands)

    async def hook(context: Any) -> Any:
        return await asyncio.to_thread(guard, context)

    return hook


def _check(client: Client, demands: dict[str, Any], pay_to: str, network: str, allow_unknown: bool, most: int) -> None:
    """Raises Refusal when the payee is not to be paid."""
    chain = _CAIP2.fullmatch(network)
    if chain is None:
        raise Refusal(f"{network} is not the CAIP-2 name of an EVM chain")
    agents = _agents_of(client, pay_to, int(chain[1]), most)
    if not agents and not allow_unknown:
        raise Refusal(f"no agent on {network} has the account {pay_to}")
    for agent in agents:
        answer = client.decision(agent, **demands)
        if answer["decision"] != "allow":
            raise Refusal(f"agent {agent}: " + "; ".join(reason["text"] for reason in answer["reasons"]))


def _agents_of(client: Client, pay_to: str, chain: int, most: int) -> list[str]:
    """Returns the ids of a payee's agents: by wallet, and where there is none by owner."""
    for account in ("wallet", "owner"):
        found: list[str] = []
        parameters: dict[str, str | int] = {account: pay_to, "chainId": chain}
        for agent in client.agents(**parameters):
            if len(found) == most:
                raise Refusal(f"{pay_to} has more than {most} agents")
            found.append(agent["id"])
        if found:
            return found
    return []
