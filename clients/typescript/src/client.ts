import createFetch, { type Client as FetchClient } from "openapi-fetch";
import type { paths } from "./openapi.js";
import { errorOf, ReputeError } from "./problem.js";
import { retrying, type RetryOptions } from "./retry.js";

/** Where the server is, and how it is asked. */
export interface ClientOptions extends RetryOptions {
  /** URL of the server, e.g. https://index.example. */
  baseUrl: string;
  /** API key or token, sent as Authorization: Bearer. */
  token?: string;
  /** The fetch below; the global one by default. */
  fetch?: typeof fetch;
}

/** A client of one server. Safe for concurrent use. */
export interface Client {
  /** Every route of the OpenAPI document, typed. Errors are thrown as ReputeError. */
  rest: FetchClient<paths, "application/json">;
  /**
   * Sends a GraphQL document and returns its data. Throws ReputeError for an answer that is not a success, and an
   * AggregateError with the messages when the answer has errors.
   */
  graphql: <Data>(document: string, variables?: Record<string, unknown>) => Promise<Data>;
}

/** Returns a client of the server at options.baseUrl. It sends nothing until it is asked. */
export const createClient = (options: ClientOptions): Client => {
  const headers: Record<string, string> = options.token === undefined ? {} : { Authorization: `Bearer ${options.token}` };
  const send = retrying(options.fetch ?? fetch, options);
  const rest = createFetch<paths, "application/json">({ baseUrl: options.baseUrl, headers, fetch: (request) => send(request) });
  rest.use({
    async onResponse({ response }) {
      // 304 is the answer to If-None-Match.
      if (!response.ok && response.status !== 304) throw await errorOf(response);
    },
  });
  const graphql = async <Data>(document: string, variables: Record<string, unknown> = {}): Promise<Data> => {
    const response = await send(new URL("graphql", withSlash(options.baseUrl)), {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify({ query: document, variables }),
    });
    if (!response.ok) throw await errorOf(response);
    const { data, errors } = (await response.json()) as { data?: Data; errors?: { message: string }[] };
    if (errors !== undefined && errors.length > 0) {
      const all = errors.map((error) => new Error(error.message));
      throw new AggregateError(all, all.map((error) => error.message).join("; "));
    }
    if (data === undefined) throw new ReputeError(response.status, undefined);
    return data;
  };
  return { rest, graphql };
};

const withSlash = (url: string): string => (url.endsWith("/") ? url : `${url}/`);
