// Package query answers the questions of the API about agents that the caller names: their state,
// ratings, validations and scores, as of any block. Each answer is read from one snapshot.
package query
