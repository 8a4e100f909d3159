"""Pays a server with the client of PyPI. Usage: client.py URL, with the payer's key in KEY."""
import json
import os
import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact.register import register_exact_evm_client

client = register_exact_evm_client(x402ClientSync(), Account.from_key(os.environ["KEY"]))
client.set_spend_controls(False)  # which allow well-known tokens alone
answer = x402_requests(client).post(sys.argv[1], json="from PyPI", timeout=60)
print(json.dumps({"status": answer.status_code, "body": answer.text}))
