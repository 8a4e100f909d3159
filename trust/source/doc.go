// Package source describes sources of trust: contracts that show facts about addresses, such as a checked identity. A
// rater with such a fact, a Credential, has weight in scores although no root has rated it.
//
// A Source is a declaration in a YAML file: which contracts are read on which chain, which answers count, the price of
// a credential, for how long it counts and how much all credentials of the source may move one agent. A new source
// needs an entry in the file and no code. Parse reads the file and refuses unknown members; Default is the file in this
// package.
//
// The package makes no calls itself. An Inquiry asks one source about one rater: Next returns the next contract call
// and Answer takes its result, so that equal answers give an equal Credential on every machine. Package
// trust/source/read makes the calls at the end of each epoch, for the trust engine. Settle merges a Reading with the
// credentials of the epoch before, and Raters turns credentials into weights at a time.
//
// Three rules apply everywhere. A missing answer never means "no": the rater is Unknown. A contract that has changed,
// is missing or returns another type than declared turns its source off, with a reason. A credential that is revoked or
// expired gives no weight to any rating of its holder, however old.
package source
