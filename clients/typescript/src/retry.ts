/** How requests are sent again. */
export interface RetryOptions {
  /** Most tries after the first one. Default 3. */
  retries?: number;
  /** Milliseconds that one try may take, with its body. Default 10,000. */
  timeout?: number;
  /** Milliseconds that are waited for a Retry-After at most; a longer one ends the tries. Default 30,000. */
  maxWait?: number;
  /** Waits; tests replace it. */
  sleep?: (milliseconds: number) => Promise<void>;
}

const retried = new Set([429, 502, 503, 504]);
const safe = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
const defaultSleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Returns a fetch that sends a request again when the server is busy or away: after the time that Retry-After
 * names, else after half a second, doubled each time. A request that changes something is sent again only when the
 * server refused it (429, 503) or when it has an Idempotency-Key: the answer to it may be lost, not the change.
 */
export const retrying = (send: typeof fetch, options: RetryOptions = {}): typeof fetch => {
  const { retries = 3, timeout = 10_000, maxWait = 30_000, sleep = defaultSleep } = options;
  return async (input, init) => {
    const request = new Request(input, init);
    const repeatable = safe.has(request.method) || request.headers.has("Idempotency-Key");
    for (let tried = 0; ; tried++) {
      let pause = 500 * 2 ** tried;
      try {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]);
        const response = await send(new Request(request.clone(), { signal }));
        const refused = response.status === 429 || response.status === 503;
        if (!retried.has(response.status) || tried >= retries || !(refused || repeatable)) return response;
        pause = waitOf(response.headers.get("Retry-After")) ?? pause;
        if (pause > maxWait) return response;
        await response.body?.cancel();
      } catch (error) {
        if (request.signal.aborted || tried >= retries || !repeatable) throw error;
      }
      await sleep(pause);
    }
  };
};

// waitOf returns the milliseconds that a Retry-After names, in seconds or as a date; undefined when it names none.
const waitOf = (header: string | null): number | undefined => {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
};
