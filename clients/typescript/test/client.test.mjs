// What the client does with answers of a server that this test scripts. That it fits the product's server is tested
// by scripts/contract/clients.mjs, against the program.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { createClient, items, ReputeError, StatementError, trustGuard, verifyStatement } from "../dist/index.js";

// serve answers with what answer returns for a request: status, headers and body. It records the requests.
const serve = async (t, answer) => {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    const { status = 200, headers = {}, body: text = "{}" } = answer(asked.at(-1), asked.length);
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(text);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const slept = [];
  const client = createClient({
    baseUrl: `http://127.0.0.1:${server.address().port}`, token: "secret", sleep: async (pause) => void slept.push(pause),
  });
  return { asked, slept, client };
};
const json = (body, status = 200, headers = {}) => ({ status, headers, body: JSON.stringify(body) });
const problem = { type: "about:blank", title: "Bad Request", status: 400, code: "invalid", detail: "tier: out of range", hint: "0 to 4", errors: [] };

test("a busy server is asked again after its Retry-After", async (t) => {
  const { client, asked, slept } = await serve(t, (_, n) => n < 3 ? json({}, 429, { "Retry-After": "2" }) : json({ chains: [] }));
  await client.rest.GET("/status");
  assert.equal(asked.length, 3);
  assert.deepEqual(slept, [2000, 2000]);
});

test("tries end", async (t) => {
  const { client, asked, slept } = await serve(t, () => json({ ...problem, status: 503 }, 503));
  await assert.rejects(client.rest.GET("/status"), (error) => error instanceof ReputeError && error.status === 503);
  assert.equal(asked.length, 4);
  assert.deepEqual(slept, [500, 1000, 2000]);
});

test("a change whose answer may be lost is sent once, unless it has an idempotency key", async (t) => {
  const { client, asked } = await serve(t, () => json({ ...problem, status: 502 }, 502));
  const body = { goal: "x" };
  await assert.rejects(client.rest.POST("/v1/tasks", { body }), ReputeError);
  assert.equal(asked.length, 1);
  await assert.rejects(client.rest.POST("/v1/tasks", { body, params: { header: { "Idempotency-Key": "one" } } }), ReputeError);
  assert.equal(asked.length, 5);
  assert.equal(asked[4].body, asked[0].body);
});

test("a Retry-After that is too long ends the tries", async (t) => {
  const { client, asked } = await serve(t, () => json({ ...problem, status: 429 }, 429, { "Retry-After": "3600" }));
  await assert.rejects(client.rest.GET("/status"), ReputeError);
  assert.equal(asked.length, 1);
});

test("errors have the problem, its hint, and no token", async (t) => {
  const { client } = await serve(t, () => json(problem, 400));
  await assert.rejects(client.rest.GET("/status"), (error) => {
    assert.equal(error.message, "tier: out of range (0 to 4)");
    assert.equal(error.problem.code, "invalid");
    return !JSON.stringify(error).includes("secret");
  });
});

test("an answer that is no problem document is an error with its status", async (t) => {
  const { client } = await serve(t, () => ({ status: 404, body: "<html>" }));
  await assert.rejects(client.rest.GET("/status"), (error) => error.status === 404 && error.problem === undefined);
});

test("items reads page after page", async (t) => {
  const pages = { first: { items: [1, 2], next: "b" }, b: { items: [], next: "c" }, c: { items: [3], next: null } };
  const { client, asked } = await serve(t, ({ url }) => json(pages[new URL(url, "http://x").searchParams.get("cursor") ?? "first"]));
  const read = [];
  for await (const item of items(client, "/agents", { query: { minScore: 50 } })) read.push(item);
  assert.deepEqual(read, [1, 2, 3]);
  assert.ok(asked.every(({ url, headers }) => url.includes("minScore=50") && headers.authorization === "Bearer secret"));
});

test("GraphQL errors are thrown", async (t) => {
  const { client } = await serve(t, ({ body }) => JSON.parse(body).query.includes("bad")
    ? json({ errors: [{ message: "Cannot query field" }] }) : json({ data: { chains: [] } }));
  assert.deepEqual(await client.graphql("{chains{id}}"), { chains: [] });
  await assert.rejects(client.graphql("{bad}"), /Cannot query field/);
});

// index answers as an index in which one account has some agents.
const index = (agents, decide) => ({ url }) => {
  const at = new URL(url, "http://x");
  if (at.pathname === "/agents") {
    return json({ items: at.searchParams.get("wallet") === payTo ? agents.map((id) => ({ id })) : [], next: null });
  }
  return decide(decodeURIComponent(at.pathname.split("/")[2]));
};
const payTo = "0x00000000000000000000000000000000000000aa";
const allowed = json({ decision: "allow", reasons: [] });
const denied = json({ decision: "deny", reasons: [{ id: "trust.minReputation", text: "low is 3, at least 20 is demanded" }] });
const payment = (network = "eip155:8453", to = payTo) => ({ selectedRequirements: { payTo: to, network } });

test("the guard pays whom the index trusts", async (t) => {
  const { client, asked } = await serve(t, index(["eip155:8453:0x01:1"], () => allowed));
  assert.equal(await trustGuard(client, { minScore: 20 })(payment()), undefined);
  assert.ok(asked[0].url.includes("chainId=8453"));
  assert.ok(asked[1].url.includes("minScore=20"));
});

for (const [name, answer, paid, reason] of [
  ["one of the payee's agents is not trusted", index(["a", "b"], (id) => id === "a" ? allowed : denied), payment(), /agent b: low is 3/],
  ["no agent has the account", index([], () => allowed), payment(), /no agent/],
  ["the account has too many agents", index(Array.from({ length: 51 }, (_, i) => `${i}`), () => allowed), payment(), /more than 50/],
  ["the network has no CAIP-2 name", index(["a"], () => allowed), payment("base"), /CAIP-2/],
  ["the index is away", () => json({ ...problem, status: 503 }, 503), payment(), /cannot be read/],
  ["the answer is HTML", () => ({ body: "<html>" }), payment(), /cannot be read/],
  ["the answer has no decision", index(["a"], () => json({})), payment(), /cannot be read|no decision/],
]) {
  test(`the guard refuses when ${name}`, async (t) => {
    const { client } = await serve(t, answer);
    const refused = await trustGuard(client, { minScore: 20 })(paid);
    assert.equal(refused?.abort, true);
    assert.match(refused.reason, reason);
  });
}

test("the guard lets an unknown payee pass only when asked to", async (t) => {
  const { client } = await serve(t, index([], () => allowed));
  assert.equal(await trustGuard(client, { minScore: 20, allowUnknown: true })(payment()), undefined);
});

const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
const hash = `0x${"ab".repeat(32)}`;
const statement = async (changes = {}) => {
  const message = {
    agentId: "7", status: "rated", scoreMilli: 52000, lowMilli: -1, highMilli: 60000, confidenceMicro: 900000, tier: 3, guarded: false,
    blockNumber: 10, blockHash: hash, blockTime: 900, holdsBlock: 12, holdsTime: 1000, verifiedTo: 12, epoch: 2, scorer: "1",
    params: hash, tags: hash, roots: hash, links: hash, sources: hash, credentials: hash, fileScales: hash, evidence: hash,
    issuedAt: 1010, expiresAt: 4610, ...changes,
  };
  const domain = { name: "repute trust score", version: "6", chainId: 8453, verifyingContract: "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432" };
  const text = (name, type) => ({ name, type });
  const types = { TrustScore: [
    text("agentId", "uint256"), text("status", "string"), text("scoreMilli", "int256"), text("lowMilli", "int256"), text("highMilli", "int256"),
    text("confidenceMicro", "uint256"), text("tier", "uint256"), text("guarded", "bool"), text("blockNumber", "uint256"), text("blockHash", "bytes32"),
    text("blockTime", "uint256"), text("holdsBlock", "uint256"), text("holdsTime", "uint256"), text("verifiedTo", "uint256"), text("epoch", "uint256"),
    text("scorer", "string"), ...["params", "tags", "roots", "links", "sources", "credentials", "fileScales", "evidence"].map((n) => text(n, "bytes32")),
    text("issuedAt", "uint256"), text("expiresAt", "uint256"),
  ] };
  const signature = await account.signTypedData({ domain, types, primaryType: "TrustScore", message });
  return { domain, message, signer: account.address, signature };
};
const agent = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7";
const expected = (more = {}) => ({ agent, keys: [{ address: account.address, from: null, to: null }], maxAge: 3600, now: 1100, ...more });

test("a statement is verified offline", async () => {
  assert.equal((await verifyStatement(await statement(), expected())).scoreMilli, 52000);
});

for (const [fault, changed, more] of [
  ["signature", (s) => ({ ...s, message: { ...s.message, scoreMilli: 90000 } })],
  ["signature", (s) => ({ ...s, signer: payTo })],
  ["signature", (s) => ({ ...s, signature: s.signature.slice(0, 20) })],
  ["signature", (s) => ({ ...s, message: {} })],
  ["version", (s) => ({ ...s, domain: { ...s.domain, version: "5" } })],
  ["signer", undefined, { keys: [{ address: payTo, from: null, to: null }] }],
  ["signer", undefined, { keys: [{ address: account.address, from: null, to: "1970-01-01T00:16:50Z" }] }],
  ["agent", undefined, { agent: agent.replace(/7$/, "8") }],
  ["expired", undefined, { now: 4671 }],
  ["early", undefined, { now: 900 }],
  ["old", undefined, { now: 4600, maxAge: 3599 }],
]) {
  test(`a statement is refused: ${fault} ${JSON.stringify(more) ?? changed}`, async () => {
    const signed = changed === undefined ? await statement() : changed(await statement());
    await assert.rejects(verifyStatement(signed, expected(more)), (error) => error instanceof StatementError && error.fault === fault);
  });
}

test("a statement of blocks that are not verified is refused", async () => {
  await assert.rejects(verifyStatement(await statement({ verifiedTo: 11 }), expected()), { fault: "unverified" });
});
