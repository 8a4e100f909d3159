// Package query answers questions of the API about agents that the caller names: their state,
// ratings, validations, scores and documents, as of any block.
//
// Each answer is read on one snapshot (chaindb.ViewAgent) and carries the block it is true at.
// At the newest block it reads the current rows, at an earlier one the histories: functions
// such as agentAt and totalsAt return the SQL of one or the other. Functions for many agents at
// once, such as AgentsByID and Reputations, use one statement for each part, however many
// agents there are.
//
// Registrants choose how long their texts are, so lists shorten them within the database. Text
// returns a whole one.
//
// It only reads; the tables belong to other packages.
package query
