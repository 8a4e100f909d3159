// Package importdb moves whole indexes: it exports, dumps and imports the events of a chain, merges
// late events into the blocks they belong to, and rebuilds histories and current rows from the
// stored events.
package importdb
