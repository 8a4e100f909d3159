// Package witness asks the endpoints of a chain, and confirms headers with a second host. With only one host, headers
// are not confirmed.
//
// A Set is the endpoints of one chain. First and Last ask one endpoint after the other until one answers, and all
// calls share one rate limit, which Adapt lowers when an endpoint refuses the rate. Spend MUST be called before
// calls that a method of Set does not make itself.
//
// Package node says what a host is. Headers are read in batches, a batch counts as one call, and they are confirmed by
// a second host where there is one. A header that is the hash of its fields confirms all headers before it that name
// each other as parents; others are confirmed one by one. Connected reads headers that end in a known hash, so that an
// endpoint cannot show headers of another chain as old ones.
//
// A Set holds no state but its rate: what was confirmed is for the caller to store.
package witness
