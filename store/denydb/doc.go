// Package denydb stores the operator's deny-list and applies it to stored data.
//
// An entry names bytes by their sha256, an ipfs document by its CID, a host, or an agent. Deny
// withholds from then on what the entry covers: package docdb neither fetches nor shows it,
// because its statements ask the list. With drop the stored bytes are deleted too, except those
// that something else returned as well. Undeny makes the covered URIs due again. Both mark agents
// as stale whose scores depend on the covered documents: all agents of all chains where these are
// many, so that a denial commits soon. DenialReach counts beforehand what an entry would cover.
//
// Entries are stored in one form, whatever form they are given in, because statements compare
// them as texts: a hash as lower-case hex, a CID as its multihash, a host as URIs are queued under
// it, an agent as chain and token id.
//
// Table: denied.
package denydb
