// Package trustdb reads what the trust engine works with: the events of a chain in the form that package trust
// computes with, as of any block, so that scores can be explained and replayed. It writes nothing; package
// store/scoredb stores the results.
//
// There are two ways to read, for two sizes of work. ReadEvidence, ReadSubjects and ReadGrowth return the evidence
// about some agents as Subjects: who had the agent, who acted for it, and its ratings, answers and payments as Rows.
// Their statements are sent as one batch, because most agents have so little that round trips cost more than reading
// it. ReadSnapshot is for the graph of a whole chain, of which a run reads every rating: it gives a Snapshot, whose
// rows have the wire form of Postgres, and one connection for as long as its callback runs.
//
// A state as of a block is a filter on the histories, so that each read of one block returns the same for ever. The
// newest state is read with the block chaindb.Everything. Files are different: ReadIdentities, ProvenDomains and
// ScaleClaims use the URI that an agent or a rating had at the block, and the content that was read from it last.
//
// Each function reads on one snapshot of the database. Functions that read all of a chain lift the time limit of
// statements, and end with their context. Ratings and answers are in no particular order unless a function says so; the
// engine sorts what it computes with, so that scores do not depend on plans of Postgres.
package trustdb
