// A minimal runtime of the Agent Runtime Specification 1.0: one capability that is paid by x402, answers that are signed
// by EIP-712, and health. It needs Node 20 and viem. README.md says how it is built and run.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { getAddress, keccak256, stringToBytes, zeroHash, type Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const need = (name: string): string => {
  const value = process.env[name];
  if (value === undefined || value === "") throw new Error(`${name} is not set`);
  return value;
};
const account = privateKeyToAccount(need("AGENT_PRIVATE_KEY") as Hex);
const agentId = BigInt(need("AGENT_ID"));
const registry = getAddress(need("AGENT_REGISTRY_CONTRACT"));
const facilitator = need("FACILITATOR_URL").replace(/\/$/, "");
const chainId = Number(process.env.CHAIN_ID ?? "84532");
const version = "1.0.0";
const started = Date.now();
const maxBody = 1 << 20;

// What a call costs: an amount in minor units of a token, and the same for clients of the specification's headers.
const price = { amount: "0.001", currency: "USDC" };
const requirement = {
  scheme: "exact",
  network: `eip155:${chainId}`,
  amount: "1000",
  asset: process.env.PAYMENT_TOKEN ?? "0x036CbD53842c5426634e7929541eC2318f3dCF7e", // USDC on Base Sepolia
  payTo: process.env.AGENT_PAYMENT_ADDRESS ?? account.address,
  maxTimeoutSeconds: 60,
  extra: { name: process.env.PAYMENT_TOKEN_NAME ?? "USDC", version: "2" },
};

// The one capability. check returns what is wrong with an input, or nothing.
const capability = {
  name: "word-count",
  check: (input: unknown): string | undefined => {
    if (typeof input !== "object" || input === null || Array.isArray(input)) return "the input must be an object";
    const { text, ...rest } = input as { text?: unknown };
    if (typeof text !== "string") return "/text: must be a string";
    return Object.keys(rest).length > 0 ? "only the member text is allowed" : undefined;
  },
  run: (input: { text: string }) => ({ words: input.text.split(/\s+/).filter((word) => word !== "").length }),
};

// canonical is JSON as RFC 8785 writes it: sorted members, numbers as JavaScript prints them.
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
};
const hash = (value: unknown): Hex => keccak256(stringToBytes(canonical(value)));

// Answer is what is sent: every answer is signed, also a refusal.
interface Answer {
  status: number;
  body: unknown;
  taskHash?: Hex;
  headers?: Record<string, string>;
}

const send = async (response: ServerResponse, { status, body, taskHash = zeroHash, headers = {} }: Answer) => {
  const message = {
    agentId,
    taskHash,
    resultHash: hash(body),
    timestamp: BigInt(Math.floor(Date.now() / 1000)),
    metadata: JSON.stringify({ status }),
  };
  const signature = await account.signTypedData({
    domain: { name: "TrustlessAgentFramework", version: "1", chainId, verifyingContract: registry },
    types: {
      TaskResponse: [
        { name: "agentId", type: "uint256" },
        { name: "taskHash", type: "bytes32" },
        { name: "resultHash", type: "bytes32" },
        { name: "timestamp", type: "uint256" },
        { name: "metadata", type: "string" },
      ],
    },
    primaryType: "TaskResponse",
    message,
  });
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(text),
    "X-Agent-ID": String(agentId),
    "X-Agent-Version": version,
    "X-Agent-Signature": signature,
    "X-Agent-Task-Hash": taskHash,
    "X-Agent-Result-Hash": message.resultHash,
    "X-Agent-Timestamp": String(message.timestamp),
    "X-Agent-Metadata": message.metadata,
    "X-Agent-Registry": `eip155:${chainId}:${registry}`,
    ...headers,
  });
  response.end(text);
};

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");

// demand is the answer to a request without a payment, or with one that is refused.
const demand = (url: string, taskHash: Hex, error?: string): Answer => ({
  status: 402,
  taskHash,
  body: { error: "payment_required", message: error ?? `${capability.name} costs ${price.amount} ${price.currency}` },
  headers: {
    "PAYMENT-REQUIRED": base64({ x402Version: 2, error, resource: { url }, accepts: [requirement] }),
    "X-Payment-Address": requirement.payTo,
    "X-Payment-Amount": price.amount,
    "X-Payment-Currency": price.currency,
    "X-Payment-Chain": requirement.network,
    "X-Payment-TaskHash": taskHash,
  },
});

// ask posts a payment to the facilitator, which verifies or settles it.
const ask = async (step: "verify" | "settle", payment: unknown): Promise<Record<string, unknown>> => {
  const answer = await fetch(`${facilitator}/${step}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ x402Version: 2, paymentPayload: payment, paymentRequirements: requirement }),
    signal: AbortSignal.timeout(30_000),
  });
  return (await answer.json()) as Record<string, unknown>;
};

// work verifies the payment, runs the capability and settles: without a settlement the result is not given.
const work = async (url: string, input: { text: string }, taskHash: Hex, payment: unknown): Promise<Answer> => {
  const verified = await ask("verify", payment);
  if (verified.isValid !== true) return demand(url, taskHash, String(verified.invalidReason));
  const body = capability.run(input);
  const settled = await ask("settle", payment);
  const headers = { "PAYMENT-RESPONSE": base64(settled) };
  if (settled.success === true) return { status: 200, body, taskHash, headers };
  const refused = demand(url, taskHash, String(settled.errorReason));
  return { ...refused, headers: { ...refused.headers, ...headers } };
};

// paid holds the answer to each payment, so that a repeated request is neither charged nor run again. A process that
// restarts forgets it; the token's contract still refuses to charge an authorization twice.
const paid = new Map<string, { taskHash: Hex; answer: Promise<Answer> }>();
const maxPaid = 10_000;

const once = (url: string, input: { text: string }, taskHash: Hex, payment: object): Promise<Answer> | Answer => {
  const key = hash(payment);
  const known = paid.get(key);
  if (known !== undefined) {
    if (known.taskHash === taskHash) return known.answer;
    return { status: 409, taskHash, body: { error: "conflict", message: "this payment was for another request" } };
  }
  const answer = work(url, input, taskHash, payment);
  paid.set(key, { taskHash, answer });
  if (paid.size > maxPaid) paid.delete(paid.keys().next().value as string);
  answer.then((done) => done.status !== 200 && paid.delete(key), () => paid.delete(key));
  return answer;
};

// read is the body of a request, or undefined when it is too long; the rest is then discarded, so that the client
// reads the answer.
const read = async (request: IncomingMessage): Promise<string | undefined> => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    if ((size += part.length) <= maxBody) parts.push(part);
  }
  return size > maxBody ? undefined : Buffer.concat(parts).toString("utf8");
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const invalid = (message: string): Answer => ({ status: 400, body: { error: "invalid", message } });

// call answers a request for the capability: its input is checked before a payment is asked for.
const call = async (request: IncomingMessage): Promise<Answer> => {
  const text = await read(request);
  if (text === undefined) return { status: 413, body: { error: "too_large", message: `at most ${maxBody} bytes` } };
  const input = parse(text);
  const wrong = capability.check(input);
  if (wrong !== undefined) return invalid(wrong);
  const taskHash = hash({ agentId: String(agentId), capability: capability.name, version, input });
  const url = `http://${request.headers.host}/capability/${capability.name}`;
  const header = request.headers["payment-signature"];
  if (typeof header !== "string") return demand(url, taskHash);
  const payment = parse(Buffer.from(header, "base64").toString("utf8"));
  if (typeof payment !== "object" || payment === null) return invalid("PAYMENT-SIGNATURE: must be base64 of JSON");
  // accepted is the client's text: it must equal our terms, and is never used in their place.
  if (!isDeepStrictEqual((payment as { accepted?: unknown }).accepted, requirement)) {
    return demand(url, taskHash, "invalid_payment_requirements");
  }
  return once(url, input as { text: string }, taskHash, payment);
};

let stopping = false;

const route = async (request: IncomingMessage): Promise<Answer> => {
  const path = `${request.method} ${request.url?.split("?")[0]}`;
  if (path === "GET /health" || path === "GET /health/ready") {
    const body = { status: "healthy", agentId: String(agentId), version, specVersion: "1.0.0",
      uptime: Math.floor((Date.now() - started) / 1000), capabilities: [capability.name], acceptingRequests: !stopping };
    return { status: path.endsWith("ready") && stopping ? 503 : 200, body };
  }
  if (path !== `POST /capability/${capability.name}`) {
    return { status: 404, body: { error: "not_found", message: `POST /capability/${capability.name} is what there is` } };
  }
  return stopping ? { status: 503, body: { error: "unavailable", message: "the agent stops" } } : call(request);
};

const server = createServer(async (request, response) => {
  try {
    await send(response, await route(request));
  } catch (error) {
    console.error(error); // clients get no detail
    await send(response, { status: 500, body: { error: "internal", message: "the agent failed" } });
  }
});
server.requestTimeout = 30_000;
server.listen(Number(process.env.AGENT_PORT ?? "3000"), process.env.AGENT_HOST ?? "127.0.0.1");
process.on("SIGTERM", () => {
  stopping = true;
  server.close(() => process.exit(0));
  setTimeout(() => process.exit(0), 30_000).unref();
});
