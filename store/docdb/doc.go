// Package docdb stores documents: the files behind the URIs of agents, feedback and
// validations.
//
// Life of a URI: eventdb calls Intern for the strings of a batch, which makes URIs of agents
// due. The documents loop claims hosts with due documents with ClaimHosts, claims their URIs with
// DueURIs, fetches them, and stores the outcomes with
// SaveDocuments. That one transaction stores the bytes and the ipfs blocks that prove them,
// what parsers read in them, the search row, the outcome of the fetch, claimed payments, and
// the changes for readers of the feed. FinishHost or BackOffHost ends the claim.
//
// Passes in the background delete what is not needed: PruneVersions, DropBodies. ListUnparsed
// and SaveParsed apply a newer parser to stored bytes. Proofs of domains are documents too;
// whether they prove anything is computed when it is read (ProofsOfAgents).
//
// Other packages join documents into their statements with functions that return SQL, such as
// DeniedDocument and StillServed.
//
// Tables: tags, uris, hosts, fetches, documents, parses, links, domains, ipfs_blocks,
// document_blocks, payment_files.
package docdb
