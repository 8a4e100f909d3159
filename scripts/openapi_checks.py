"""A check for schemathesis: a request that fits the document is not refused for its form."""

import schemathesis

# Fields whose value depends on what is stored or on other parameters, which no document can say.
DEPENDS = {
    "agent": "of the chain beside it",
    "agentId": "an agent that is registered, or a right checksum",
    "above": "not below the other bound of a webhook",
    "after": "of the run and block of an export",
    "at": "a block that is indexed; not beside signed or roots",
    "below": "not above the other bound of a webhook",
    "block": "a block that is indexed",
    "chainId": "the id may name another chain",
    "cid": "a multibase of a multihash",
    "cursor": "one that was given out, with the same filters",
    "expires": "a time that is still to come",
    "from": "a time before to, within a bounded number of buckets",
    "gates": "those that the engine has",
    "host": "a name or an address of a host",
    "ids": "two to five different agents",
    "input": "what the agent that gets it asks for",
    "signature and deadline": "each with the other",
    "proof.expires": "within an hour",
    "runId": "one of the agent",
    "taskId": "one of the agent",
    "id": "a token id alone needs one chain; it fits 256 bits",
    "kinds": "kinds of changes",
    "label": "a line of printable text",
    "period": "only beside by=growth",
    "q": "a word of two letters or digits",
    "roots": "addresses, or a set of the chain",
    "run": "one of the chain",
    "since": "a cursor that was given out",
    "sources": "only beside roots",
    "tag": "not beside measure=score",
    "to": "a time after from",
    "tokenId": "it fits 256 bits",
    "url": "a URL of a public host, or of one of allow_hosts",
    "variables": "a JSON object as text",
}

# Reasons that no pattern can tell: the server says them in these words.
BEYOND_PATTERNS = (
    "unknown parameter",  # no document can forbid others
    "address checksum is wrong",
    "the zero address",
    "is another than that of the path",
    "differs from the header",
    "has no key on chain",
    "the agent does not answer there",
    "changes nothing",
    "refused: ",  # by the policy, or because the chain would
    "is no gate that an agent can be asked to pass",
    "is too large",  # 2^256 and more, of as many digits
    "does not fit 256 bits",
    "allows no model to be asked",  # 0 dollars, in any of its forms
    "is no address of an agent",  # a URL whose host or path no URL can have
)


def is_whole_float(message):
    """Reports whether a whole number was written as 148.0, which JSON Schema takes for an integer."""
    return message.startswith("is a number ") and message.endswith(".0")


def is_unfit(case):
    """Reports whether a value does not fit the document after all: it ends in a newline, which
    Python's $ admits and others do not, or is a null that another answer had in its place."""
    values = list((case.path_parameters or {}).values()) + list((case.query or {}).values())
    return any(v in (None, "null") or str(v).endswith("\n") for v in values)


@schemathesis.check
def valid_request_is_taken(ctx, response, case):
    if response.status_code != 400 or not case.meta.generation.mode.is_positive or is_unfit(case):
        return
    problem = response.json()
    for wrong in problem.get("errors", [{"field": "", "message": problem.get("detail", "")}]):
        message = wrong["message"]
        if not DEPENDS.keys() & {wrong["field"], wrong["field"].partition(".")[0]} and not is_whole_float(message) and not any(text in message for text in BEYOND_PATTERNS):
            raise AssertionError(f"a valid request is refused: {problem.get('detail')}")
