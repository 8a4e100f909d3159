// Package docdb stores documents: the files behind the URIs of agents, feedback and
// validations, and the proofs of domains.
//
// # Life of a URI
//
// eventdb calls Intern for the strings of a batch, which stores each distinct URI once and makes URIs of agents due.
// The documents loop claims hosts with due documents with ClaimHosts, claims their URIs with DueURIs, fetches them, and
// stores the outcomes with SaveDocuments. FinishHost, BackOffHost or ReleaseHost ends the claim.
//
// Both claims expire. A process that dies loses nothing: its host and its URIs are due again. A result that arrives
// after its claim expired is still stored, because it says what the URI returned; a refresh that was requested during
// the fetch stays due.
//
// # What SaveDocuments does
//
// One transaction stores the bytes by their sha256, the ipfs blocks that prove them, what parsers read in them
// (table parses, by sha256, kind and version of the parser), the search row, the outcome of the fetch, claimed
// payments, and the changes for readers of the feed. A failure keeps the bytes of the last success. Agents show a URI,
// not bytes, so that a late result cannot be attached to an agent that has another URI by now.
//
// Transactions lock in one order, so that they wait for each other and seldom deadlock: the deny-list, URIs by id,
// documents by sha256, ipfs blocks by multihash, hosts by name. ShowURIs is for the transactions that give agents their
// URIs: a change of a document is either written with the document, or later by AddSharedChanges, which also writes the
// changes of documents that more than a thousand agents share.
//
// # Upkeep
//
// Passes in the background delete what is not needed: PruneVersions the oldest outcomes of a URI that changes with
// every fetch, DropBodies the bytes of the oldest documents that no agent shows, where an operator bounds their size.
// ListUnparsed and SaveParsed apply a newer parser to stored bytes. Each call does one bounded batch, and any number of
// processes may call it.
//
// # Readers
//
// Proofs of domains are documents too; whether they prove anything is computed when it is read (ProofsOfAgents),
// because it depends on what agents name now. What the operator denies is stored as a hash and withheld by every read.
// Other packages join documents into their statements with functions that return SQL, such as DeniedDocument and
// StillServed; their arguments are aliases and expressions of the statement, never texts from outside.
//
// Tables: tags, uris, hosts, fetches, documents, parses, links, domains, ipfs_blocks,
// document_blocks, payment_files.
package docdb
