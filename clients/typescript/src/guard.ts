import type { Client } from "./client.js";
import { items } from "./pages.js";

/** What a payee must have. */
export interface GuardOptions {
  /** Lower bound of the score of every agent of the payee, -100 to 100. */
  minScore: number;
  /** Least tier, 0 to 4. */
  tier?: number;
  /** Whether only final scores of verified blocks count. */
  verified?: boolean;
  /** Whether a payee that no indexed agent names is paid. Default false. */
  allowUnknown?: boolean;
  /** Most agents of one payee that are looked at; one with more is refused. Default 50. */
  maxAgents?: number;
}

// The part of a payment that is about to be made which the guard reads: the same in v1 and v2 of x402.
interface Payment {
  selectedRequirements: { payTo: string; network: string };
}

/**
 * Returns a hook that refuses to pay whom the index does not trust:
 *
 *     new x402Client().onBeforePaymentCreation(trustGuard(client, { minScore: 20 }))
 *
 * The payee is every agent whose verified wallet, or else whose owner, is payTo on the chain of the payment. The one
 * that is trusted least decides, because an account is not better than what its agents did. Whatever cannot be found
 * out is a refusal: the index is away, the network is no EVM chain by its CAIP-2 name, the chain is not indexed.
 */
export const trustGuard = (client: Client, options: GuardOptions) =>
  async ({ selectedRequirements: { payTo, network } }: Payment): Promise<void | { abort: true; reason: string }> => {
    try {
      const reason = await refusal(client, options, payTo, network);
      return reason === undefined ? undefined : { abort: true, reason };
    } catch (error) {
      return { abort: true, reason: `the payee's reputation cannot be read: ${(error as Error).message}` };
    }
  };

// refusal says why a payee is not paid; undefined when it is.
const refusal = async (
  client: Client, options: GuardOptions, payTo: string, network: string,
): Promise<string | undefined> => {
  const chain = /^eip155:([1-9]\d{0,14})$/.exec(network)?.[1];
  if (chain === undefined) return `${network} is not the CAIP-2 name of an EVM chain`;
  const agents = await agentsOf(client, payTo, chain, options.maxAgents ?? 50);
  if (agents.length === 0) return options.allowUnknown === true ? undefined : `no agent on ${network} has the account ${payTo}`;
  for (const id of agents) {
    const { data } = await client.rest.GET("/agents/{id}/decision", { params: { path: { id }, query: demands(options) } });
    if (data?.decision !== "allow") return `agent ${id}: ${data?.reasons.map((reason) => reason.text).join("; ") ?? "no decision"}`;
  }
  return undefined;
};

const demands = ({ minScore, tier, verified }: GuardOptions) => ({
  minScore,
  ...(tier === undefined ? {} : { tier }),
  ...(verified === true ? { verified: true, at: "finalized" } : {}),
});

// agentsOf returns the ids of a payee's agents: by wallet, and where there is none by owner.
const agentsOf = async (client: Client, payTo: string, chainId: string, most: number): Promise<string[]> => {
  for (const account of ["wallet", "owner"] as const) {
    const ids: string[] = [];
    for await (const agent of items(client, "/agents", { query: { [account]: payTo, chainId } })) {
      if (ids.length === most) throw new Error(`${payTo} has more than ${most} agents`);
      ids.push(agent.id);
    }
    if (ids.length > 0) return ids;
  }
  return [];
};
