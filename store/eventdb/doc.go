// Package eventdb writes the index: events, the histories that follow from them, and the
// current rows.
//
// Apply stores a Batch, a range of consecutive blocks, in one transaction: the events as they
// were received; the fold, which applies each event to the state it names and yields history
// rows and new totals; the changes for readers of the feed; and the cursor. The transaction
// commits only if the lease is held and the cursor is still the batch's parent. Rewind does the
// same after removing the blocks that a reorganization replaced.
//
// Three things make a backfill fast: Prepare interns strings and Prefetch stores events of
// later batches while an earlier one is applied, rows are sent with COPY (CopyBuffer), and the
// rows that the last batches wrote stay in memory (rowCache).
//
// An event that needs a missing one is stored as pending and has no effect. When the missing
// one is found, package importdb folds the affected agents again.
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
