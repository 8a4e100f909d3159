// Package hourdb stores what happened in each hour: registrations, ratings and revocations, validations and answers,
// counted and added up for each agent and for the whole chain. The series of package subgraphdb add the hours up.
//
// Hours follow from rows of other tables and from the times of their blocks. Whoever writes these rows calls this package
// in the same transaction, so that no reader sees one without the other:
//
//   - Hours collects the events of a batch; Write adds them with one statement.
//   - Rewind takes out the events above a block, before their rows are deleted.
//   - Forget takes out some agents, before their rows are deleted and folded again.
//   - Retime takes out the agents of blocks before these get another time, and adds them again.
//   - Recount computes some agents again from their rows.
//
// Counts and sums are exact, so that taking events out gives what was there before them. The oldest event of an hour is
// the only one that is named: as long as an hour has events, those that a rewind takes out are not the oldest. All
// functions that take a transaction expect the row of the chain to be locked.
//
// Tables: hours.
package hourdb
