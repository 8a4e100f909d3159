// Compiles against what code generators make of schema.graphql.
import { AgentsDocument, type AgentsQuery } from "./generated.js";

export const names = (data: AgentsQuery): string[] => data.agents.nodes.map(({ name, id }) => name ?? id);
export const kind: string = AgentsDocument.kind;
