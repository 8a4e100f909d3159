// Follows the change feed of a server with clients by others, and compares what each of them gets with the pages of
// GET /changes: graphql-ws, eventsource and standardwebhooks. node push.mjs URL TOKEN
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { EventSource } from "eventsource";
import { createClient } from "graphql-ws";
import { Webhook } from "standardwebhooks";
import WebSocket from "ws";

const [base, token] = process.argv.slice(2);
const wanted = 60; // changes that each client follows, across several pages

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// within fails when a promise takes too long.
const within = (what, promise, seconds = 40) =>
  Promise.race([promise, pause(seconds * 1000).then(() => Promise.reject(new Error(`${what}: not within ${seconds} s`)))]);

async function ask(method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

// pages reads the feed from its beginning.
async function pages(n) {
  const list = [];
  for (let next = ""; list.length < n; ) {
    const page = await ask("GET", `/changes?limit=25${next && "&since=" + next}`);
    list.push(...page.changes);
    if (page.next === next) await pause(200); // the feed is shorter as yet
    next = page.next;
  }
  return list.slice(0, n);
}

// stream follows the feed as server-sent events, and loses its first connection.
async function stream(since, expected) {
  const got = [];
  let connections = 0;
  await within("server-sent events", new Promise((done, failed) => {
    const source = new EventSource(`${base}/changes?since=${since}`, {
      fetch: async (url, init) => {
        const first = ++connections === 1;
        const { status, headers, body } = await fetch(url, init);
        let left = 8000; // bytes, in the middle of an event, until the first connection is lost
        const wire = new TransformStream({
          transform(chunk, controller) {
            if (!first) return controller.enqueue(chunk);
            if (left > 0) controller.enqueue(chunk.subarray(0, left));
            if (left > 0 && left <= chunk.length) setTimeout(() => controller.error(new Error("cut")), 300);
            left -= chunk.length;
          },
        });
        body.pipeTo(wire.writable).catch(() => {}); // the error is the reader's
        return { url, redirected: false, status, headers, body: wire.readable };
      },
    });
    for (const kind of new Set(expected.map((c) => c.kind))) {
      source.addEventListener(kind, (event) => {
        if (got.length >= expected.length) return;
        const change = JSON.parse(event.data);
        if (change.cursor !== event.lastEventId) failed(new Error(`id ${event.lastEventId} of ${event.data}`));
        if (got.length > 0 && got.at(-1).cursor === change.cursor) return;
        got.push(change);
        if (got.length === expected.length) (source.close(), done());
      });
    }
  }));
  assert.deepEqual(got, expected);
  assert.ok(connections > 1, "eventsource did not connect again");
}

// subscriptions follows the feed by GraphQL.
async function subscriptions(since, expected) {
  const client = createClient({ url: base.replace("http", "ws") + "/graphql", webSocketImpl: WebSocket, retryAttempts: 0 });
  const changes = client.iterate({
    query: `subscription ($since: String) {
      changes(filter: {since: $since}) { cursor kind chainId agent block logIndex data retracts at }
    }`,
    variables: { since },
  });
  const got = [];
  for await (const { data, errors } of changes) {
    assert.equal(errors, undefined);
    got.push(data.changes);
    if (got.length === expected.length) break;
  }
  assert.deepEqual(got, expected);

  const agent = expected.find((c) => c.agent).agent;
  const updates = client.iterate({
    query: `subscription ($id: ID!) { agent(id: $id) { change { cursor } agent { id owner } } }`,
    variables: { id: agent },
  });
  const { value: first } = await updates.next();
  assert.equal(first.data.agent.change, null);
  assert.ok(first.data.agent.agent.owner);
  await updates.return();

  const query = client.iterate({ query: "{ status { version } }" });
  assert.ok((await query.next()).value.data.status.version);

  const old = client.iterate({ query: `subscription { changes(filter: {since: "1-1"}) { cursor } }` });
  const { value: refused } = await old.next();
  assert.equal(refused.errors[0].extensions.code, "GONE");
  assert.match(refused.errors[0].message, /oldest change kept is \d+-\d+/);
  await client.dispose();

  const foreign = new WebSocket(base.replace("http", "ws") + "/graphql", "graphql-transport-ws", { origin: "https://evil.example" });
  const status = await new Promise((done) => foreign.on("unexpected-response", (_, answer) => done(answer.statusCode)).on("error", () => {}));
  assert.equal(status, 403);
}

// webhooks receives the feed, refuses some messages, and verifies each signature.
async function webhooks(since, expected) {
  const got = [];
  let secrets = [];
  let requests = 0;
  let finished, failed;
  const all = new Promise((done, not) => ([finished, failed] = [done, not]));
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    try {
      const messages = secrets.map((secret) => new Webhook(secret).verify(body, request.headers));
      if (messages[0].type !== "webhook.test") {
        if (++requests === 3) return response.writeHead(503, { "Retry-After": "1" }).end();
        if (got.length < expected.length && got.at(-1)?.cursor !== messages[0].data.cursor) {
          assert.equal(request.headers["webhook-id"], messages[0].data.cursor);
          assert.equal(messages[0].type, messages[0].data.kind);
          got.push(messages[0].data);
        }
        if (got.length === expected.length) finished();
      }
      response.writeHead(204).end();
    } catch (error) {
      failed(error);
      response.writeHead(400).end();
    }
  });
  await new Promise((done) => server.listen(0, "localhost", done));
  const url = `http://localhost:${server.address().port}/hook`;
  await assert.rejects(ask("POST", "/v1/webhooks", { url: "http://127.0.0.2/hook" }), /400/);
  await assert.rejects(ask("POST", "/v1/webhooks", { url, since: "1-1" }), /410/);
  const hook = await ask("POST", "/v1/webhooks", { url, since });
  assert.match(hook.secret, /^whsec_/);
  secrets = [hook.secret];
  await within("webhooks", all, 60);
  assert.deepEqual(got, expected);
  const { secret } = await ask("POST", `/v1/webhooks/${hook.id}/rotate`);
  secrets = [hook.secret, secret];
  const test = await ask("POST", `/v1/webhooks/${hook.id}/test`);
  assert.equal(test.status, 204);
  const shown = JSON.stringify(await ask("GET", "/v1/webhooks"));
  assert.ok(shown.includes(hook.id) && !shown.includes("whsec_"));
  await ask("DELETE", `/v1/webhooks/${hook.id}`);
  const anonymous = await fetch(base + "/v1/webhooks");
  assert.equal(anonymous.status, 401);
  server.closeAllConnections();
  server.close();
}

const list = await within("pages", pages(wanted + 1));
const [{ cursor: since }, ...expected] = list;
await stream(since, expected);
console.log(`eventsource: ${expected.length} changes, with a lost connection`);
await within("subscriptions", subscriptions(since, expected));
console.log(`graphql-ws: ${expected.length} changes, an agent, a cursor that is too old, a foreign origin`);
await webhooks(since, expected);
console.log(`standardwebhooks: ${expected.length} messages in order, verified; one was refused first`);
process.exit(0);
