// Package limit decides when a request may be sent to an endpoint.
//
// A Limiter belongs to one endpoint. Enter waits until a request may be sent and returns the function by which
// its outcome is reported. From the outcomes the Limiter learns what the endpoint allows:
//
//   - Concurrency starts with two requests, grows with successes and halves with timeouts and refused rates.
//   - A rate applies only after the endpoint refused requests because of their rate. It is halved by each refusal
//     and grows back, slowly near the rate that was refused.
//   - A pause that the endpoint asks for is granted, up to three minutes while another endpoint can answer and up
//     to 30 seconds while none can.
//   - A circuit breaker opens after five failures in a row. One probe is admitted after a pause, which doubles with
//     every probe that fails.
//
// A failure that the size of the request may have caused does not count for the breaker. A pause of more than five
// seconds is a ClosedError at once, so that the caller can go on with another endpoint. Exclude takes an endpoint of
// another chain out of use. Score and Report say how the endpoint does.
//
// Batches is the number of calls that the endpoint accepts in one request, which is learned in the same way.
//
// The token bucket is that of golang.org/x/time/rate and the breaker is that of sony/gobreaker. The adaptation to
// the answers of the endpoint is done here. All types are safe for concurrent use.
package limit
