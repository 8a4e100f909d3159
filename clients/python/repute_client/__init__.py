"""Client of repute: reputation of ERC-8004 agents, statements verified offline, and a guard for x402 payments.

The shapes of all answers are typed dictionaries in repute_client.openapi, made from the server's OpenAPI document.
"""

from .client import Client, GraphQLError, ReputeError
from .guard import Refusal, async_trust_guard, trust_guard
from .statement import StatementError, TrustedKey, verify_statement

__all__ = [
    "Client", "GraphQLError", "Refusal", "ReputeError", "StatementError", "TrustedKey", "async_trust_guard",
    "trust_guard", "verify_statement",
]
