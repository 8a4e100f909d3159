// Package source describes facts about addresses that give a rater a first weight without anybody's word.
//
// A Source is a declaration: which contracts to ask on which chain, which answers count, what a credential costs, how
// long it counts and how much all credentials of the source may move one agent. A new source needs an entry in the
// file of sources and no code. Parse reads such a file and refuses what it does not know; Default is the file that this
// package comes with.
//
// The package is pure. An Inquiry asks one source about one rater: it returns the calls that are to be made and takes
// their answers, so that the same answers give the same Credential everywhere. Package trust/source/read makes the
// calls. Settle joins a Reading with what was known before, and Raters turns credentials into weights at a time.
//
// Three rules hold throughout. No answer is never "no": a rater that was not answered for is unknown. A contract that
// changed, is missing or answers something else than declared turns its source off, with a reason. A credential that
// is revoked or expired gives no weight to anything its holder ever said.
package source
