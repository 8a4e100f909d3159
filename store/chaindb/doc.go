// Package chaindb keeps the rows of followed chains: their configuration, cursor and head, the
// ranges of blocks that are indexed, the events known to be missing, and the health of RPC
// endpoints. Its View is the read-only snapshot that every answer of the API is read from.
package chaindb
