// Package engine keeps the scores of package trust stored and up to date.
//
// An Engine follows the indexed chains. Each chain has a keeper with three loops. walk begins a run at the end of each
// epoch, or when an input changed: it reads the sources, builds the graph of ratings as of the epoch's last block, lets
// trust flow from the roots and stores the run with the hashes of all its inputs. rescore then scores all agents in a
// pass, and then those whose penalties changed, until none is stale; closing the run makes its final scores visible.
// follow scores agents after events, by the weights of the newest run, so that a new rating counts within a second and
// not an epoch later.
//
// All scores of a run share its Basis: parameters, weights, scales and known agents. An engine computes it once, from
// stored inputs alone, so that another engine of the same version, or a replay years later, gets the same bytes; a run
// whose weights come out differently is not used. A Basis does not change. Graphs lends the Basis of each chain to
// readers in the same process.
//
// A score has two values. The provisional one is as of the newest block with an event of the agent. The final one is as
// of the end of the epoch, is kept and can be replayed. Most final scores change by age alone from one epoch to the
// next; those within scoredb.Tolerance stay as an earlier epoch left them unless EngineOptions.Exact is set.
//
// Any number of engines may share a database, and a crash at any moment loses nothing: all progress is in tables of
// package scoredb. Agents are claimed for a minute, and work that finishes after its claim is discarded. A lease lets
// one engine make the pass of a chain; it is continued at its last batch by whichever engine has the lease next. When
// two engines differ in parameters or sources, the one that was started last decides. Failures of the database are
// retried.
//
// Memory is that of the ratings of each chain, see package rows, and of two graphs while a run is made. Package
// trust/explain answers questions about the stored scores.
package engine
