// Client of repute. Each file says what it is for.
export { createClient, type Client, type ClientOptions } from "./client.js";
export { ReputeError, type Problem } from "./problem.js";
export { items, type ListPath, type ItemOf } from "./pages.js";
export { retrying, type RetryOptions } from "./retry.js";
export { verifyStatement, StatementError, type SignedStatement, type TrustedKey, type StatementFault } from "./statement.js";
export { trustGuard, type GuardOptions } from "./guard.js";
export type { components, operations, paths } from "./openapi.js";
