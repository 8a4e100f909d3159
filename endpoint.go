package repute

import "time"

// EndpointState is whether requests are sent to an endpoint.
type EndpointState string

// States of an endpoint.
const (
	EndpointClosed   EndpointState = "closed"    // works: its circuit is closed
	EndpointOpen     EndpointState = "open"      // failed too often: no requests for a while
	EndpointHalfOpen EndpointState = "half_open" // one request may show that it works again
	EndpointExcluded EndpointState = "excluded"  // serves another chain
)

// Endpoint is the health of one JSON-RPC endpoint of a chain, as one process
// sees it.
type Endpoint struct {
	ChainID     uint64
	Name        string // host and port, with kind or a short hash where a host occurs twice; never path, query or key
	Kind        string // http or ws
	State       EndpointState
	Latency     time.Duration // of questions that are no ranges of logs, smoothed
	ErrorRate   float64       // failures per request, smoothed, 0 to 1
	Requests    int64         // since the process started
	Failures    int64
	RateLimit   float64 // largest requests per second, 0 for no limit
	Concurrency int     // largest number of simultaneous requests
	Head        uint64  // newest block it has reported, 0 when unknown
	LastError   string  // without keys, "" when it never failed
	LastOKAt    time.Time
	UpdatedAt   time.Time
	Owner       string // the process
}
