// Package scoredb stores what the trust engine computes: runs with their inputs, stale agents, scores, and
// penalties.
//
// A run belongs to an epoch. AddRun stores it with the hashes of its inputs and begins a Pass,
// which scores all agents in order of their ids; SavePass stores its batches. MarkStale reads the
// change feed and marks agents whose scores later changes may affect. The engine takes these with
// ClaimStale, reads their evidence with package store/trustdb, and stores the results with SaveScores.
// CloseRun closes the run when every agent has its final score, which never changes then.
//
// A bad agent is a penalty for the identities that owned it. When one changes, MarkRelated
// marks the other agents of these identities.
//
// The inputs stay in trust_inputs as long as a score or decision names them, so that a score can be computed again.
//
// Tables: those whose names begin with trust_, except trust_roots, trust_links and trust_marks.
package scoredb
