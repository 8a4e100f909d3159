// Package query answers questions of the API about agents that the caller names: their state,
// ratings, validations, scores and documents, as of any block.
//
// Each answer is read on one snapshot (chaindb.ViewAgent) and carries the block it is true at. At the newest block it
// reads the current rows, at an earlier one the histories: functions such as agentAt and totalsAt return the SQL of one
// or the other. Totals of the past are either added up until the block or computed from today's by undoing what came
// later, whichever reads fewer ratings (past.go). Functions for many agents at once, such as AgentsByID and
// Reputations, use one statement for each part, however many agents there are.
//
// The most frequent question is the reputation of one agent (ReadReputation). Its parts are functions that queue a
// statement and return where its result will be; send sends them as one message, so that the answer costs one round
// trip, and the transaction keeps one plan for all agents. Warm prepares connections for it.
//
// Registrants choose how long their texts are, so lists shorten them within the database and say what they cut. Text
// returns a whole one. What the operator denies is left out of files and URIs here, not by callers.
//
// Lists are read in pages: a position is a block and a log index, which are the columns of an index, so that any page
// costs the same. A page reads one row more than it returns, which shows whether another follows.
//
// It only reads; the tables belong to other packages. RequestRefresh is the exception: it schedules a document.
package query
