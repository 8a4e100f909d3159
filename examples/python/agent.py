#!/usr/bin/env python3
"""An agent for the orchestrator: it fetches the page that a task names and counts its words.

Run it with `python3 agent.py 8099`, allow its address (`orchestrator: {agent_hosts: ["127.0.0.1:8099"]}`), and register it:
POST /v1/agents {"slug": "word-counter", "url": "http://127.0.0.1:8099"}. docs/reference/agents.md describes the protocol.
"""
import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROTOCOL = "repute-agent/1"
MANIFEST = {
    "schema": "https://openfi.dev/schemas/agent/v1",
    "name": "Word counter", "slug": "word-counter", "version": "0.1.0",
    "description": "Counts the words of a page.",
    "capabilities": ["data-lookup"],
    "tools": [],
    "computeConstraints": {"maxSteps": 10, "maxToolCalls": 50, "maxRuntimeMs": 300000, "maxOnchainWrites": 0},
    "taskCategories": ["general"],
    "safety": {"requiresDryRun": False, "requiresVerification": True, "maxOnchainWritesPerRun": 0},
}


def info():
    return {"protocol": PROTOCOL, "slug": MANIFEST["slug"], "displayName": MANIFEST["name"], "version": MANIFEST["version"],
            "identityMode": "erc8004-required", "dryRun": False, "manifest": MANIFEST}


def can_handle(q):
    task = q["task"].get("input")
    if isinstance(task, dict) and "url" in task:
        return {"result": True}
    return {"result": False, "reason": 'the input is no {"url": "https://…"}'}


def plan(q):
    return {"result": {"steps": [{"stepId": "count", "description": "fetch and count", "agentSlug": MANIFEST["slug"], "dependsOn": []}]}}


def execute(q):
    if not q["outcomes"]:  # nothing was fetched yet: the runtime does it for us, counted and guarded
        return {"calls": [{"kind": "http", "http": {"method": "GET", "url": q["task"]["input"]["url"]}}]}
    outcome = q["outcomes"][0]
    if "error" in outcome and outcome["error"]:
        return {"error": "the page cannot be fetched: " + outcome["error"]}
    page = base64.b64decode(outcome["result"]["body"] or "").decode("utf-8", "replace")
    return {"result": {"words": len(page.split())}}


def verify(q):
    steps = {s["stepId"]: s for s in q["execution"]["steps"]}
    counted = steps.get("count", {}).get("result") or {}
    return {"result": {"checks": [{"name": "a number of words", "passed": isinstance(counted.get("words"), int)}], "score": 1.0}}


def summarize(q):
    words = q["execution"]["steps"][0]["result"]["words"]
    return {"result": {"text": f"The page has {words} words.", "keyActions": ["fetched the page"], "receipts": [], "warnings": []}}


METHODS = {"can-handle": can_handle, "plan": plan, "execute": execute, "verify": verify, "summarize": summarize}


class Agent(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200, info()) if self.path == "/info" else self.answer(404, {"error": "not found"})

    def do_POST(self):
        method = METHODS.get(self.path.lstrip("/"))
        if method is None:
            return self.answer(404, {"error": "not found"})
        question = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if question.get("protocol") != PROTOCOL:
            return self.answer(400, {"error": "unknown protocol"})
        self.answer(200, method(question))


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8099
    try:
        ThreadingHTTPServer(("127.0.0.1", port), Agent).serve_forever()
    except KeyboardInterrupt:
        pass
