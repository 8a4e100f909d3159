// Package denydb stores the operator's deny-list and applies it to stored data.
//
// An entry names bytes by their sha256, an ipfs document by its CID, a host, or an agent. Deny
// withholds from then on what the entry covers: package docdb neither fetches nor shows it,
// because its statements ask the list. With drop the stored bytes are deleted too. Undeny makes
// the covered URIs due again. Both mark agents as stale whose scores depend on the covered
// documents.
//
// Table: denied.
package denydb
