// Package batchdb reads many agents at once, each named by its id, by an address or by a domain, from one snapshot.
// However many are asked for, it sends the same number of statements. It owns no table.
package batchdb
