// Calls every tool of a server as calls.json says, with the official client of npm, which holds
// each answer against the tool's outputSchema: node client.mjs URL TOKEN
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url)));
const kept = {};

// filled is a value with what earlier answers gave in the place of $names.
function filled(value) {
  if (typeof value === "string" && value.startsWith("$")) return kept[value.slice(1)];
  if (Array.isArray(value)) return value.map(filled);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v)]));
  return value;
}
const at = (value, path) => path.split(".").reduce((v, key) => v?.[key], value);

const client = new Client({ name: "repute-test", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
const { tools } = await client.listTools();
const missing = new Set(tools.map((t) => t.name));

for (const call of calls) {
  const wanted = Object.entries(call.until ?? {});
  for (let left = 240; ; left--) {
    const answer = await client.callTool({ name: call.tool, arguments: filled(call.arguments) });
    if (answer.isError) throw new Error(`${call.tool}: ${answer.content[0].text}`);
    const body = answer.structuredContent;
    if (wanted.every(([path, values]) => values.includes(at(body, path)))) {
      for (const [name, path] of Object.entries(call.keep ?? {})) kept[name] = at(body, path);
      break;
    }
    if (left === 0) throw new Error(`${call.tool}: waited in vain for ${JSON.stringify(call.until)}`);
    await new Promise((done) => setTimeout(done, 250));
  }
  missing.delete(call.tool);
}
if (missing.size > 0) throw new Error(`no answer of ${[...missing].join(", ")}`);
console.log(`npm client: ${tools.length} tools answer as their schemas say`);
await client.close();
