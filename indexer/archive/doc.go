// Package archive reads and writes events of a chain as files.
//
// Export writes a snapshot: a header with the registries and blocks, each log with the hash
// and time of its block, and a count. ImportSnapshot stores it, so that an index need not
// read the history from endpoints; the same blocks exported again give the same bytes.
// Import stores logs that another program recorded. With a Compare a sample of the blocks
// is compared with the chain before anything is stored.
package archive
