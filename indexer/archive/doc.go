// Package archive reads and writes events of a chain as files.
//
// Export writes a snapshot: a header with the registries and blocks, each log with the hash and time of its block,
// and a count. The same blocks exported again give the same bytes. ImportSnapshot stores one, so that an index need
// not read the history from endpoints. It works in chunks of whole blocks, of bounded memory, and may be repeated
// after a crash: what is stored already is skipped. A snapshot without its last line was cut short and is refused.
//
// Import stores logs that another program recorded, in any of the usual forms of JSON, all or nothing.
//
// Both take untrusted bytes: every number, time and length is bounded before it reaches the store, and an error names
// the line. Neither trusts the writer about events that it does not list: what is missing becomes a gap that package
// verify searches. With a Compare a sample of the blocks is compared with the chain before anything is stored. A chain
// that this database follows refuses an import; a finished import can be followed on from its end.
package archive
