// Uses the TypeScript client against a demo: lists, a signed score, GraphQL, and the guard in a client of x402.
// Usage: node demo.mjs CLIENT URL, CLIENT being the built module.
import assert from "node:assert/strict";
import { x402Client } from "@x402/fetch";
import { ExactEvmScheme } from "@x402/evm";
import { privateKeyToAccount } from "viem/accounts";

const [module, baseUrl] = process.argv.slice(2);
const { createClient, items, ReputeError, trustGuard, verifyStatement } = await import(module);
const client = createClient({ baseUrl });

const agents = [];
for await (const agent of items(client, "/agents", { query: { limit: 2 } })) agents.push(agent);
const { data: one } = await client.rest.GET("/agents", { params: { query: { limit: 200 } } });
// The demo may register an agent between the two.
assert.deepEqual(agents.map(({ id }) => id), one.items.slice(0, agents.length).map(({ id }) => id), "pages of two and one page have the same agents");

const trusted = agents.find(({ status, low }) => status === "rated" && low > 20);
const distrusted = agents.find(({ status, low, owner }) => (status !== "rated" || low < 20) && owner !== trusted?.owner);
assert.ok(trusted && distrusted, "the demo has an agent that is trusted and one that is not");

const { data: { signed } } = await client.rest.GET("/agents/{id}/reputation", { params: { path: { id: trusted.id }, query: { signed: true } } });
const { data: { keys } } = await client.rest.GET("/.well-known/repute-keys.json", {});
const message = await verifyStatement(signed, { agent: trusted.id, keys, maxAge: 86400 });
assert.equal(message.agentId, trusted.tokenId);
await assert.rejects(verifyStatement(signed, { agent: distrusted.id, keys, maxAge: 86400 }), { fault: "agent" });

await assert.rejects(client.rest.GET("/agents/{id}", { params: { path: { id: "31337:999999" } } }),
  (error) => error instanceof ReputeError && error.status === 404 && error.problem.code === "not_found");

const { agent } = await client.graphql("query($id: ID!) { agent(id: $id) { score } }", { id: trusted.id });
assert.equal(agent.score, trusted.score);

// The guard in a client that would pay: only the payee differs.
const paying = new x402Client().setSpendControls(false)
  .register("eip155:*", new ExactEvmScheme(privateKeyToAccount(`0x${"11".repeat(32)}`)))
  .onBeforePaymentCreation(trustGuard(client, { minScore: 20 }));
const pay = (payTo) => paying.createPaymentPayload({
  x402Version: 2,
  resource: { url: "https://shop.example/x", description: "", mimeType: "application/json" },
  accepts: [{
    scheme: "exact", network: "eip155:31337", asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", amount: "1000", payTo,
    maxTimeoutSeconds: 60, extra: { name: "USDC", version: "2" },
  }],
});
const account = ({ wallet, owner }) => wallet ?? owner;
const payment = await pay(account(trusted));
assert.equal(payment.payload.authorization.to.toLowerCase(), account(trusted).toLowerCase());
await assert.rejects(pay(account(distrusted)), /agent eip155:31337/);
await assert.rejects(pay("0x00000000000000000000000000000000000000aa"), /no agent/);
console.log(`clients: TypeScript read ${agents.length} agents, verified a statement and refused two payees`);
