"""Reads through the unmodified SDK of agent0 in Python what devnet.mjs wrote and printed; its output is the input here."""

import json
import sys

from agent0_sdk import SDK

story = json.load(sys.stdin)
chain = story["chainId"]
one, two, three = story["one"], story["two"], story["three"]
unique, owner, client, other = story["unique"], story["owner"], story["client"], story["other"]
sdk = SDK(
    chainId=chain,
    rpcUrl=story["rpcUrl"],
    registryOverrides={chain: {"IDENTITY": story["identity"], "REPUTATION": story["reputation"]}},
    subgraphOverrides={chain: story["subgraph"]},
)


def same(what, got, want):
    """Fails when an answer is not the expected one."""
    if got != want:
        raise SystemExit(f"{what}: {got}, not {want}")


def found(**filters):
    """Returns the ids of the agents that a search finds."""
    return sorted(a.agentId for a in sdk.searchAgents(chains=[chain], **filters))


agent = sdk.getAgent(one)
same("name", agent.name, f"{unique} 1")
same("owners", [o.lower() for o in agent.owners], [owner])
same("endpoint", agent.mcp, f"https://{unique}-1.example/mcp")
for filters, want in [
    ({"name": unique}, [one, two, three]),
    ({"name": unique, "active": False}, [three]),
    ({"name": unique, "x402support": True}, [one]),
    ({"name": unique.replace("-", "_")}, []),
    ({"agentIds": [one, three]}, [one, three]),
    ({"owners": [owner]}, [one, two]),
    ({"owners": [client]}, [three]),
    ({"name": unique, "description": "100%_ of"}, [one, two, three]),
    ({"name": unique, "hasMCP": True}, [one, two, three]),
    ({"name": unique, "hasA2A": True}, []),
    ({"name": unique, "hasRegistrationFile": True}, [one, two, three]),
    ({"mcpContains": f"{unique}-2"}, [two]),
    ({"name": unique, "supportedTrust": ["tee-attestation"]}, [two]),
    ({"name": unique, "hasMetadataKey": "model"}, [one, two, three]),
    ({"name": unique, "metadataValue": {"key": "model", "value": "m3"}}, [three]),
    ({"name": unique, "feedback": {"minCount": 2}}, [one]),
    ({"name": unique, "feedback": {"hasNoFeedback": True}}, [three]),
    ({"name": unique, "feedback": {"fromReviewers": [client]}}, [one]),
    ({"name": unique, "feedback": {"tag": "quality"}}, [one, two]),
    ({"name": unique, "feedback": {"hasResponse": True, "includeRevoked": True}}, [one]),
]:
    same(filters, found(**filters), sorted(want))
for filters, want in [
    ({"agentId": one}, [50, 97.25]),
    ({"agentId": one, "include_revoked": True}, [-2.5, 50, 97.25]),
    ({"agentId": one, "tags": ["speed"]}, [50]),
    ({"agentId": one, "reviewers": [client]}, [97.25]),
    ({"agentId": one, "minValue": 60}, [97.25]),
    ({"agents": [one, two], "tags": ["quality"]}, [12.3456, 97.25]),
    ({"reviewers": [other]}, [12.3456, 50]),
]:
    same(filters, sorted(f.value for f in sdk.searchFeedback(**filters)), want)
summary = sdk.getReputationSummary(one)
same("count", summary["count"], 2)
print("the SDK in Python reads the same")
