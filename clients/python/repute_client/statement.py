"""Signed scores, verified without asking anyone. docs/reference/statements.md defines the typed data."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.address import is_same_address

Fault = Literal["signature", "signer", "expired", "early", "agent", "old", "unverified", "version"]

_VERSION = "6"  # of the domain: other versions have other members
_SKEW = 60  # seconds by which the clocks of who signs and who verifies may differ
# Half the order of secp256k1: a signature above it is a copy that anyone can make of one below.
_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0


def _members(kind: str, *names: str) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name in names]


_DOMAIN = [*_members("string", "name", "version"), *_members("uint256", "chainId"), *_members("address", "verifyingContract")]
_TRUST_SCORE = [
    *_members("uint256", "agentId"), *_members("string", "status"),
    *_members("int256", "scoreMilli", "lowMilli", "highMilli"), *_members("uint256", "confidenceMicro", "tier"),
    *_members("bool", "guarded"), *_members("uint256", "blockNumber"), *_members("bytes32", "blockHash"),
    *_members("uint256", "blockTime", "holdsBlock", "holdsTime", "verifiedTo", "epoch"), *_members("string", "scorer"),
    *_members("bytes32", "params", "tags", "roots", "links", "sources", "credentials", "fileScales", "evidence"),
    *_members("uint256", "issuedAt", "expiresAt"),
]


# A key whose statements are accepted: an element of keys of /.well-known/repute-keys.json. from and to are RFC 3339
# times between which it signed; None is unbounded.
TrustedKey = TypedDict("TrustedKey", {"address": str, "from": "str | None", "to": "str | None"})


class StatementError(Exception):
    """A statement that must not be relied on; fault says why."""

    def __init__(self, fault: Fault, message: str) -> None:
        self.fault: Fault = fault
        super().__init__(message)


def verify_statement(
    signed: Mapping[str, Any], *, agent: str, keys: Iterable[TrustedKey], max_age: float, now: float | None = None,
) -> dict[str, Any]:
    """Verifies a signed score and returns its message.

    signed is the member signed of GET /agents/{id}/reputation?signed=1, agent is
    eip155:{chainId}:{registry}:{tokenId} of the one you deal with, and max_age are the seconds since the block as of
    which the score held, two epochs or more. Raises StatementError. Compare message["roots"] with the roots that you
    accept: a server chooses its own.
    """
    now = time.time() if now is None else now
    domain, message = signed["domain"], signed["message"]
    if (domain["name"], domain["version"]) != ("repute trust score", _VERSION):
        raise StatementError("version", f"the statement is {domain['name']!r} {domain['version']}, not {_VERSION}")
    signer = _signer_of(signed)
    issued, holds = message["issuedAt"], message["holdsTime"]
    if not any(is_same_address(key["address"], signer) and _within(key, issued) for key in keys):
        raise StatementError("signer", f"{signer} is not a key that is trusted at the time of issue")
    about = f"eip155:{domain['chainId']}:{domain['verifyingContract']}:{message['agentId']}"
    if about.lower() != agent.lower():
        raise StatementError("agent", f"the statement is about {about}, not about {agent}")
    if issued > now + _SKEW or holds > issued + _SKEW or message["blockTime"] > holds:
        raise StatementError("early", "the statement is of the future")
    if now >= message["expiresAt"] + _SKEW:
        raise StatementError("expired", "the statement has expired")
    if message["verifiedTo"] < message["holdsBlock"]:
        raise StatementError("unverified", "the statement's blocks are not verified")
    if now - holds > max_age:
        raise StatementError("old", f"the score held {now - holds:.0f} s ago, {max_age:.0f} s are accepted")
    return dict(message)


def _within(key: TrustedKey, issued: float) -> bool:
    """Reports whether a key was in use at a time."""
    begins, ends = key["from"], key["to"]
    return (begins is None or _seconds(begins) <= issued) and (ends is None or issued < _seconds(ends))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _signer_of(signed: Mapping[str, Any]) -> str:
    """Returns who signed, which must be who the statement says."""
    try:
        signature = bytes.fromhex(signed["signature"].removeprefix("0x"))
        if len(signature) != 65 or int.from_bytes(signature[32:64], "big") > _HALF_ORDER or signature[64] not in (27, 28):
            raise ValueError("the signature is malformed")
        message = {**signed["message"], "agentId": int(signed["message"]["agentId"])}
        typed = {"types": {"EIP712Domain": _DOMAIN, "TrustScore": _TRUST_SCORE}, "primaryType": "TrustScore",
                 "domain": signed["domain"], "message": message}
        found = Account.recover_message(encode_typed_data(full_message=typed), signature=signature)
        if not is_same_address(found, signed["signer"]):
            raise ValueError(f"it is by {found}, not by {signed['signer']}")
    except Exception as error:  # foreign input fails in many ways, and each of them is a refusal
        raise StatementError("signature", f"the signature is not of this statement: {error}") from error
    return str(found)
