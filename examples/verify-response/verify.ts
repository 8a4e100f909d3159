// Verifies the signature of an agent's answer without asking anyone: node dist/verify.js FILE [SIGNER]
// FILE holds the answer with its headers, as curl -i prints it.
import { readFileSync } from "node:fs";
import { getAddress, isAddressEqual, keccak256, recoverTypedDataAddress, stringToBytes, type Hex } from "viem";

// canonical is JSON as RFC 8785 writes it: sorted members, numbers as JavaScript prints them.
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
};

const fail = (why: string): never => {
  console.error(why);
  process.exit(1);
};

const [file, expected] = process.argv.slice(2);
if (file === undefined) fail("usage: node dist/verify.js FILE [SIGNER]");
const [head, ...rest] = readFileSync(file, "utf8").split(/\r?\n\r?\n/);
const body = rest.join("\n\n");
const headers = new Map(head.split(/\r?\n/).slice(1).map((line) => {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}));
const header = (name: string): string => headers.get(name.toLowerCase()) ?? fail(`the answer has no header ${name}`);

const resultHash = keccak256(stringToBytes(canonical(JSON.parse(body))));
if (resultHash !== header("X-Agent-Result-Hash")) fail("the body is not the one that was signed");
const [, chain, registry] = header("X-Agent-Registry").split(":");
const signer = await recoverTypedDataAddress({
  domain: { name: "TrustlessAgentFramework", version: "1", chainId: Number(chain), verifyingContract: getAddress(registry) },
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
  message: {
    agentId: BigInt(header("X-Agent-ID")),
    taskHash: header("X-Agent-Task-Hash") as Hex,
    resultHash,
    timestamp: BigInt(header("X-Agent-Timestamp")),
    metadata: header("X-Agent-Metadata"),
  },
  signature: header("X-Agent-Signature") as Hex,
});
// Whether the signer may speak for the agent is in the registry: getAgentWallet(agentId), or ownerOf(agentId).
if (expected !== undefined && !isAddressEqual(signer, getAddress(expected))) fail(`signed by ${signer}`);
console.log(JSON.stringify({ signer, agentId: header("X-Agent-ID"), taskHash: header("X-Agent-Task-Hash"), resultHash }));
