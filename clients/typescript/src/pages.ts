import type { Client } from "./client.js";
import type { paths } from "./openapi.js";

type Answer<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer Body } } } };
} ? Body : never;

/** A route whose answer is a page: it has items and next. */
export type ListPath = {
  [P in keyof paths]: Answer<P> extends { items: readonly unknown[]; next: string | null } ? P : never;
}[keyof paths];

/** What the pages of a route hold. */
export type ItemOf<P extends ListPath> = Answer<P> extends { items: readonly (infer Item)[] } ? Item : never;

type Parameters<P extends ListPath> = paths[P] extends { get: { parameters: infer Given } } ? Given : never;

/**
 * Yields everything that a list holds, page by page: the next page is asked for when the one before was read.
 * parameters are those of the route; its cursor, when given, is where to begin.
 *
 *     for await (const agent of items(client, "/agents", { query: { minScore: 50 } })) console.log(agent.id);
 */
export async function* items<P extends ListPath>(
  client: Client, path: P, parameters: Omit<Parameters<P>, "header" | "cookie"> & { header?: never; cookie?: never },
): AsyncGenerator<ItemOf<P>, void, undefined> {
  // The types of a path that is a parameter cannot be resolved: what goes in and out is checked by the signature.
  const get = client.rest.GET as unknown as
    (path: P, init: { params: object }) => Promise<{ data: { items: ItemOf<P>[]; next: string | null } }>;
  const given = parameters as { query?: Record<string, unknown>; path?: Record<string, unknown> };
  let cursor: string | null | undefined = given.query?.["cursor"] as string | undefined;
  do {
    const query = cursor === undefined ? given.query : { ...given.query, cursor };
    const { data } = await get(path, { params: { ...given, query } });
    yield* data.items;
    cursor = data.next;
  } while (cursor !== null);
}
