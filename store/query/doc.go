// Package query answers the questions of the API: agents by id, filter and text, their
// ratings, validations and scores, as of any block. Each answer is read from one snapshot.
package query
