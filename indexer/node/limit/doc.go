// Package limit decides when a request may be sent to an endpoint.
//
// A Limiter starts with few requests at a time and adapts to the endpoint: concurrency grows with
// successes and halves with timeouts and rate limits; a rate limit applies after the endpoint has
// refused requests because of their rate; a circuit breaker opens after repeated failures and admits
// one probe after a pause. The token bucket is that of golang.org/x/time/rate and the breaker is that
// of sony/gobreaker. The adaptation to the answers of the endpoint is done here.
package limit
