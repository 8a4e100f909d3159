// An agent for the orchestrator: it fetches the page that a task names and counts its words. It needs nothing but
// Node 20. README.md says how it is built and run; docs/reference/agents.md describes the protocol.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const PROTOCOL = "repute-agent/1";

const manifest = {
  schema: "https://openfi.dev/schemas/agent/v1",
  name: "Word counter",
  slug: "word-counter-ts",
  version: "0.1.0",
  description: "Counts the words of a page.",
  capabilities: ["data-lookup"],
  tools: [],
  computeConstraints: { maxSteps: 10, maxToolCalls: 50, maxRuntimeMs: 300000, maxOnchainWrites: 0 },
  taskCategories: ["general"],
  safety: { requiresDryRun: false, requiresVerification: true, maxOnchainWritesPerRun: 0 },
};

const info = {
  protocol: PROTOCOL,
  slug: manifest.slug,
  displayName: manifest.name,
  version: manifest.version,
  identityMode: "erc8004-required",
  dryRun: false,
  manifest,
};

// HTTPResponse is the result of a call of kind http; body is base64.
interface HTTPResponse {
  status: number;
  body: string | null;
}

// Outcome is what the orchestrator reports about one call: a result or an error.
interface Outcome {
  result?: HTTPResponse;
  error?: string;
}

interface StepResult {
  stepId: string;
  result?: { words?: unknown };
}

// Question is the part of a request's body that this agent reads.
interface Question {
  protocol: string;
  task: { input?: unknown };
  outcomes?: Outcome[] | null;
  execution?: { steps?: StepResult[] | null };
}

// Answer has one of result, error and calls.
interface Answer {
  result?: unknown;
  reason?: string;
  error?: string;
  calls?: { kind: "http"; http: { method: string; url: string } }[];
}

function pageURL(q: Question): string | undefined {
  const input = q.task.input;
  if (typeof input !== "object" || input === null || !("url" in input)) return undefined;
  return typeof input.url === "string" ? input.url : undefined;
}

function wordsCounted(q: Question): unknown {
  return q.execution?.steps?.find((step) => step.stepId === "count")?.result?.words;
}

function canHandle(q: Question): Answer {
  if (pageURL(q) !== undefined) return { result: true };
  return { result: false, reason: 'the input is no {"url": "https://…"}' };
}

function plan(): Answer {
  const step = { stepId: "count", description: "fetch and count", agentSlug: manifest.slug, dependsOn: [] };
  return { result: { steps: [step] } };
}

// execute asks the orchestrator to fetch the page. The orchestrator repeats the question with the outcome.
function execute(q: Question): Answer {
  const url = pageURL(q);
  if (url === undefined) return { error: "the input has no url" };
  const outcome = q.outcomes?.[0];
  if (!outcome) return { calls: [{ kind: "http", http: { method: "GET", url } }] };
  if (outcome.error) return { error: `the page cannot be fetched: ${outcome.error}` };
  const page = Buffer.from(outcome.result?.body ?? "", "base64").toString("utf8");
  return { result: { words: page.split(/\s+/).filter(Boolean).length } };
}

function verify(q: Question): Answer {
  const passed = Number.isInteger(wordsCounted(q));
  return { result: { checks: [{ name: "a number of words", passed }], score: passed ? 1 : 0 } };
}

function summarize(q: Question): Answer {
  const text = `The page has ${wordsCounted(q)} words.`;
  return { result: { text, keyActions: ["fetched the page"], receipts: [], warnings: [] } };
}

const methods = new Map<string, (q: Question) => Answer>([
  ["/can-handle", canHandle],
  ["/plan", plan],
  ["/execute", execute],
  ["/verify", verify],
  ["/summarize", summarize],
]);

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === "GET" && request.url === "/info") return send(response, 200, info);
  const method = methods.get(request.url ?? "");
  if (request.method !== "POST" || !method) return send(response, 404, { error: "not found" });
  const question = JSON.parse(await bodyOf(request)) as Question;
  if (question.protocol !== PROTOCOL) return send(response, 400, { error: "unknown protocol" });
  send(response, 200, method(question));
}

createServer((request, response) => {
  serve(request, response).catch((error: unknown) => send(response, 400, { error: String(error) }));
}).listen(Number(process.argv[2] ?? 8099), "127.0.0.1");
