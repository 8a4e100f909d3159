// Looks at every kind of page of a dashboard with a browser: in both themes and two widths with axe, by keyboard,
// without JavaScript, and while rows arrive. node pages.mjs URL CHROMIUM [DIRECTORY for screenshots]
// With a token of all roles in WEB_TOKEN it gives tasks that wait for a person, and approves, rejects, retries and cancels
// them by clicks alone. With the URL of a devnet in WEB_RPC it reorganizes the chain while pages are open.
// The light theme is looked at in the wide window and the dark one in the narrow, because no rule of the style depends on
// both; WEB_EVERY=1 looks at each theme in each width.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { AxeBuilder } from "@axe-core/playwright";

const [base, executablePath, pictures] = process.argv.slice(2);
const themes = ["light", "dark"];
const widths = [1280, 390];
const perKind = 1; // pages of one kind that are looked at

// kindOf is the path of a page without what it is about.
function kindOf(path) {
  const url = new URL(path, base);
  const parts = url.pathname.split("/");
  if (parts.length > 3) parts[3] = "*";
  return parts.join("/") + [...url.searchParams.keys()].sort().map((k) => "?" + k).join("");
}

// graphs are the pages of the neighborhoods of a reviewer, a validator and a domain that have some.
async function graphs(context) {
  const query = `{ agents(sort: feedback, first: 50) { nodes { feedback(first: 1) { nodes { client } } domainProofs { domain } } }
    validators(first: 1) { nodes { address } } }`;
  const { data } = await (await context.request.post(base + "/graphql", { data: { query } })).json();
  const agents = data.agents.nodes;
  const found = { reviewer: agents.find((a) => a.feedback.nodes.length)?.feedback.nodes[0].client,
    validator: data.validators.nodes[0]?.address, domain: agents.find((a) => a.domainProofs.length)?.domainProofs[0].domain };
  return Object.entries(found).filter(([, id]) => id).map(([kind, id]) => `/ui/${kind}/${id}/graph`);
}

// neighborhoods checks that each graph is drawn, and that without JavaScript its table says the same.
async function neighborhoods(page, still, pages) {
  const kinds = new Set();
  for (const path of pages.filter((p) => p.endsWith("/graph"))) {
    await page.goto(base + path);
    await page.waitForSelector(".graph canvas");
    const edges = JSON.parse(await page.getAttribute("[data-graph]", "data-graph")).edges.length;
    await still.goto(base + path);
    const rows = await still.locator("#edges ~ .scroll tbody tr:visible").count();
    assert.ok(edges > 0 && rows >= edges, `${path}: ${edges} edges, ${rows} rows`);
    assert.equal(await still.locator(".graph:visible").count(), 0, `${path}: an empty graph is shown without JavaScript`);
    kinds.add(path.split("/")[2]);
  }
  console.log(`graphs of ${[...kinds].sort().join(", ")}`);
  assert.ok(kinds.has("reviewer") && kinds.has("validator") && kinds.has("domain"), "a kind of graph was not looked at");
}

// agentRuns looks at the runs on the page of an agent that did some: they take a token and lead to their pages.
async function agentRuns(context, page, token, troubles) {
  const headers = { Authorization: "Bearer " + token };
  const { agents } = await (await context.request.get(base + "/v1/agents")).json();
  for (const { agentId } of agents.filter((a) => a.agentId)) {
    const { runs } = await (await context.request.get(`${base}/v1/runs?limit=1&agentId=${agentId}`, { headers })).json();
    if (!runs.length) continue;
    const path = `/ui/agent/${agentId}/work`;
    await page.goto(base + path);
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(base + path);
    await judge(page, "/ui/agent/{id}/work", "without a token", troubles);
    if (await page.locator("#token").count()) {
      assert.match(await page.textContent("#work"), /A token is needed/);
      await useToken(page, token);
    }
    await page.waitForSelector("#work tbody tr");
    await judge(page, "/ui/agent/{id}/work", "with runs", troubles);
    await page.click("#work tbody th a");
    await page.waitForURL(/\/ui\/runs\//);
    await page.waitForSelector("#what");
    console.log(`runs of agent ${agentId} are on its page`);
    return;
  }
  throw new Error("no agent on the chain did a run");
}

// follow opens pages from the first one on, and returns some of each kind.
async function follow(context) {
  const page = await context.newPage();
  const found = [];
  const seen = new Set();
  const kinds = new Map();
  const queue = ["/", "/docs", "/graphiql", "/ui/compare", "/ui/nothing", ...(await graphs(context))];
  while (queue.length > 0 && found.length < 60) {
    const path = queue.shift();
    const kind = kindOf(path);
    if (seen.has(path) || (kinds.get(kind) ?? 0) >= perKind || kind.split("?").length > 2) continue;
    seen.add(path);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const answer = await page.goto(base + path);
    assert.equal(answer.status(), path === "/ui/nothing" ? 404 : 200, path);
    found.push(path);
    const links = await page.$$eval("a[href^='/']", (list) => list.map((a) => a.getAttribute("href")));
    queue.push(...links.filter((l) => l === "/" || l.startsWith("/ui/")));
    const agents = links.filter((l) => /^\/ui\/agent\/[^/]+$/.test(l)).map((l) => l.split("/")[3]);
    if (new Set(agents).size > 2) queue.push("/ui/compare?id=" + [...new Set(agents)].slice(0, 3).join("+"));
  }
  await page.close();
  return found;
}

// watch fails the test for what a page must not do: errors in scripts, blocked content, requests to other hosts.
function watch(page, troubles) {
  page.on("pageerror", (err) => troubles.push(`${page.url()}: ${err.message}`));
  page.on("console", (m) => {
    // a page that does not exist is asked for on purpose, and so is an answer with a wrong token
    if (m.type() === "error" && !/status of 40[14]/.test(m.text())) troubles.push(`${page.url()}: ${m.text()}`);
  });
  page.on("request", (r) => {
    if (!r.url().startsWith(base) && !r.url().startsWith("data:")) troubles.push(`${page.url()} asks for ${r.url()}`);
  });
}

// judge looks at a page with axe, and for a scroll bar across the whole page.
async function judge(page, path, what, troubles) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  for (const v of violations) {
    troubles.push(`${path} ${what}: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
  }
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) {
    const first = await page.evaluate(() => [...document.querySelectorAll("main *")].find((e) =>
      e.getBoundingClientRect().right > document.documentElement.clientWidth && !e.closest(".scroll, .hidden"))?.outerHTML.slice(0, 160));
    troubles.push(`${path} ${what}: ${over} px wider than the window, from ${first}`);
  }
}

// keyboard goes through a page with Tab: the first stop skips to the content, every stop shows that it has the focus.
async function keyboard(page, path, troubles) {
  await page.goto(base + path);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip", path);
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => location.hash), "#main", path);
  for (let i = 0; i < 15; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      return { body: e === document.body, tag: e.outerHTML.slice(0, 100), outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
    });
    if (at.body) break;
    if (!at.outline) troubles.push(`${path}: no focus is shown on ${at.tag}`);
  }
}

// search types words and finds agents, by keyboard alone.
async function search(page) {
  await page.goto(base + "/");
  await page.focus("#find");
  await page.keyboard.type("agent");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/ui\/explore\?q=agent/);
  assert.match(await page.textContent("#found"), /agent/);
  // the form of the page replaces its results alone, and the URL is the state
  await page.selectOption("#sort", "feedback");
  await page.press("#q", "Enter");
  await page.waitForURL(/sort=feedback/);
  assert.ok(await page.isVisible("#results"));
}

// live waits until the first page says that it follows the index, and that it asks for its rows again on a change.
async function live(page) {
  await page.goto(base + "/");
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  const asked = page.waitForRequest(/\/ui\/latest$/);
  await page.evaluate(() => document.body.dispatchEvent(new CustomEvent("indexchange")));
  assert.equal((await (await asked).response()).status(), 200);
  await page.waitForFunction(() => document.querySelectorAll("#latest tr").length > 0);
}

// copies checks that a copy button puts the whole address into the clipboard.
async function copies(context, agent) {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  await page.goto(base + agent);
  const button = page.locator("[data-copy^='0x']").first();
  await button.click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await button.getAttribute("data-copy"));
  await page.close();
}

// useToken types a token into a page, and waits until the page uses it.
async function useToken(page, token) {
  await page.fill("#token-text", token);
  await page.click("#token button[type=submit]");
  await page.waitForFunction(() => /This tab uses the token/.test(document.getElementById("token-state").textContent));
}

// check pastes a file with mistakes and finds them at its lines.
async function check(page, troubles) {
  await page.goto(base + "/ui/check");
  await page.fill("#pasted", '{\n  "name": 7,\n  "services": "<script>alert(1)</script>"\n}');
  await page.click(".check button[type=submit]");
  await page.waitForSelector(".lines tr.at");
  assert.match(await page.textContent(".lines"), /a number instead of a string/);
  await judge(page, "/ui/check", "with a file", troubles);
}

// operate looks at the pages for operators: they show nothing without a token, and everything after one is typed.
async function operate(page, token, troubles) {
  for (const path of ["/ui/operations", "/ui/runtime"]) {
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(base + path);
    assert.match(await page.textContent("#work"), /A token is needed/, path);
    await useToken(page, token);
    await page.waitForFunction(() => !/A token is needed/.test(document.getElementById("work").textContent));
    await judge(page, path, "with a token", troubles);
    await page.reload();
    await page.waitForFunction(() => !/A token is needed/.test(document.getElementById("work").textContent));
  }
}

// approve gives a task that pays and waits for a person, and answers by clicks: the page follows the run to its
// transaction by itself, and new tabs do not have its token.
async function approve(context, token, troubles) {
  const task = await giveTask(context, token, "Pay again if it answers <b>well</b>");
  const page = await context.newPage();
  watch(page, troubles);
  await page.goto(base + "/ui/runs/" + task.runId);
  await page.waitForSelector("form[data-act$='/approval']", { timeout: 60000 });
  const state = () => page.textContent("form[data-act$='/approval'] [role=status]");
  await page.click("button[name=approved][value=true]");
  assert.match(await state(), /Type a token first/);
  await useToken(page, "not-a-token-of-this-server");
  await page.click("button[name=approved][value=true]");
  await page.waitForFunction(() => /not known/.test(document.querySelector("form[data-act$='/approval'] [role=status]")?.textContent));
  await useToken(page, token);
  await judge(page, "/ui/runs/{id}", "that waits", troubles);
  // the Enter key in the reason decides nothing, and an answer that is no JSON is reported with its status
  const reason = "form[data-act$='/approval'] input[name=reason]";
  await page.fill(reason, "looks like a scam");
  await page.press(reason, "Enter");
  assert.match(await state(), /Choose Approve or Reject/);
  await page.fill(reason, "");
  await page.route("**/approval", (r) => r.fulfill({ status: 404, contentType: "text/html", body: "<h1>Nothing here</h1>" }));
  await page.click("button[name=approved][value=true]");
  await page.waitForFunction(() => /status 404/.test(document.querySelector("form[data-act$='/approval'] [role=status]")?.textContent));
  await page.unroute("**/approval");
  let clicks = 0;
  for (const end = Date.now() + 120000; Date.now() < end; ) {
    if (/completed|failed|cancelled/.test(await page.textContent("#what ~ .sentence"))) break;
    const button = page.locator("button[name=approved][value=true]:enabled").first();
    if (await button.count()) {
      await button.click();
      clicks++;
      await page.waitForTimeout(4000);
    }
    await page.waitForTimeout(500);
  }
  const text = await page.textContent("#work");
  console.log(`the run ended after ${clicks} clicks: ${(await page.textContent("#what ~ .sentence")).trim()}`);
  assert.match(text, /approved by/);
  const hash = await page.locator("#transactions ~ .scroll .address [title^='0x']").first().getAttribute("title");
  assert.match(hash, /^0x[0-9a-f]{64}$/, "the run sent no transaction");
  console.log(`its transaction is ${hash}`);
  await judge(page, "/ui/runs/{id}", "that ended", troubles);
  assert.deepEqual(await context.cookies(), [], "a cookie was set");
  const other = await context.newPage();
  await other.goto(base + "/ui/tasks");
  assert.equal(await other.evaluate(() => sessionStorage.getItem("repute-token")), null, "another tab has the token");
  await other.close();
  // what the token showed is gone even where the server does not answer with a page
  await page.route("**/ui/runs/*", (r) => r.fulfill({ contentType: "text/plain", body: "away" }));
  await page.click("#token-forget");
  assert.equal((await page.textContent("#work")).trim(), "");
  assert.equal(await page.evaluate(() => sessionStorage.getItem("repute-token")), null);
  await page.close();
}

// askRuntime finds the demo's seller, whose runtime has an address of its own, and asks it by clicks alone.
async function askRuntime(page, troubles) {
  await page.goto(base + "/ui/explore?q=Demo+Seller");
  await page.click("#results tbody th a");
  await page.click(".tabs a[href$='/work']");
  await page.click("a[href^='/ui/runtime?ask=']");
  await page.click("form[action='/ui/runtime'] button[type=submit]");
  await page.waitForSelector("#remote");
  assert.match(await page.textContent("main"), /healthy[\s\S]*forecast/);
  await judge(page, "/ui/runtime", "with an answer", troubles);
}

// questions answers what newcomers ask, by clicks and typing alone, from the first page on. The documentation lists the same
// clicks: docs/reference/api.md.
async function questions(page, token) {
  // Which translator may I trust with 5 USDC?
  await page.goto(base + "/");
  await page.fill("#find", "translation");
  await page.press("#find", "Enter");
  await page.waitForSelector("#results tbody th a");
  await page.fill("#maxPrice", "5");
  await page.click(".search button[type=submit]");
  await page.waitForURL(/maxPrice=5/);
  await page.click(".chosen a[href*='q=translation']"); // no price is known in the demo: the filter is removed again
  await page.waitForURL((url) => !url.search.includes("maxPrice"));
  await page.click("#results tbody th a");
  assert.ok((await page.textContent("#trust ~ .sentence")).length > 20);
  assert.ok(await page.locator(".gates li").count() > 2, "no gates");
  // Who rated this agent, and why do they weigh?
  await page.goto(base + "/");
  await page.click("nav a[href='/ui/leaders']");
  await page.click("main tbody th a, main tbody td a");
  await page.click(".tabs a[href$='/score']");
  await page.click("#made ~ .scroll a[href^='/ui/reviewer/']");
  assert.match(await page.textContent(".sentence"), /weigh/i);
  // Is this chain's index complete?
  await page.goto(base + "/");
  await page.click("#chains ~ .scroll tbody th a");
  assert.match(await page.textContent("#state ~ .sentence"), /The index is/);
  assert.ok(await page.locator("#kinds ~ .scroll tbody tr").count() > 3, "no kinds of events");
  // Why was this task refused?
  await page.goto(base + "/");
  await page.click("nav a[href='/ui/tasks']");
  await useToken(page, token);
  await page.waitForSelector("#work tbody");
  await page.selectOption("#state", "rejected");
  await page.click(".search button[type=submit]");
  await page.click("#work tbody th a");
  await page.waitForSelector("#what ~ h3");
  assert.match(await page.textContent("#what ~ h3"), /Why it was refused/);
  assert.match(await page.textContent("#what ~ .reasons"), /trust\.[\s\S]*has[\s\S]*needs/);
  // What have I spent, and what is left?
  await page.click(".tabs a[href='/ui/treasury']");
  await page.waitForSelector("#caps ~ .scroll tbody tr");
  assert.match(await page.textContent("#caps ~ .scroll tbody tr"), /coins|wei/);
  assert.match(await page.textContent("#paid ~ *"), /US dollars|No agent paid/);
}

// giveTask gives a task that waits for a person, as one that the demo gave before, and returns it.
async function giveTask(context, token, goal) {
  const headers = { Authorization: "Bearer " + token };
  const { tasks } = await (await context.request.get(base + "/v1/tasks?status=completed", { headers })).json();
  const paid = tasks.find((t) => t.input?.pay);
  const given = await context.request.post(base + "/v1/tasks", {
    headers, data: { goal, tags: ["ask"], coordinatorSlug: paid.coordinatorSlug, input: paid.input },
  });
  assert.equal(given.status(), 201, await given.text());
  return given.json();
}

// openRun opens the page of a run with the token and waits until the run waits for a person.
async function openRun(context, run, token, troubles) {
  const page = await context.newPage();
  watch(page, troubles);
  await page.goto(base + "/ui/runs/" + run);
  await useToken(page, token);
  await page.waitForSelector("form[data-act$='/approval']", { timeout: 60000 });
  return page;
}

// sentence waits until the first sentence of a run's page has a pattern. The page follows the run by itself.
async function sentence(page, pattern) {
  await page.waitForFunction((p) => new RegExp(p).test(document.querySelector("#what ~ .sentence")?.textContent), pattern,
    { timeout: 60000 });
}

// reject takes one task through its states by clicks alone: rejected with a reason, tried again from its page, which makes it
// wait again, and canceled with a reason.
async function reject(context, token, troubles) {
  const task = await giveTask(context, token, "Pay a stranger");
  const page = await openRun(context, task.runId, token, troubles);
  await page.fill("form[data-act$='/approval'] input[name=reason]", "nobody <i>knows</i> it");
  await page.click("button[name=approved][value=false]");
  await sentence(page, "failed");
  const refused = await page.textContent("#work");
  assert.match(refused, /rejected by/);
  assert.match(refused, /nobody <i>knows<\/i> it/);
  assert.match(refused, /Why it was refused/);
  assert.equal(await page.locator("form[data-act$='/approval'], #act-cancel").count(), 0, "an ended run can be answered");
  await judge(page, "/ui/runs/{id}", "that was rejected", troubles);
  await page.click("#act-retry button[type=submit]");
  await page.waitForSelector("form[data-act$='/approval']", { timeout: 60000 });
  assert.match(await page.textContent("#what ~ .facts"), /Attempt\s*2/i);
  assert.equal(await page.locator("[data-decisions] article").count(), 1, "the decision is shown twice");
  await page.fill("#cancel-reason", "changed my mind");
  await page.click("#act-cancel button[type=submit]");
  await sentence(page, "cancelled");
  assert.match(await page.textContent("#work"), /changed my mind/);
  assert.equal(await page.locator("form[data-act$='/approval']").count(), 0, "a canceled run can be answered");
  await page.waitForSelector("#act-retry");
  await page.goto(base + "/ui/tasks?status=cancelled");
  await page.waitForFunction((run) => document.querySelector(`a[href='/ui/runs/${run}']`), task.runId);
  await page.close();
}

// finalDepth is how many blocks below the head the devnet's final block is: those are never undone.
const finalDepth = 16;

// young waits until an agent is registered so close to the head that it can be undone, and returns it.
async function young(context) {
  const query = "{ agents(sort: updated, first: 12) { nodes { shortId registered { block } } } }";
  for (const end = Date.now() + 180000; Date.now() < end; ) {
    const { data } = await (await context.request.post(base + "/graphql", { data: { query } })).json();
    const head = Number(await chainCall("eth_blockNumber")); // the index may lag behind
    const found = data.agents.nodes.find((a) => head - a.registered.block <= finalDepth / 2);
    if (found) return found;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error("no agent was registered within three minutes");
}

// chainCall asks the devnet.
async function chainCall(method, ...params) {
  const answer = await fetch(process.env.WEB_RPC, { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  const { result, error } = await answer.json();
  assert.equal(error, undefined, `${method}: ${error?.message}`);
  return result;
}

// rowsOf are the agents of the newest changes, as the page shows them.
const rowsOf = (page) => page.$$eval("#latest th a", (list) => list.map((a) => a.getAttribute("href")));

// registrationOf is the transaction that registered the agent with an id; undefined for none.
async function registrationOf(context, id) {
  const query = "query($ids: [ID!]!) { agentsById(ids: $ids) { registered { txHash } } }";
  const { data } = await (await context.request.post(base + "/graphql", { data: { query, variables: { ids: [id] } } })).json();
  return data.agentsById[0]?.registered.txHash;
}

// reorganize replaces the newest blocks while the first page and a run that waits are open. The registration of an agent is
// undone, the rows become those of the index without a reload, and nothing is shown twice. The next registration gets the
// same token: an agent with this id may be there again, registered by another transaction.
async function reorganize(context, token, troubles) {
  const task = await giveTask(context, token, "Wait while the chain reorganizes");
  const run = await openRun(context, task.runId, token, troubles);
  const page = await context.newPage();
  watch(page, troubles);
  await page.goto(base + "/");
  await page.bringToFront(); // a hidden page does not follow
  await page.waitForFunction(() => document.getElementById("live").textContent === "live");
  let agent, before, depth = finalDepth;
  for (let tries = 0; tries < 5 && depth >= finalDepth; tries++) { // a slow page shows some only when they are final
    agent = await young(context);
    await page.waitForSelector(`#latest a[href='/ui/agent/${agent.shortId}']`);
    before = await registrationOf(context, agent.shortId);
    depth = Number(await chainCall("eth_blockNumber")) - agent.registered.block + 2;
  }
  assert.ok(before, `agent ${agent.shortId} is not found`);
  await chainCall("devnet_forget", depth, depth + 2); // fails where the block became final
  const undone = async () => (await registrationOf(context, agent.shortId)) !== before;
  for (const end = Date.now() + 60000; Date.now() < end && !(await undone()); ) await page.waitForTimeout(300);
  assert.ok(await undone(), `agent ${agent.shortId} is still there`);
  console.log(`agent ${agent.shortId} and its row were undone with ${depth} blocks`);
  let shown, stored;
  for (const end = Date.now() + 60000; Date.now() < end; ) {
    shown = await rowsOf(page);
    const html = await (await context.request.get(base + "/ui/latest")).text();
    stored = [...html.matchAll(/<a href="(\/ui\/agent\/[^"]+)"/g)].map((m) => m[1]);
    assert.equal(new Set(shown).size, shown.length, "an agent has two rows");
    if (shown.join() === stored.join()) break;
    await page.waitForTimeout(300);
  }
  assert.deepEqual(shown, stored, "the rows are not those of the index");
  const again = run.waitForResponse(/\/ui\/runs\//, { timeout: 60000 });
  await run.bringToFront();
  await again;
  assert.equal(await run.locator("[data-decisions] article").count(), 1, "the decision is shown twice");
  assert.match(await run.textContent("#what ~ .sentence"), /waits for a person/);
  const phases = await run.$$eval("#phases ~ .scroll tbody tr", (rows) => rows.map((r) => r.cells[0].textContent + r.cells[1].textContent));
  assert.equal(new Set(phases).size, phases.length, "a phase is shown twice");
  await run.click("#act-cancel button[type=submit]");
  await sentence(run, "cancelled");
  await run.close();
  await page.close();
}

// paints prints how soon the browser shows something of each page, for a person: other programs slow it down.
async function paints(context, pages) {
  const page = await context.newPage();
  const times = [];
  for (const path of pages) {
    await page.goto(base + path);
    const at = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime, null,
      { timeout: 2000 }).then((handle) => handle.jsonValue(), () => undefined); // a window that paints late is left out
    if (at) times.push({ path, at });
  }
  if (times.length === 0) {
    console.log("first paint: no page painted within two seconds");
    await page.close();
    return;
  }
  times.sort((a, b) => a.at - b.at);
  const last = times.at(-1);
  console.log(`first paint of ${times.length} pages: median ${times[times.length >> 1].at.toFixed(0)} ms, slowest ${last.at.toFixed(0)} ms (${last.path})`);
  await page.close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--use-gl=swiftshader", "--enable-unsafe-swiftshader"] });
const troubles = [];
try {
  const first = await browser.newContext();
  const pages = await follow(first);
  const agent = pages.find((p) => /^\/ui\/agent\/[^/]+$/.test(p));
  assert.ok(agent, "no page of an agent was found");
  console.log(`${pages.length} pages of ${new Set(pages.map(kindOf)).size} kinds`);
  await first.close();

  for (const colorScheme of themes) {
    for (const width of widths) {
      if (!process.env.WEB_EVERY && (colorScheme === "light") !== (width === 1280)) continue;
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
      // The page of interfaces draws thousands of elements from these, on which axe takes minutes.
      await context.route("**/openapi.json", (r) => r.fulfill({ status: 404 }));
      const page = await context.newPage();
      watch(page, troubles);
      for (const path of pages) {
        await page.goto(base + path);
        if (await page.locator("[data-chart]").count()) await page.waitForTimeout(100);
        await judge(page, path, `${colorScheme} ${width} px`, troubles);
      }
      await context.close();
    }
  }

  const plain = await browser.newContext({ javaScriptEnabled: false });
  const still = await plain.newPage();
  for (const path of pages) {
    await still.goto(base + path);
    assert.ok((await still.textContent("main")).trim().length > 20, `${path} is empty without JavaScript`);
    assert.equal(await still.locator("button.copy:visible").count(), 0, path);
  }
  await still.goto(base + "/ui/explore");
  await still.fill("#q", "agent");
  await still.click(".search button[type=submit]");
  assert.match(still.url(), /q=agent/);

  const context = await browser.newContext();
  const page = await context.newPage();
  watch(page, troubles);
  await neighborhoods(page, still, pages);
  await plain.close();
  for (const path of pages.slice(0, 8)) await keyboard(page, path, troubles);
  await search(page);
  await live(page);
  await page.goto(base + agent);
  await page.waitForSelector(".chart .uplot, .chart:not(:empty)");
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".top nav:visible, .tabs:visible, .copy:visible").count(), 0, "navigation is printed");
  await page.emulateMedia({ media: "screen" });
  await copies(context, agent);
  await check(page, troubles);
  await paints(context, pages);
  if (process.env.WEB_TOKEN) {
    await operate(page, process.env.WEB_TOKEN, troubles);
    await askRuntime(page, troubles);
    await agentRuns(context, page, process.env.WEB_TOKEN, troubles);
    await questions(page, process.env.WEB_TOKEN);
    await approve(context, process.env.WEB_TOKEN, troubles);
    await reject(context, process.env.WEB_TOKEN, troubles);
    if (process.env.WEB_RPC) await reorganize(context, process.env.WEB_TOKEN, troubles);
  }
  await context.close();

  if (pictures) {
    await mkdir(pictures, { recursive: true });
    const shots = await browser.newContext({ colorScheme: "light", viewport: { width: 1100, height: 720 } });
    const dark = await browser.newContext({ colorScheme: "dark", viewport: { width: 1100, height: 720 } });
    const small = await browser.newContext({ colorScheme: "light", viewport: { width: 390, height: 780 } });
    const graph = pages.find((p) => p.endsWith("/graph"));
    for (const [name, place, path] of [["overview", shots, "/"], ["explore", shots, "/ui/explore?sort=score"], ["agent", shots, agent],
      ["score", dark, agent + "/score"], ["trust", shots, "/ui/trust"], ["agent-small", small, agent], ["graph", dark, graph]]) {
      if (!path) continue;
      const shot = await place.newPage();
      await shot.goto(base + path);
      await shot.waitForTimeout(1500);
      await shot.screenshot({ path: join(pictures, name + ".png") });
      await shot.close();
    }
  }
} finally {
  await browser.close();
}
for (const t of [...new Set(troubles)]) console.error(t);
if (troubles.length > 0) process.exit(1);
console.log("every page: no violation of axe, no error, no request to another host");
