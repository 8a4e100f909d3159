// Package rating reads ratings: by the parameters and the table of tags, a row is an opinion from -1 to 1 in a channel,
// or there is a reason why it does not count.
//
// Params has everything that scores follow from besides evidence. ParseParams reads it from two files, params.json and
// tags.json, of which DefaultParams are the ones of this package. A TagTable has the rules by which values of tags are
// read; raters write some tags on several scales, and Habits infers the Scales of each rater from what it wrote.
// Params.Read turns a Row into a Record, and a Mean combines the records of one identity. A Packing does the same for
// rows that share their parts, so that ten million of them fit into memory.
//
// A rating is about the owner of an agent at that time: Tenure and PresentSince say since when that is the present one.
//
// The package is pure. Package trust/graph makes the graph of who rates whom well of what it reads, and package trust
// the scores.
package rating
