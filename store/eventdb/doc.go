// Package eventdb writes the index: events, the histories that follow from them, and the
// current rows.
//
// # Layers
//
// Events are the logs as they were received, and the truth: everything else can be computed from them. Histories are
// rows with the block in which they begin and the one in which they end, so that a view as of any block is a condition.
// Current rows (agents, sums, votes) hold the totals that lists are ordered and filtered by.
//
// # Apply
//
// Apply stores a Batch, a range of consecutive blocks, in one transaction: the events as they
// were received; the fold, which applies each event to the state it names and yields history
// rows and new totals; the changes for readers of the feed; and the cursor. The transaction
// commits only if the lease is held and the cursor is still the batch's parent. So a batch that is applied twice, or by
// two processes, is stored once, and after a crash the caller reads the cursor and goes on from there.
//
// The fold is pure: the state that the records name is loaded before (write_load.go), and what it makes is written
// afterwards (Delta). The same records in any division into whole blocks give the same rows. How the registries behave
// in ways that their events do not say is in fold_identity.go and fold_feedback.go, one function for each event.
//
// # Rewind
//
// Rewind removes the blocks that a reorganization replaced and applies the batch that follows the common ancestor, in
// the same transaction. Histories are cut by their block numbers; current rows of the touched agents are computed again
// from the histories and never counted down, so that no earlier error survives. A rewound index equals one that never
// saw the removed blocks.
//
// # Events that miss another
//
// An event that needs a missing one is stored as pending and has no effect. When the missing
// one is found, package importdb folds the affected agents again. An event that contradicts what is stored, such as a
// second revocation, stays pending and hides nothing.
//
// # Speed
//
// Three things make a backfill fast: Prepare interns strings and Prefetch stores events of
// later batches while an earlier one is applied, rows are sent with COPY (package pgcopy), and the
// rows that the last batches wrote stay in memory (rowCache). The cache is valid while nobody else writes the chain,
// which the count of writes in its row shows. Statements find rows by key alone, whatever the statistics of the tables
// say: see store.PlanByKey.
//
// # Others
//
// Events of treasuries are stored with the others and decoded in treasury_events. They change
// nothing of agents.
//
// Triggers on sums and votes update agent_sums and agent_votes, the totals of each agent, in the transaction of every
// write: that of a batch, of a rewind, and of package importdb. The same writes tell package hourdb what they add and
// what they take out, so that hours follow the events.
//
// Tables: events, treasury_events, agent_states, metadata, operators, feedback, responses, validation_requests,
// validation_responses, pending, agents, sums, votes, agent_sums, agent_votes.
package eventdb
