import type { components } from "./openapi.js";

/** The body of every error: RFC 9457 with a code and a hint. */
export type Problem = components["schemas"]["ErrorBody"];

/** Thrown for an answer that is an error, also one that is no problem document. */
export class ReputeError extends Error {
  /** HTTP status of the answer. */
  readonly status: number;
  /** What the server says; undefined when the answer is no problem document, e.g. one of a proxy. */
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    super(problem === undefined ? `the server answers with status ${status}` : text(problem));
    this.name = "ReputeError";
    this.status = status;
    this.problem = problem;
  }
}

const text = (problem: Problem): string => {
  const what = problem.detail ?? problem.title;
  return problem.hint === undefined || problem.hint === "" ? what : `${what} (${problem.hint})`;
};

/** Returns the error of an answer that is not a success. It reads the body. */
export const errorOf = async (response: Response): Promise<ReputeError> => {
  let problem: Problem | undefined;
  try {
    const body: unknown = await response.json();
    if (typeof body === "object" && body !== null && "status" in body && "title" in body) problem = body as Problem;
  } catch {
    problem = undefined; // the status says enough
  }
  return new ReputeError(response.status, problem);
};
