// Package hourdb stores what happened in each hour: registrations, ratings and revocations, validations and answers,
// counted and added up for each agent and for the whole chain. The series of package subgraphdb add the hours up.
//
// Hours follow from rows of other tables and from the times of their blocks. Code that writes these rows MUST
// call this package in the same transaction, so that no reader sees one without the other:
//
//   - Hours collects the events of a batch; Write adds them with one statement.
//   - Rewind takes out the events above a block, before their rows are deleted.
//   - Forget takes out some agents, before their rows are deleted and folded again.
//   - Retime takes out the agents of blocks before these get another time, and adds them again.
//   - Recount computes some agents again from their rows.
//   - Differences compares some agents with their rows.
//
// Counts and sums are exact, so that subtracting events restores the earlier values. Column oldest is the place of
// the first event of an hour. Rewind leaves it: it takes out the newest events, so the first one stays unless the
// hour becomes empty, and then the row is deleted. Who calls a function that takes a transaction MUST have locked the
// row of the chain.
//
// Tables: hours.
package hourdb
