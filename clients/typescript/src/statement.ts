import { getAddress, isAddressEqual, recoverTypedDataAddress, size, slice, type Address, type Hex } from "viem";

/** A signed score, as the member signed of GET /agents/{id}/reputation?signed=1 has it. */
export interface SignedStatement {
  domain: { name: string; version: string; chainId: number; verifyingContract: string };
  message: {
    agentId: string;
    status: "rated" | "thin" | "unrated";
    scoreMilli: number;
    lowMilli: number;
    highMilli: number;
    confidenceMicro: number;
    tier: number;
    guarded: boolean;
    blockNumber: number;
    blockHash: string;
    blockTime: number;
    holdsBlock: number;
    holdsTime: number;
    verifiedTo: number;
    epoch: number;
    scorer: string;
    params: string;
    tags: string;
    roots: string;
    links: string;
    sources: string;
    credentials: string;
    fileScales: string;
    evidence: string;
    issuedAt: number;
    expiresAt: number;
  };
  signer: string;
  signature: string;
}

/** A key whose statements are accepted: an element of keys of /.well-known/repute-keys.json. */
export interface TrustedKey {
  address: string;
  /** RFC 3339 times between which it signed; null is unbounded. */
  from: string | null;
  to: string | null;
}

/** Why a statement is refused. */
export type StatementFault = "signature" | "signer" | "expired" | "early" | "agent" | "old" | "unverified" | "version";

/** Thrown for a statement that must not be relied on. */
export class StatementError extends Error {
  readonly fault: StatementFault;

  constructor(fault: StatementFault, message: string) {
    super(message);
    this.name = "StatementError";
    this.fault = fault;
  }
}

const bytes32 = ["params", "tags", "roots", "links", "sources", "credentials", "fileScales", "evidence"] as const;
const types = {
  TrustScore: [
    { name: "agentId", type: "uint256" },
    { name: "status", type: "string" },
    ...["scoreMilli", "lowMilli", "highMilli"].map((name) => ({ name, type: "int256" })),
    ...["confidenceMicro", "tier"].map((name) => ({ name, type: "uint256" })),
    { name: "guarded", type: "bool" },
    { name: "blockNumber", type: "uint256" },
    { name: "blockHash", type: "bytes32" },
    ...["blockTime", "holdsBlock", "holdsTime", "verifiedTo", "epoch"].map((name) => ({ name, type: "uint256" })),
    { name: "scorer", type: "string" },
    ...bytes32.map((name) => ({ name, type: "bytes32" })),
    ...["issuedAt", "expiresAt"].map((name) => ({ name, type: "uint256" })),
  ],
};
const version = "6"; // of the domain: other versions have other members
const skew = 60; // seconds by which the clocks of who signs and who verifies may differ
// Half the order of secp256k1: a signature above it is a copy that anyone can make of one below.
const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** What a statement is compared with. */
export interface Expected {
  /** Id of the agent you deal with: eip155:{chainId}:{registry}:{tokenId}. */
  agent: string;
  /** Keys that you trust, e.g. those of the server's key file, read earlier. */
  keys: TrustedKey[];
  /** Seconds since the block as of which the score held; two epochs or more. */
  maxAge: number;
  /** Unix seconds; the clock's by default. */
  now?: number;
}

/**
 * Verifies a signed score without asking anyone, and returns its message. Throws StatementError when it is not
 * signed by a trusted key for this agent and time. Compare message.roots with the roots that you accept: a server
 * chooses its own. docs/reference/statements.md defines the typed data.
 */
export const verifyStatement = async (
  signed: SignedStatement, expected: Expected,
): Promise<SignedStatement["message"]> => {
  const { domain, message } = signed;
  const now = expected.now ?? Date.now() / 1000;
  if (domain.name !== "repute trust score" || domain.version !== version) {
    throw new StatementError("version", `the statement is "${domain.name}" ${domain.version}, not "repute trust score" ${version}`);
  }
  const signer = await signerOf(signed);
  const key = expected.keys.find((one) => isAddressEqual(getAddress(one.address), signer) && within(one, message.issuedAt));
  if (key === undefined) throw new StatementError("signer", `${signer} is not a key that is trusted at the time of issue`);
  const agent = `eip155:${domain.chainId}:${domain.verifyingContract}:${message.agentId}`;
  if (agent.toLowerCase() !== expected.agent.toLowerCase()) {
    throw new StatementError("agent", `the statement is about ${agent}, not about ${expected.agent}`);
  }
  if (message.issuedAt > now + skew || message.holdsTime > message.issuedAt + skew || message.blockTime > message.holdsTime) {
    throw new StatementError("early", "the statement is of the future");
  }
  if (now >= message.expiresAt + skew) throw new StatementError("expired", "the statement has expired");
  if (message.verifiedTo < message.holdsBlock) throw new StatementError("unverified", "the statement's blocks are not verified");
  if (now - message.holdsTime > expected.maxAge) {
    throw new StatementError("old", `the score held ${Math.round(now - message.holdsTime)} s ago, ${expected.maxAge} s are accepted`);
  }
  return message;
};

const within = (key: TrustedKey, issued: number): boolean =>
  (key.from === null || Date.parse(key.from) / 1000 <= issued) && (key.to === null || issued < Date.parse(key.to) / 1000);

// signerOf returns who signed, which must be who the statement says.
const signerOf = async ({ domain, message, signer, signature }: SignedStatement): Promise<Address> => {
  try {
    const bytes = signature as Hex;
    if (size(bytes) !== 65 || BigInt(slice(bytes, 32, 64)) > halfOrder || !["0x1b", "0x1c"].includes(slice(bytes, 64))) {
      throw new Error("the signature is malformed");
    }
    const found = await recoverTypedDataAddress({
      domain: { ...domain, verifyingContract: getAddress(domain.verifyingContract) },
      types, primaryType: "TrustScore", message: message as unknown as Record<string, unknown>, signature: bytes,
    });
    if (!isAddressEqual(found, getAddress(signer))) throw new Error(`it is by ${found}, not by ${signer}`);
    return found;
  } catch (error) {
    throw new StatementError("signature", `the signature is not of this statement: ${(error as Error).message}`);
  }
};
