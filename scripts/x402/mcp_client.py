"""Calls a tool of an agent by the MCP client of PyPI's x402, which pays. Usage: mcp_client.py URL TOOL,
with the payer's key in KEY. Prints one JSON object."""
import asyncio
import json
import os
import sys

from eth_account import Account
from x402 import x402Client
from x402.mcp import create_x402_mcp_client
from x402.mechanisms.evm.exact.register import register_exact_evm_client


async def main(url, tool):
    """Call the tool."""
    payer = register_exact_evm_client(x402Client(), Account.from_key(os.environ["KEY"]))
    payer.set_spend_controls(False)  # which allow well-known tokens alone
    async with create_x402_mcp_client(payer, url) as agent:
        answer = await agent.call_tool(tool, {"text": "from outside"})
        settled = answer.payment_response
        print(json.dumps({"status": 500 if answer.is_error else 200, "body": answer.content[0].text,
                          "transaction": settled.transaction if settled else ""}))


asyncio.run(main(*sys.argv[1:]))
