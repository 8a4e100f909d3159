"""Serves the facilitator of PyPI. Usage: facilitator.py RPC_URL NETWORK, with its key in KEY.

Prints its URL as the first line.
"""
import os
import sys

from flask import Flask, jsonify, request
from werkzeug.serving import make_server
from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact.register import register_exact_evm_facilitator
from x402.mechanisms.evm.signers import FacilitatorWeb3Signer
from x402.schemas import parse_payment_payload, parse_payment_requirements

rpc, network = sys.argv[1:]
signer = FacilitatorWeb3Signer(os.environ["KEY"], rpc)
facilitator = register_exact_evm_facilitator(x402FacilitatorSync(), signer, network)
app = Flask(__name__)


def read():
    body = request.get_json()
    payload = parse_payment_payload(body["paymentPayload"])
    return payload, parse_payment_requirements(payload.x402_version, body["paymentRequirements"])


@app.post("/verify")
def verify():
    return jsonify(facilitator.verify(*read()).model_dump(by_alias=True, exclude_none=True))


@app.post("/settle")
def settle():
    return jsonify(facilitator.settle(*read()).model_dump(by_alias=True, exclude_none=True))


@app.get("/supported")
def supported():
    return jsonify(facilitator.get_supported().model_dump(by_alias=True, exclude_none=True))


server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
