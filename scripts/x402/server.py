"""Serves a paid route with the server of PyPI. Usage: server.py FACILITATOR NETWORK PAYEE TOKEN AMOUNT.

Prints its URL as the first line.
"""
import sys

from flask import Flask, jsonify
from werkzeug.serving import make_server
from x402 import x402ResourceServerSync
from x402.http import HTTPFacilitatorClientSync
from x402.http.middleware.flask import payment_middleware
from x402.mechanisms.evm.exact.register import register_exact_evm_server

facilitator, network, payee, token, amount = sys.argv[1:]
app = Flask(__name__)


@app.get("/paid")
def paid():
    return jsonify({"paid": True})


server = register_exact_evm_server(x402ResourceServerSync(HTTPFacilitatorClientSync({"url": facilitator})), network)
price = {"asset": token, "amount": amount, "extra": {"name": "USDC", "version": "2"}}
payment_middleware(app, {"GET /paid": {"accepts": {"scheme": "exact", "network": network, "payTo": payee,
                                                   "price": price}}}, server)
server = make_server("127.0.0.1", 0, app, threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
