"""Calls every tool of a server as calls.json says, with the official client of PyPI, which holds
each answer against the tool's outputSchema: client.py URL TOKEN"""

import asyncio
import json
import pathlib
import sys

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

kept = {}


def filled(value):
    """A value with what earlier answers gave in the place of $names."""
    if isinstance(value, str) and value.startswith("$"):
        return kept[value[1:]]
    if isinstance(value, list):
        return [filled(v) for v in value]
    if isinstance(value, dict):
        return {k: filled(v) for k, v in value.items()}
    return value


def at(value, path):
    for key in path.split("."):
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


async def answer(session, call):
    """The answer of a call, once it is what is waited for."""
    for _ in range(240):
        result = await session.call_tool(call["tool"], filled(call["arguments"]))
        if result.is_error:
            raise SystemExit(f"{call['tool']}: {result.content[0].text}")
        body = result.structured_content
        if all(at(body, path) in values for path, values in call.get("until", {}).items()):
            return body
        await asyncio.sleep(0.25)
    raise SystemExit(f"{call['tool']}: waited in vain for {call['until']}")


async def main(url, token):
    calls = json.loads(pathlib.Path(__file__).with_name("calls.json").read_text())
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with streamable_http_client(url, http_client=http) as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            names = [t.name for t in (await session.list_tools()).tools]
            for call in calls:
                body = await answer(session, call)
                kept.update({name: at(body, path) for name, path in call.get("keep", {}).items()})
            missing = set(names) - {call["tool"] for call in calls}
            if missing:
                raise SystemExit(f"no answer of {', '.join(sorted(missing))}")
            print(f"PyPI client: {len(names)} tools answer as their schemas say")


asyncio.run(main(*sys.argv[1:]))
