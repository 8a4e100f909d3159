// Package scoredb stores what the trust engine computes: runs with their inputs, stale agents, scores, and
// penalties.
//
// # Runs
//
// A run belongs to an epoch. AddRun stores it with the hashes of its inputs and begins a Pass, which scores all agents
// in order of their ids: Effects.Next returns the next ones, and SavePass stores a batch and advances the pass in one
// transaction. CloseRun closes the run when every agent has its final score, which never changes then. One process at a
// time makes a pass, by the lease PassLease; its writes are fenced by the lease, the number of the pass and its
// position.
//
// # Stale agents
//
// Between runs, writers of events and documents leave marks (package store/trustmark). ResolveMarks takes them away and
// makes the agents stale whose scores they concern. The engine takes stale agents with ClaimStale, reads their evidence
// with package store/trustdb, and stores the results with SaveScores, which discards those of agents that are no longer
// stale, and keeps agents stale that were marked again meanwhile. A claim expires, so that the agents of a process that
// died are scored by another one. Results of an older run than the newest are refused with repute.ErrFenced.
//
// A bad agent is a penalty for the identities that owned it. When a penalty changes, MarkRelated marks the other agents
// of these identities, in batches, because an identity may have any number of them.
//
// # Scores
//
// The provisional score of an agent is its row in trust_scores, its final ones are in trust_finals. A score is stored
// again only if more than its age changed it, or by a tenth of a point (Tolerance); Kept finds the others before they
// are sent, because most scores of a pass do not change. Effects remembers what a pass stored, so that the next pass of
// the same process reads what changed and not millions of rows.
//
// Each change of a visible score is added to the feed by the statement that stores it. Transactions that write scores
// of a chain, or hide them for a rewind, wait for each other (lockScores), so that the order of the feed is theirs.
//
// The inputs stay in trust_inputs as long as a score or decision names them, so that a score can be computed again.
//
// Tables: those whose names begin with trust_, except trust_roots, trust_links and trust_marks.
package scoredb
