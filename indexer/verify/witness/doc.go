// Package witness asks the endpoints of a chain, and lets none of them prove anything alone.
//
// A Set is the endpoints of one chain. First and Last ask one endpoint after the other until one
// answers, and all calls share one rate limit, which Adapt lowers when an endpoint refuses the rate.
//
// A host is a name or an IP address: all its ports are one witness. Headers are read in batches
// and confirmed by a second host where there is one. Connected reads headers that end in a known
// hash, so that an endpoint cannot show headers of another chain as old ones.
package witness
