// Package limit decides when a request may be sent to an endpoint.
//
// A Limiter starts with few requests at a time and adapts to what the endpoint takes:
// concurrency grows with successes and halves with timeouts and rate limits; a request
// rate applies after the endpoint has refused for its rate; a circuit breaker opens after
// repeated failures and lets one probe through after a pause.
package limit
